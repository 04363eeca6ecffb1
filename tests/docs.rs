//! What the code has stands on its page, and what stands on a page the code has.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use distributor::cli::{self, Program};
use distributor::error::Code;

fn all_programs() -> impl Iterator<Item = &'static Program> {
    std::iter::once(&cli::DISTRIBUTOR).chain(cli::PROGRAMS.iter().copied())
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Every flag that the macro lines of a page name, as `-c` and `--config`; `Fl nqv` is three.
fn flags(page: &str) -> BTreeSet<String> {
    let mut flags = BTreeSet::new();
    for line in page.lines().filter(|line| line.starts_with('.') && !line.starts_with(".\\\"")) {
        let words: Vec<&str> = line.trim_start_matches('.').split_whitespace().collect();
        for pair in words.windows(2).filter(|pair| pair[0] == "Fl") {
            match pair[1].strip_prefix('-') {
                Some(long) => flags.extend([format!("--{long}")]),
                None => flags.extend(pair[1].chars().map(|letter| format!("-{letter}"))),
            }
        }
    }
    flags
}

/// The tags of a page's lists, by the macro that they begin with (`Ic`, or none), in the section called `section`.
fn rows(page: &str, section: &str, mark: &str) -> Vec<String> {
    let mut rows = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if let Some(name) = line.strip_prefix(".Sh ") {
            inside = name == section;
        }
        let tag = line.strip_prefix(".It ").and_then(|tag| tag.strip_prefix(mark));
        if let Some(tag) = tag.filter(|_| inside) {
            rows.push(tag.trim().to_owned());
        }
    }
    rows
}

fn declared(program: &Program) -> BTreeSet<String> {
    let long = program.flags().map(|flag| format!("--{}", flag.long));
    let short = program.flags().filter_map(|flag| flag.short).map(|letter| format!("-{letter}"));
    long.chain(short).collect()
}

/// What is on one side only, one line each.
fn differences(what: &str, code: &BTreeSet<String>, page: &BTreeSet<String>) -> Vec<String> {
    let missing = code.difference(page).map(|name| format!("{what}: {name} is not there"));
    let extra = page.difference(code).map(|name| format!("{what}: {name} is nothing that the code has"));
    missing.chain(extra).collect()
}

#[track_caller]
fn none(faults: &[String]) {
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_flag_stands_on_the_page_of_its_program() {
    let page = |program: &Program| read(&format!("man/{}.1", program.name));
    let faults = all_programs().flat_map(|program| {
        differences(&format!("man/{}.1", program.name), &declared(program), &flags(&page(program)))
    });
    none(&faults.collect::<Vec<_>>());
}

#[test]
fn every_page_of_a_program_has_its_sections_and_says_who_it_is() {
    let mut faults = Vec::new();
    for program in all_programs() {
        let page = read(&format!("man/{}.1", program.name));
        let mut sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".Sh ")).collect();
        sections.dedup();
        let wanted = ["NAME", "SYNOPSIS", "DESCRIPTION", "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES", "SEE ALSO"];
        let missing = wanted.iter().filter(|name| !sections.contains(name));
        faults.extend(missing.map(|name| format!("man/{}.1: no section {name}", program.name)));
        if !page.contains(&format!("\n.Nm {}\n.Nd {}\n", program.name, program.job)) {
            faults.push(format!("man/{}.1: NAME does not say \"{}\"", program.name, program.job));
        }
        if program.flags().any(|flag| flag.long == "config") && !page.contains(".It Ev DISTRIBUTOR_CONFIG") {
            faults.push(format!("man/{}.1: DISTRIBUTOR_CONFIG is not there", program.name));
        }
    }
    none(&faults);
}

#[test]
fn every_exit_status_stands_on_every_page() {
    let wanted: Vec<&str> = cli::EXIT_STATUS.iter().map(|(status, _)| *status).collect();
    let pages = all_programs().map(|program| format!("man/{}.1", program.name));
    for page in pages.chain(["man/distributor.7".to_owned()]) {
        assert_eq!(rows(&read(&page), "EXIT STATUS", ""), wanted, "{page}");
    }
}

#[test]
fn every_code_stands_in_the_overview() {
    let page = read("man/distributor.7");
    let found = rows(&page, "CODES", "Ic ");
    let wanted: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(found, wanted, "the rows of CODES in man/distributor.7, in the order of the code");
}

/// What stands under each heading `### ` of a document, by the heading.
fn sections(document: &str) -> Vec<(&str, &str)> {
    let all = document.split("\n### ").skip(1).filter_map(|section| section.split_once('\n'));
    all.map(|(heading, text)| (heading, text.split("\n## ").next().unwrap_or_default())).collect()
}

#[test]
fn every_code_stands_in_troubleshooting_with_what_to_do() {
    let document = read("docs/troubleshooting.md");
    let sections = sections(&document);
    // Headings of other symptoms are more than one name.
    let name = |heading: &str| Some(heading.strip_prefix('`')?.strip_suffix('`')?.to_owned());
    let mut found = BTreeSet::new();
    let twice = sections.iter().filter_map(|(heading, _)| name(heading)).filter(|code| !found.insert(code.clone()));
    let mut faults: Vec<String> = twice.map(|code| format!("docs/troubleshooting.md: {code} stands twice")).collect();
    let wanted: BTreeSet<String> = Code::ALL.iter().map(ToString::to_string).collect();
    faults.extend(differences("docs/troubleshooting.md", &wanted, &found));
    let bare = sections.iter().filter(|(_, text)| text.starts_with("\n1. ") || !text.contains("\n1. "));
    faults.extend(bare.map(|(heading, _)| format!("docs/troubleshooting.md: {heading}: no meaning, or no steps")));
    none(&faults);
}

