//! Which outputs a destination gets from a bundle.

use std::collections::BTreeMap;

use super::{links, markdown};
use crate::bundle::{FileEntry, Manifest};
use crate::config::{Destination, MarkdownToHtml, OutputPolicy, Transform};
use crate::digest::Fingerprint;
use crate::error::{Code, Detail, Error, Result};
use crate::path::{self, BundlePath, RelPath};
use crate::state::OutputKind;

/// One output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Where it goes, below the destination's bundle path.
    pub path: RelPath,
    /// How it comes to be.
    pub kind: OutputKind,
    /// The source file it comes from.
    pub source_path: RelPath,
    /// The transform that makes it.
    pub transform: Option<&'static str>,
    /// Its public URL.
    pub url: Option<String>,
    /// What its bytes are: those of the source file for a copy, and those of nothing until it is made for others.
    pub content: Fingerprint,
}

/// All outputs of a bundle for one destination.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    /// The outputs, by path.
    pub list: Vec<Output>,
    /// The path of the one to start reading at.
    pub primary: Option<RelPath>,
    /// Its URL.
    pub primary_url: Option<String>,
}

/// The outputs of `manifest` for `destination`, where it is published at `bundle_path`. Fails with `output_collision`
/// where two of them can't stand beside each other.
pub fn outputs(manifest: &Manifest, destination: &Destination, bundle_path: &BundlePath) -> Result<Outputs> {
    let policy = destination.outputs.policy;
    let mut list = Vec::with_capacity(manifest.files.len());
    for file in &manifest.files {
        let transform = if policy == OutputPolicy::SourceOnly { None } else { consumer(destination, &file.path) };
        let copied = match policy {
            OutputPolicy::SourceOnly | OutputPolicy::SourcePlusGenerated => true,
            OutputPolicy::GeneratedOnly => false,
            OutputPolicy::GeneratedPlusAssets => transform.is_none(),
        };
        let url = |path: &RelPath| links::url(&destination.links, bundle_path, path);
        if let Some(transform) = transform {
            let path = made_path(&file.path)?;
            list.push(Output {
                url: url(&path),
                path,
                kind: OutputKind::Generated,
                source_path: file.path.clone(),
                transform: Some(transform.as_str()),
                content: Fingerprint::of(b""),
            });
        }
        if copied {
            list.push(Output {
                url: url(&file.path),
                path: file.path.clone(),
                kind: OutputKind::Source,
                source_path: file.path.clone(),
                transform: None,
                content: file.fingerprint(),
            });
        }
    }
    list.sort_unstable_by(|a, b| a.path.cmp(&b.path).then_with(|| a.source_path.cmp(&b.source_path)));
    refuse_collisions(&list)?;
    let primary = links::primary(&destination.links, &list);
    let (path, url) = (primary.map(|output| output.path.clone()), primary.and_then(|output| output.url.clone()));
    Ok(Outputs { list, primary: path, primary_url: url })
}

/// The transform that takes a file: the first one that a pattern of it matches.
fn consumer<'a>(destination: &'a Destination, path: &RelPath) -> Option<&'a Transform> {
    destination.transforms.iter().find(|transform| match transform {
        Transform::MarkdownToHtml(settings) => settings.patterns.iter().any(|pattern| pattern.matches(path)),
    })
}

fn made_path(source: &RelPath) -> Result<RelPath> {
    markdown::output_path(source).map_err(|fault| {
        let message = format!("{source}: no page can have a name made of this one: {fault}");
        Error::new(Code::OutputCollision, message)
            .hint("rename it in the source, or leave it out of the transform's match")
    })
}

/// Two outputs on one path, or one that is a directory of another. `list` is sorted.
fn refuse_collisions(list: &[Output]) -> Result<()> {
    let mut details = Vec::new();
    let mut add = |path: &RelPath, message: String| {
        details.push(Detail::new(Code::OutputCollision, message, Some(path.to_string())));
    };
    for [a, b] in list.array_windows().filter(|[a, b]| a.path == b.path) {
        add(&a.path, format!("{}: both {} and {} become this output", a.path, a.source_path, b.source_path));
    }
    // Paths of the manifest itself can stand beside each other.
    if list.iter().any(|output| output.kind == OutputKind::Generated) {
        let paths: Vec<&RelPath> = list.iter().map(|output| &output.path).collect();
        let source = |path: &str| list.iter().find(|o| o.path.as_str() == path).map_or("", |o| o.source_path.as_str());
        for path::Clash { first, second } in path::nested(&paths) {
            let message = format!(
                "{first}: it becomes of {}, and is a directory of {second}, which becomes of {}",
                source(first),
                source(second)
            );
            details.push(Detail::new(Code::OutputCollision, message, Some(first.to_owned())));
        }
    }
    if details.is_empty() {
        return Ok(());
    }
    let hint = "rename one of the two in the source, choose another outputs.policy, or narrow the transform's match";
    Err(Error::of(Code::OutputCollision, details).hint(hint))
}

