//! The enumerations of the file.

/// Declares an enumeration of the file: its variants, how they are written, and the first one as the default.
macro_rules! choices {
    ($(#[doc = $doc:literal] $name:ident { $(#[doc = $about:literal] $variant:ident = $text:literal,)+ })+) => {
        $(
            #[doc = $doc]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $name { $(#[doc = $about] $variant,)+ }

            impl $name {
                /// How it is written.
                pub const fn as_str(self) -> &'static str {
                    match self { $($name::$variant => $text,)+ }
                }
            }

            impl Default for $name {
                fn default() -> $name { Self::ALL[0] }
            }

            impl Choice for $name {
                const ALL: &'static [$name] = &[$($name::$variant,)+];
                fn text(self) -> &'static str { self.as_str() }
            }
        )+
    };
}

/// An enumeration of the file.
pub(super) trait Choice: Copy + 'static {
    /// Its values, the default first.
    const ALL: &'static [Self];
    /// How a value is written.
    fn text(self) -> &'static str;
}

choices! {
    /// Where below a destination a bundle goes.
    PathMapping {
        /// At its own path.
        PreserveRelative = "preserve_relative",
        /// One bundle at the root itself.
        Fixed = "fixed",
    }
    /// Which files of a bundle a destination gets.
    OutputPolicy {
        /// The source files only.
        SourceOnly = "source_only",
        /// The generated files only.
        GeneratedOnly = "generated_only",
        /// All of both.
        SourcePlusGenerated = "source_plus_generated",
        /// The generated files, and the source files that no transform consumed.
        GeneratedPlusAssets = "generated_plus_assets",
    }
    /// What to do at a destination that holds an older bundle.
    OnOlder {
        /// Publish.
        Replace = "replace",
        /// Leave it.
        Skip = "skip",
        /// Fail.
        Fail = "fail",
    }
    /// What to do at a destination that holds a newer bundle.
    OnNewer {
        /// Leave it.
        Skip = "skip",
        /// Publish.
        Replace = "replace",
        /// Fail.
        Fail = "fail",
    }
    /// What to do about content or state in the way.
    OnConflict {
        /// Fail.
        Fail = "fail",
        /// Replace it.
        Replace = "replace",
    }
    /// What becomes of recorded outputs that the new bundle does not have.
    Reconciliation {
        /// They go.
        Replace = "replace",
        /// They stay.
        Merge = "merge",
    }
    /// Who may publish to a destination root.
    StateMode {
        /// One destination of one pipeline.
        SingleOwner = "single_owner",
        /// Several, each its own paths.
        SharedRoot = "shared_root",
    }
    /// Whose publications a destination may take over.
    TakeoverMode {
        /// Nobody's.
        Never = "never",
        /// Those of another source id.
        Source = "source",
        /// Any managed one.
        Managed = "managed",
    }
    /// What becomes of raw HTML in Markdown.
    RawHtml {
        /// It is shown as text.
        Escape = "escape",
        /// Only harmless elements stay.
        Sanitize = "sanitize",
        /// It stays as it is.
        Allow = "allow",
    }
    /// How strictly an SSH server's key is checked.
    HostKeyPolicy {
        /// A new host's key is recorded, a changed one refused.
        AcceptNew = "accept-new",
        /// Only recorded keys pass.
        Strict = "strict",
        /// Any key passes.
        Off = "off",
    }
    /// The kinds of storage.
    Backend {
        /// A directory of this machine.
        Local = "local",
        /// A directory of an SSH server.
        Ssh = "ssh",
        /// A prefix of an S3 bucket.
        S3 = "s3",
        /// Uploads to distributor-serve.
        HttpUpload = "http_upload",
    }
}
