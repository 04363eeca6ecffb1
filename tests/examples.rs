//! The examples and the blocks of the guides, really run by the built programs.
// clippy.toml lets tests unwrap, but not the helpers that they share.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use distributor::config::{self, Source, Target, World};
use serde_json::Value;
use tempfile::TempDir;

fn project(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(project(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A command that finds the built programs first.
fn command(program: &str, dir: &Path) -> Command {
    let bin = Path::new(env!("CARGO_BIN_EXE_distributor-run")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(program);
    command.current_dir(dir).env("PATH", path).env_remove("DISTRIBUTOR_CONFIG").env("NO_COLOR", "1");
    command
}

/// Runs a block as a shell script that ends at its first failure; its standard output.
fn shell(dir: &Path, block: &str) -> String {
    let output = command("sh", dir).args(["-euc", block]).output().unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{block}\n{stdout}\n{stderr}", output.status);
    stdout
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A fresh copy of examples/.
fn examples() -> (TempDir, PathBuf) {
    let scene = tempfile::tempdir().unwrap();
    let dir = scene.path().join("examples");
    copy(&project("examples"), &dir);
    (scene, dir)
}

/// Every file and directory below `dir` but those in `except`: inode, size and times.
fn snapshot(dir: &Path, except: &[PathBuf]) -> BTreeMap<PathBuf, (u64, u64, i64, i64)> {
    let mut seen = BTreeMap::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            if except.iter().any(|root| path.starts_with(root)) {
                continue;
            }
            // A directory changes where a destination is made in it; its entries tell the rest.
            let stamp =
                if meta.is_dir() { (0, 0, 0, 0) } else { (meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()) };
            // A directory that holds a destination may be made for it.
            if !meta.is_dir() || !except.iter().any(|root| root.starts_with(&path)) {
                seen.insert(path.clone(), stamp);
            }
            if meta.is_dir() {
                pending.push(path);
            }
        }
    }
    seen
}

/// Where a configuration of local places publishes to; none where it needs a server.
fn local_roots(file: &Path) -> Option<Vec<PathBuf>> {
    let world = World { home: None, state_directory: None, read: &|path| fs::read(path) };
    let (config, warnings) = config::parse(&fs::read(file).unwrap(), file, &world)
        .unwrap_or_else(|problems| panic!("{}: {problems:?}", file.display()));
    assert!(warnings.is_empty(), "{}: {warnings:?}", file.display());
    let local = |pipeline: &config::Pipeline| matches!(pipeline.source, Source::Local(_));
    let targets = config.pipelines.iter().flat_map(|pipeline| &pipeline.destinations).map(|d| &d.target);
    let roots = targets.map(|target| match target {
        Target::Local(target) => Some(target.path.clone()),
        _ => None,
    });
    config.pipelines.iter().all(local).then(|| roots.collect::<Option<Vec<_>>>()).flatten()
}

fn configurations(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yml"));
    files.sort();
    files
}

#[test]
fn every_example_publishes_then_skips_and_writes_nowhere_else() {
    let mut ran = 0;
    for file in configurations(&project("examples")) {
        let (scene, dir) = examples();
        let file = dir.join(file.file_name().unwrap());
        let Some(roots) = local_roots(&file) else { continue };
        ran += 1;
        let run = |arguments: &[&str]| {
            let program = env!("CARGO_BIN_EXE_distributor-run");
            // From another directory: paths are relative to the file.
            let mut command = command(program, scene.path());
            let output =
                command.arg("--config").arg(&file).args(["--format", "json"]).args(arguments).output().unwrap();
            assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
            let report = json(&output);
            assert_eq!(report["summary"]["failed"], 0);
            report
        };
        let before = snapshot(scene.path(), &roots);
        run(&["--dry-run"]);
        assert!(roots.iter().all(|root| !root.exists()), "{}: a dry run writes nothing", file.display());
        let first = run(&[]);
        let published = first["summary"]["publish_new"].as_u64().unwrap();
        assert!(published > 0 && first["summary"]["skipped"] == 0, "{}", first["summary"]);
        assert!(roots.iter().all(|root| root.exists()), "{}", file.display());
        let after = snapshot(scene.path(), &[]);
        let second = run(&[]);
        assert_eq!(second["summary"]["skipped"], published, "{}", second["summary"]);
        assert_eq!(second["summary"]["publish_new"], 0);
        assert_eq!(snapshot(scene.path(), &[]), after, "{}: a run that skips writes nothing", file.display());
        assert_eq!(snapshot(scene.path(), &roots), before, "{}: only destinations are written to", file.display());
    }
    assert!(ran >= 2, "{ran} examples ran");
}

#[test]
fn every_example_bundle_is_valid() {
    let (_scene, dir) = examples();
    for entry in fs::read_dir(dir.join("bundles")).unwrap() {
        let bundle = entry.unwrap().path();
        let mut command = command(env!("CARGO_BIN_EXE_distributor-validate"), &dir);
        let output = command.arg(&bundle).args(["--strict", "--format", "json"]).output().unwrap();
        let report = json(&output);
        assert!(output.status.success() && report["bundles"][0]["warnings"] == serde_json::json!([]), "{report}");
    }
}

#[test]
fn the_demonstration_runs() {
    let (scene, dir) = examples();
    copy(&project("docs"), &scene.path().join("docs"));
    let printed = shell(&dir, "sh ./demo.sh");
    let seen: Vec<&str> =
        printed.lines().filter_map(|line| line.split_whitespace().find(|word| ACTIONS.contains(word))).collect();
    let two = |action| [action, action];
    let expected = [
        two("publish_new"),
        two("publish_new"),
        two("publish_new"),
        two("publish_new"),
        two("skip_same"),
        two("skip_same"),
    ];
    let changed = ["skip_same", "skip_same", "replace_older", "replace_older"];
    let refused = ["skip_same", "skip_same", "error", "replace_older"];
    let moved_aside = ["skip_same", "skip_same", "replace_older", "skip_same"];
    let pages = ["publish_new"];
    let expected = [&expected.concat()[..], &changed, &refused, &moved_aside, &pages].concat();
    assert_eq!(seen, expected, "{printed}");
    assert!(scene.path().join("target/demo/www/welcome/.distributor.json").exists());
    // What it says to look at is there.
    let (_, shown) = printed.split_once("\nLook at\n").expect("the end");
    for path in shown.lines().filter_map(|line| line.split_whitespace().next()) {
        assert!(scene.path().join(path).exists(), "{path}");
    }
    let page = fs::read_to_string(scene.path().join("target/demo/published/handbook/index.html")).unwrap();
    assert!(page.contains("<title>Operations handbook</title>") && shown.contains("published/handbook/index.html"));
}

#[test]
fn the_example_of_pages_has_pages_that_lead_to_each_other() {
    let (scene, dir) = examples();
    shell(scene.path(), "distributor-run --config examples/handbook.yml");
    let root = dir.join("published/handbook");
    let page = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    assert!(page("index.html").contains("href=\"deploying.html#checklist\""));
    assert!(page("deploying.html").contains("id=\"checklist\""));
    assert!(page("guides/restore.html").contains("href=\"../index.html\""));
    assert!(root.join("images/flow.svg").exists() && !root.join("index.md").exists());
    let state: Value = serde_json::from_slice(&fs::read(root.join(".distributor.json")).unwrap()).unwrap();
    assert_eq!(state["links"]["primary_url"], "https://www.example.org/handbook/index.html");
}

/// What a run may say that it did.
const ACTIONS: &[&str] = &["publish_new", "replace_older", "skip_same", "error"];

/// The fenced blocks of a document in this language, each with the line it begins on.
fn blocks(document: &str, language: &str) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, String, bool)> = None;
    for (at, line) in document.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => open = Some((at + 2, String::new(), info.trim() == language)),
            (Some(_), Some("")) => {
                let (line, block, wanted) = open.take().unwrap();
                if wanted {
                    blocks.push((line, block));
                }
            }
            (Some((_, block, _)), _) => *block += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

#[test]
fn every_configuration_in_the_documents_is_valid() {
    let mut documents = vec!["README.md".to_owned()];
    for entry in fs::read_dir(project("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            documents.push(format!("docs/{}", path.file_name().unwrap().display()));
        }
    }
    let world = World { home: Some(Path::new("/home/op")), state_directory: None, read: &|path| fs::read(path) };
    let mut found = 0;
    for document in documents {
        let text = text(&document);
        let here = blocks(&text, "sh").into_iter().filter_map(|(line, block)| Some((line, heredoc(&block)?)));
        for (line, block) in blocks(&text, "yaml").into_iter().chain(here) {
            if block.lines().any(|line| line.starts_with("pipelines:")) {
                found += 1;
                let parsed = config::parse(block.as_bytes(), Path::new("/etc/distributor/distributor.yml"), &world);
                assert!(parsed.is_ok(), "{document}:{line}: {:?}", parsed.err());
            }
        }
    }
    assert!(found >= 2, "{found} configurations");
}

#[test]
fn the_example_of_a_shared_root_has_both_owners_in_one_state() {
    let (scene, dir) = examples();
    shell(scene.path(), "distributor-run --config examples/shared-root.yml");
    let root = dir.join("published/www");
    let state: Value = serde_json::from_slice(&fs::read(root.join(".distributor.json")).unwrap()).unwrap();
    let owners: Vec<&Value> = state["owners"].as_array().unwrap().iter().map(|owner| &owner["pipeline_id"]).collect();
    assert_eq!(owners, ["site", "notices"]);
    assert!(root.join("index.html").exists() && root.join("notices/index.html").exists());
}

/// What a block of shell writes with `<<'YAML'`.
fn heredoc(block: &str) -> Option<String> {
    let (_, rest) = block.split_once("<<'YAML'\n")?;
    rest.split_once("\nYAML\n").map(|(body, _)| format!("{body}\n"))
}

/// The actions that the lines of a run's output begin with.
fn actions(printed: &str) -> Vec<&str> {
    printed.lines().filter_map(|line| line.split_whitespace().next().filter(|word| ACTIONS.contains(word))).collect()
}

#[test]
fn the_readme_does_what_it_says() {
    let readme = text("README.md");
    let (_, section) = readme.split_once("\n## Your own files\n").expect("the section");
    let (section, _) = section.split_once("\n## ").unwrap();
    let block = blocks(section, "sh").into_iter().find(|(_, block)| block.starts_with("mkdir ")).expect("the block").1;
    let scene = tempfile::tempdir().unwrap();
    let printed = shell(scene.path(), &block);
    assert_eq!(actions(&printed), ["publish_new", "publish_new", "skip_same"], "look, publish, skip: {printed}");
    let page = "work/www/report/index.html";
    assert!(section.contains(&format!("The page is at `{page}`")));
    assert_eq!(fs::read_to_string(scene.path().join(page)).unwrap(), "<h1>June</h1>\n");
    // And the way to a new version, which stands in the text below it.
    let anew = section.split('`').find(|code| code.contains("--force")).expect("the command");
    let again =
        format!("echo '<h1>July</h1>' > work/source/report/index.html\n{anew}\ndistributor-run -c work/site.yml");
    assert_eq!(actions(&shell(scene.path(), &again)), ["replace_older"]);
    assert_eq!(fs::read_to_string(scene.path().join(page)).unwrap(), "<h1>July</h1>\n");
}

#[test]
fn the_guide_does_what_it_says() {
    let guide = text("docs/getting-started.md");
    let scene = tempfile::tempdir().unwrap();
    let work = scene.path().join("work");
    let (_, configuration) = blocks(&guide, "yaml").remove(0);
    assert!(configuration.starts_with("# work/site.yml\n"));
    let mut printed = Vec::new();
    for (line, block) in blocks(&guide, "sh") {
        // "inside the bundle"
        let inside = block.starts_with("find .");
        let dir = if inside { work.join("source/report") } else { scene.path().to_owned() };
        printed.push((line, shell(&dir, &block)));
        fs::write(work.join("site.yml"), &configuration).unwrap();
    }
    let said = |at: usize| printed[at].1.as_str();
    assert_eq!(printed.len(), 6, "bundle, validate, digest, configuration, publish, jq");
    assert!(said(1).starts_with("valid"), "{}", said(1));
    let manifest: Value = serde_json::from_slice(&fs::read(work.join("source/report/manifest.json")).unwrap()).unwrap();
    let digest = said(2).split_whitespace().next().unwrap();
    assert_eq!(manifest["digest"], format!("sha256:{digest}"));
    assert_eq!(manifest["id"], "reports.monthly");
    assert!(said(3).starts_with("valid"), "{}", said(3));
    assert_eq!(actions(said(4)), ["publish_new", "publish_new"]);
    assert!(work.join("www/report/.distributor.json").exists());
    assert_eq!(said(5), "skip_same report\n");
    what_the_guide_says_of_unknown_files(&guide, scene.path());
}

fn what_the_guide_says_of_unknown_files(guide: &str, dir: &Path) {
    let (_, sample) = blocks(guide, "").remove(0);
    fs::write(dir.join("work/www/report/notes.txt"), "theirs").unwrap();
    shell(
        dir,
        "echo new >> work/source/report/index.html; distributor-bundle work/source/report --id reports.monthly --force",
    );
    let output = command("distributor-run", dir).args(["-c", "work/site.yml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stdout).unwrap().replace(dir.to_str().unwrap(), "/home/you");
    assert!(printed.starts_with(&sample), "the guide says\n{sample}\nand the program\n{printed}");
}

/// A run's lines without how long it took.
fn timeless(printed: &str) -> Vec<&str> {
    printed.lines().map(|line| line.rsplit_once(" in ").map_or(line, |(line, _)| line)).collect()
}

#[test]
fn what_operations_shows_of_merging_and_of_force_is_what_is_printed() {
    let guide = text("docs/operations.md");
    let (_, configuration) = blocks(&text("docs/getting-started.md"), "yaml").remove(0);
    let scene = tempfile::tempdir().unwrap();
    let dir = scene.path();
    let write = |path: &str, text: &str| {
        let path = dir.join("work").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let publish =
        "distributor-bundle work/source/report --id reports.monthly --force -q; distributor-run -c work/site.yml -q";
    // What follows a line of the guide that begins with `$`, up to the end of its block.
    let shown = |part: &str| {
        let (_, rest) =
            guide.split_once(&format!("$ distributor-run --config work/site.yml {part}\n")).expect("a sample");
        let lines: Vec<String> = rest.lines().map(str::to_owned).collect();
        let end = lines.iter().position(|line| line.trim() == "```").expect("an end");
        let indent = lines[end].len() - 3;
        lines[..end].iter().map(|line| line[indent..].to_owned() + "\n").collect::<String>()
    };
    let compare = |part: &str| {
        let printed = shell(dir, &format!("distributor-run --config work/site.yml {part}"));
        assert_eq!(timeless(&shown(part)), timeless(&printed));
    };
    write("site.yml", &format!("{configuration}        reconciliation:\n          mode: merge\n"));
    write("source/report/index.html", "<h1>June</h1>\n");
    write("source/report/data/june.csv", "a,b\n");
    shell(dir, publish);
    shell(dir, "rm work/source/report/data/june.csv");
    write("source/report/data/july.csv", "c,d\n");
    shell(dir, "distributor-bundle work/source/report --id reports.monthly --force");
    compare("--dry-run");
    write("site.yml", &configuration);
    shell(dir, "rm -r work/www work/source/report/data");
    shell(dir, publish);
    write("www/report/draft/july.html", "");
    write("www/report/notes.txt", "");
    shell(dir, "distributor-bundle work/source/report --id reports.monthly --force");
    compare("--destination reports/www --dry-run --force -v");
}

#[test]
fn what_operations_shows_of_pages_is_what_is_printed() {
    let guide = text("docs/operations.md");
    let (_, rest) = guide.split_once("$ distributor-run --config examples/handbook.yml --dry-run\n").expect("a sample");
    let (shown, _) = rest.split_once("\n   ```").expect("an end");
    let shown: String = shown.lines().map(|line| line.strip_prefix("   ").unwrap().to_owned() + "\n").collect();
    let (scene, dir) = examples();
    let printed = shell(scene.path(), "distributor-run --config examples/handbook.yml --dry-run");
    // How large a page is changes with its style.
    let plain = |printed: &str| {
        let lines = timeless(printed).into_iter().map(|line| match line.split_once(" outputs, ") {
            Some((before, after)) => format!("{before} outputs, {}", after.split_once("  ").unwrap().1),
            None => line.to_owned(),
        });
        lines.collect::<Vec<_>>()
    };
    assert_eq!(plain(&shown), plain(&printed));
    assert!(!dir.join("published").exists());
    // The other block of that section, at what is published.
    let (_, section) = guide.split_once("\n## Pages from Markdown\n").expect("the section");
    let block = blocks(section.split("\n## ").next().unwrap(), "sh").remove(0).1;
    shell(scene.path(), "distributor-run --config examples/handbook.yml --quiet");
    let pages = shell(&dir.join("published/handbook"), &block);
    assert_eq!(pages, "deploying.html  deploying.md\nguides/restore.html  guides/restore.md\nindex.html  index.md\n");
}

#[test]
fn what_operations_says_of_checks_is_so() {
    let guide = text("docs/operations.md");
    let (_, section) = guide.split_once("\n## Is anything pending?\n").expect("the section");
    let check = blocks(section, "sh").remove(0).1;
    let readme = text("README.md");
    let scene = tempfile::tempdir().unwrap();
    let (_, block) =
        blocks(&readme, "sh").into_iter().find(|(_, block)| block.starts_with("mkdir ")).expect("the block");
    let (before, _) = block.split_once("\ndistributor-run ").expect("a run");
    shell(scene.path(), before);
    assert_eq!(shell(scene.path(), &check), "changes are pending\n");
    shell(scene.path(), "distributor-run --config work/site.yml --quiet");
    assert_eq!(shell(scene.path(), &check), "all is published\n");
}

#[test]
fn the_manual_s_producer_in_shell_makes_a_valid_bundle() {
    let page = text("man/distributor-bundle.5");
    let (_, script) = page.split_once("\ncd report && ").expect("the script");
    let (script, _) = script.split_once("\n.Ed").unwrap();
    let script = format!("cd report && {}", script.replace("\\e", "\\").replace("\\-", "-"));
    let scene = tempfile::tempdir().unwrap();
    for (name, content) in [("a b/ü.md", "hello\n"), ("-dash", ""), ("z", "z"), ("B", "b")] {
        let path = scene.path().join("report").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    shell(scene.path(), &script);
    let printed = shell(scene.path(), "distributor-validate report --strict");
    assert!(printed.starts_with("valid"), "{printed}");
}