/// The files of a bundle that no output comes from: they are still looked at, for the bundle is whole or not published.
pub fn unused<'a>(manifest: &'a Manifest, outputs: &[&Output]) -> Vec<&'a FileEntry> {
    let used: std::collections::BTreeSet<&RelPath> = outputs.iter().map(|output| &output.source_path).collect();
    manifest.files.iter().filter(|file| !used.contains(&file.path)).collect()
}

/// The largest Markdown file, in bytes: one is held in memory whole, with the page that it becomes.
const MAX_MARKDOWN: u64 = 16 * 1024 * 1024;

/// What pages are made with: the same for all of one bundle and destination.
pub struct Pages<'a> {
    manifest: &'a Manifest,
    destination: &'a Destination,
    files: BTreeMap<&'a RelPath, &'a FileEntry>,
    /// The outputs that Markdown files become, by the files.
    made: BTreeMap<&'a str, &'a RelPath>,
}

impl<'a> Pages<'a> {
    /// For the `outputs` of `manifest` for `destination`.
    pub fn of(
        manifest: &'a Manifest,
        destination: &'a Destination,
        outputs: impl Iterator<Item = &'a Output>,
    ) -> Pages<'a> {
        let made = outputs.filter(|output| output.kind == OutputKind::Generated);
        let made: BTreeMap<&str, &RelPath> = made.map(|output| (output.source_path.as_str(), &output.path)).collect();
        let files = manifest.files.iter().filter(|file| made.contains_key(file.path.as_str()));
        Pages { manifest, destination, files: files.map(|file| (&file.path, file)).collect(), made }
    }

    /// The source file of a generated output. Fails with `invalid_markdown` where it is too large to be made into one.
    pub fn source(&self, output: &Output) -> Result<&'a FileEntry> {
        let file = self.files.get(&output.source_path).copied();
        let file = file.ok_or_else(|| Error::new(Code::NotFound, format!("{}: not listed", output.source_path)))?;
        if file.size > MAX_MARKDOWN {
            let message = format!("{}: {} bytes, and Markdown is read up to {MAX_MARKDOWN}", file.path, file.size);
            return Err(Error::new(Code::InvalidMarkdown, message));
        }
        Ok(file)
    }

    /// Makes the output of its source's bytes. Fails with `invalid_markdown` where they are not UTF-8.
    pub fn make(&self, output: &Output, source: &[u8]) -> Result<Vec<u8>> {
        let Some(settings) = self.settings(output) else {
            return Err(Error::new(Code::InvalidMarkdown, format!("{}: no transform takes it", output.source_path)));
        };
        let page = markdown::Page {
            source_path: &output.source_path,
            output_path: &output.path,
            created: &self.manifest.created,
            bundle_id: &self.manifest.id,
            settings,
            output_of: &|path| self.made.get(path).copied(),
        };
        markdown::render(source, &page).map_err(|wrong| {
            let message = format!("{}: not UTF-8 at byte {}", output.source_path, wrong.offset);
            Error::new(Code::InvalidMarkdown, message)
        })
    }

    fn settings(&self, output: &Output) -> Option<&'a MarkdownToHtml> {
        consumer(self.destination, &output.source_path).map(|Transform::MarkdownToHtml(settings)| settings)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use super::*;
    use crate::config;
    use crate::digest::Digest;
    use crate::timestamp::Timestamp;

    fn destination(settings: &str) -> Destination {
        let text = format!(
            "pipelines: [{{id: p, source: {{backend: local, path: /in}}, \
             destinations: [{{id: d, backend: local, path: /out, {settings}}}]}}]"
        );
        let read = |_: &Path| Err(io::ErrorKind::NotFound.into());
        let world = config::World { home: None, state_directory: None, read: &read };
        let (mut config, _) = config::parse(text.as_bytes(), Path::new("/etc/site.yml"), &world).unwrap();
        config.pipelines.remove(0).destinations.remove(0)
    }

    fn manifest(paths: &[&str]) -> Manifest {
        let entry = |path: &&str| {
            let path = RelPath::parse(path).unwrap();
            FileEntry { sha256: Digest::of(path.as_str().as_bytes()), path, size: 1 }
        };
        let files: Vec<FileEntry> = paths.iter().map(entry).collect();
        let created = Timestamp::parse("2026-06-04T11:55:00Z").unwrap();
        Manifest { schema_version: 1, id: "x".to_owned(), digest: Digest::of(b""), created, files }
    }

    fn found(settings: &str, paths: &[&str]) -> Result<Vec<String>> {
        let (manifest, destination) = (manifest(paths), destination(settings));
        let all = outputs(&manifest, &destination, &BundlePath::ROOT)?;
        Ok(all.list.iter().map(|o| format!("{} of {}", o.path, o.source_path)).collect())
    }

    const PAGES: &str = "transforms: [{type: markdown_to_html}]";

    #[test]
    fn a_policy_says_which_files_a_destination_gets() {
        let bundle = ["a.md", "d/b.markdown", "logo.svg"];
        let of = |policy: &str| {
            let transforms = if policy == "source_only" { "transforms: []" } else { PAGES };
            found(&format!("outputs: {{policy: {policy}}}, {transforms}"), &bundle).unwrap()
        };
        let copies = ["a.md of a.md", "d/b.markdown of d/b.markdown", "logo.svg of logo.svg"];
        let pages = ["a.html of a.md", "d/b.html of d/b.markdown"];
        assert_eq!(of("source_only"), copies);
        assert_eq!(of("generated_only"), pages);
        assert_eq!(of("source_plus_generated"), [pages[0], copies[0], pages[1], copies[1], copies[2]]);
        assert_eq!(of("generated_plus_assets"), [pages[0], pages[1], copies[2]]);
    }

    #[test]
    fn a_pattern_says_what_a_transform_takes() {
        let only = |patterns: &str| {
            let settings = format!(
                "outputs: {{policy: generated_only}}, transforms: [{{type: markdown_to_html, match: [{patterns}]}}]"
            );
            found(&settings, &["a.md", "d/b.md", "c.txt", "README"]).unwrap()
        };
        assert_eq!(only("'d/**'"), ["d/b.html of d/b.md"]);
        assert_eq!(only("'*.txt', README"), ["README.html of README", "c.html of c.txt"]);
        assert_eq!(only("'none'"), [""; 0]);
    }

    #[test]
    fn outputs_that_can_not_stand_beside_each_other_are_named_with_their_sources() {
        let all = format!("outputs: {{policy: source_plus_generated}}, {PAGES}");
        for (paths, sources) in [
            (["a.md", "a.html"], ["a.html", "a.md"]),
            (["a.md", "a.markdown"], ["a.markdown", "a.md"]),
            (["a.md", "a.html/b"], ["a.md", "a.html/b"]),
        ] {
            let error = found(&all, &paths).unwrap_err();
            assert_eq!(error.code, Code::OutputCollision);
            assert!(sources.iter().all(|source| error.message.contains(source)), "{}", error.message);
        }
        // Where only one of the two is published there is no collision.
        assert!(found(&format!("outputs: {{policy: generated_only}}, {PAGES}"), &["a.md", "a.html"]).is_ok());
    }

    #[test]
    fn the_primary_output_may_be_a_page() {
        let (manifest, destination) = (
            manifest(&["index.md", "a.html"]),
            destination(&format!(
                "outputs: {{policy: source_plus_generated}}, {PAGES}, links: {{base_url: 'https://h/x'}}"
            )),
        );
        let all = outputs(&manifest, &destination, &BundlePath::ROOT).unwrap();
        assert_eq!(all.primary_url.as_deref(), Some("https://h/x/index.html"));
    }

    #[test]
    fn what_no_output_comes_from_is_unused() {
        let (manifest, destination) =
            (manifest(&["a.md", "logo.svg"]), destination(&format!("outputs: {{policy: generated_only}}, {PAGES}")));
        let all = outputs(&manifest, &destination, &BundlePath::ROOT).unwrap();
        let left = unused(&manifest, &all.list.iter().collect::<Vec<_>>());
        assert_eq!(left.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["logo.svg"]);
    }
}
