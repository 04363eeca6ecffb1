//! The programs: one table each.

use super::flags::{
    ALL_OWNERS, APPLY, BUNDLE_PATH, COMMON, CONFIG, CREATED, DESTINATION, DESTINATIONS, DETAILED_EXITCODE, DRY_RUN,
    FORCE, FORCE_MANIFEST, Flag, HELP, ID, LOCK_TIMEOUT, OWNER_PIPELINE, PIPELINE, PIPELINES, REPUBLISH, STRICT,
    VERSION,
};

/// A program and its command line.
#[derive(Debug)]
pub struct Program {
    /// The name of its file.
    pub name: &'static str,
    /// What it does, in a few words.
    pub job: &'static str,
    /// Its command lines, without the name.
    pub synopsis: &'static [&'static str],
    /// The operand it takes at most one of.
    pub operand: Option<&'static str>,
    /// Its own flags, in the order of its help.
    pub own: &'static [&'static Flag],
    /// The flags it shares.
    pub common: &'static [&'static Flag],
}

impl Program {
    /// All its flags.
    pub fn flags(&self) -> impl Iterator<Item = &'static Flag> {
        self.own.iter().chain(self.common).copied()
    }

    /// What `--help` prints.
    pub fn help(&self) -> String {
        let mut text = format!("{} - {}\n\n", self.name, self.job);
        for (at, line) in self.synopsis.iter().enumerate() {
            let lead = if at == 0 { "usage: " } else { "       " };
            text += &format!("{lead}{} {line}\n", self.name);
        }
        text += "\n";
        let names: Vec<String> = self.flags().map(names).collect();
        let width = names.iter().map(String::len).max().unwrap_or_default();
        for (name, flag) in names.iter().zip(self.flags()) {
            text += &format!("  {name:width$}  {}\n", flag.help);
        }
        let config = if self.flags().any(|flag| *flag == CONFIG) { ", distributor.yml(5)" } else { "" };
        text + &format!("\nSee {}(1){config} and distributor(7).\n", self.name)
    }
}

fn names(flag: &Flag) -> String {
    let short = flag.short.map_or("    ".to_owned(), |short| format!("-{short}, "));
    let value = flag.value.map_or(String::new(), |value| format!(" {value}"));
    format!("{short}--{}{value}", flag.long)
}

/// `distributor-run`.
pub const RUN: Program = Program {
    name: "distributor-run",
    job: "publish the configured pipelines once",
    synopsis: &[
        "[--config FILE] [--pipeline ID]... [--destination [PIPELINE/]ID]... [--dry-run [--detailed-exitcode]] \
         [--force] [--republish] [--lock-timeout DURATION]",
    ],
    operand: None,
    own: &[&CONFIG, &PIPELINES, &DESTINATIONS, &DRY_RUN, &DETAILED_EXITCODE, &FORCE, &REPUBLISH, &LOCK_TIMEOUT],
    common: COMMON,
};

/// `distributor-validate`.
pub const VALIDATE: Program = Program {
    name: "distributor-validate",
    job: "check a bundle directory, a pipeline's source, or a configuration",
    synopsis: &["DIR [--strict]", "[--config FILE] --pipeline ID [--strict]", "--config FILE"],
    operand: Some("DIR"),
    own: &[&CONFIG, &PIPELINE, &STRICT],
    common: COMMON,
};

/// `distributor-inspect`.
pub const INSPECT: Program = Program {
    name: "distributor-inspect",
    job: "show what a bundle or a pipeline's source holds",
    synopsis: &["DIR", "[--config FILE] --pipeline ID"],
    operand: Some("DIR"),
    own: &[&CONFIG, &PIPELINE],
    common: COMMON,
};

/// `distributor-reconcile-state`.
pub const RECONCILE_STATE: Program = Program {
    name: "distributor-reconcile-state",
    job: "drop records of managed outputs that no longer exist",
    synopsis: &["[--config FILE] --pipeline ID --destination ID [--bundle-path PATH] [--all-owners] [--dry-run] \
         [--lock-timeout DURATION]"],
    operand: None,
    own: &[&CONFIG, &OWNER_PIPELINE, &DESTINATION, &BUNDLE_PATH, &ALL_OWNERS, &DRY_RUN, &LOCK_TIMEOUT],
    common: COMMON,
};

/// `distributor-prune`.
pub const PRUNE: Program = Program {
    name: "distributor-prune",
    job: "delete managed outputs by the configured retention policy",
    synopsis: &["[--config FILE] --pipeline ID --destination ID [--bundle-path PATH] (--dry-run | --apply) \
         [--lock-timeout DURATION]"],
    operand: None,
    own: &[&CONFIG, &OWNER_PIPELINE, &DESTINATION, &BUNDLE_PATH, &DRY_RUN, &APPLY, &LOCK_TIMEOUT],
    common: COMMON,
};

/// `distributor-bundle`.
pub const BUNDLE: Program = Program {
    name: "distributor-bundle",
    job: "write a bundle's manifest.json",
    synopsis: &["DIR --id ID [--created TIME] [--force]"],
    operand: Some("DIR"),
    own: &[&ID, &CREATED, &FORCE_MANIFEST],
    common: COMMON,
};

/// `distributor`, the dispatcher.
pub const DISTRIBUTOR: Program = Program {
    name: "distributor",
    job: "run one of the distributor programs",
    synopsis: &["COMMAND [ARGUMENT]..."],
    operand: None,
    own: &[],
    common: &[&HELP, &VERSION],
};

/// The programs that `distributor COMMAND` finds.
pub const PROGRAMS: &[&Program] = &[&RUN, &VALIDATE, &INSPECT, &RECONCILE_STATE, &PRUNE, &BUNDLE];