#[test]
fn every_link_in_the_documents_leads_somewhere() {
    let mut faults = Vec::new();
    let documents = fs::read_dir(file("docs")).expect("docs/").map(|entry| entry.expect("docs/").path());
    for path in documents.filter(|path| path.extension().is_some_and(|e| e == "md")).chain([file("README.md")]) {
        let text = fs::read_to_string(&path).expect("a document");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") {
                continue;
            }
            let (name, anchor) = target.split_once('#').map_or((target, None), |(name, anchor)| (name, Some(anchor)));
            let other = if name.is_empty() { path.clone() } else { path.parent().expect("a parent").join(name) };
            let there = other.exists()
                && anchor
                    .is_none_or(|anchor| fs::read_to_string(&other).is_ok_and(|text| anchors(&text).contains(anchor)));
            if !there {
                faults.push(format!("{}: {target}", path.display()));
            }
        }
    }
    none(&faults);
}

/// The anchors of a document's headings, as Git forges make them.
fn anchors(document: &str) -> BTreeSet<String> {
    let headings = document.lines().filter(|line| line.starts_with('#'));
    let plain = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
    let anchor = |text: &str| text.trim().to_lowercase().chars().filter(plain).collect::<String>().replace(' ', "-");
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

#[test]
fn every_program_is_listed_where_programs_are() {
    let cargo = read("Cargo.toml");
    let names: BTreeSet<String> = all_programs().map(|program| program.name.to_owned()).collect();
    let bins: BTreeSet<String> = cargo
        .split("[[bin]]")
        .skip(1)
        .filter_map(|table| Some(table.split_once("name = \"")?.1.split_once('"')?.0.to_owned()))
        .collect();
    let makefile = read("Makefile");
    let made = makefile.lines().find_map(|line| line.strip_prefix("PROGRAMS = ")).unwrap_or_default();
    let made: BTreeSet<String> = made.split_whitespace().map(str::to_owned).collect();
    let mut faults = differences("Cargo.toml", &names, &bins);
    faults.extend(differences("Makefile", &names, &made));
    let (readme, overview) = (read("README.md"), read("man/distributor.1"));
    for name in &names {
        if !readme.contains(&format!("`{name}`")) {
            faults.push(format!("README.md: `{name}` is not there"));
        }
        if name != cli::DISTRIBUTOR.name && !overview.contains(&format!(".Xr {name} 1")) {
            faults.push(format!("man/distributor.1: {name}(1) is not there"));
        }
        if !cargo.contains(&format!("name = \"{name}\"\npath = \"bin/{name}.rs\"")) {
            faults.push(format!("Cargo.toml: {name} is not bin/{name}.rs"));
        }
    }
    none(&faults);
}

#[test]
fn every_reference_to_a_page_of_ours_leads_to_one() {
    let mut faults = Vec::new();
    for entry in fs::read_dir(file("man")).expect("man/") {
        let path = entry.expect("man/").path();
        let page = fs::read_to_string(&path).expect("a page");
        for line in page.lines() {
            let words: Vec<&str> = line.trim_start_matches('.').split_whitespace().collect();
            for three in words.windows(3).filter(|three| three[0] == "Xr" && three[1].starts_with("distributor")) {
                let other = format!("man/{}.{}", three[1], three[2]);
                if !file(&other).exists() {
                    faults.push(format!("{}: {other} is not there", path.display()));
                }
            }
        }
    }
    none(&faults);
}

#[test]
fn mandoc_has_nothing_to_say() {
    let no_skip = std::env::var_os("DISTRIBUTOR_TEST_NO_SKIP").is_some();
    match Command::new("make").arg("-s").arg("lint-man").current_dir(file(".")).output() {
        _ if Command::new("mandoc").arg("/dev/null").output().is_err() => assert!(!no_skip, "mandoc is missing"),
        Ok(lint) => assert!(lint.status.success(), "{}", String::from_utf8_lossy(&lint.stderr)),
        Err(error) => assert!(!no_skip, "make: {error}"),
    }
}

#[test]
fn the_reading_of_pages_sees_what_is_there() {
    let page = ".\\\" Fl -no\n.Op Fl c Ar file\n.It Fl n , Fl -dry-run\n.Op Fl qv\ntext Fl -no\n.Sh EXIT STATUS\n.It 0\n.It 130\n\
        .Sh CODES\n.It Ic usage\n.It Sy other\n";
    assert_eq!(flags(page), ["-c", "-n", "-q", "-v", "--dry-run"].map(str::to_owned).into());
    assert_eq!(rows(page, "EXIT STATUS", ""), ["0", "130"]);
    assert_eq!(rows(page, "CODES", "Ic "), ["usage"]);
    let document = "# T\n\n### `a`\n\nOne.\n\n1. Do.\n\n## Next, `x_y`\n\n### Other\n\n";
    assert_eq!(sections(document), [("`a`", "\nOne.\n\n1. Do.\n"), ("Other", "\n")]);
    assert_eq!(anchors(document), ["t", "a", "next-x_y", "other"].map(str::to_owned).into());
    let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(
        differences("p", &set(&["a", "b"]), &set(&["b", "c"])),
        ["p: a is not there", "p: c is nothing that the code has"]
    );
}
