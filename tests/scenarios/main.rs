//! Plays every script of testdata/scenarios, whose README describes their format. `SCENARIO=text` picks those whose
//! path holds the text.

mod directives;
mod expect;
mod play;
mod preview;
mod scene;
mod script;
#[cfg(test)]
mod tests;
mod words;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use play::Command;

fn command(name: &str) -> Option<Command> {
    use distributor::commands;
    Some(match name {
        "distributor" => commands::distributor::main,
        "distributor-bundle" => commands::bundle::main,
        "distributor-inspect" => commands::inspect::main,
        "distributor-prune" => commands::prune::main,
        "distributor-reconcile-state" => commands::reconcile_state::main,
        "distributor-run" => commands::run::main,
        "distributor-validate" => commands::validate::main,
        _ => return None,
    })
}

/// Where the scripts lie, below the package's directory.
const SCRIPTS: &str = "testdata/scenarios";

/// Every script below `dir`, in the order of their paths.
fn scripts(dir: &Path, into: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut paths = fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            scripts(&path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            into.push(path);
        }
    }
    Ok(())
}

/// Plays one script; a failure begins with the line it was found on.
fn check(root: &Path, path: &Path) -> Result<(), String> {
    let shown = path.strip_prefix(root).unwrap_or(path).display();
    let text = fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
    play::play(&text, command).map_err(|(line, problem)| format!("{shown}:{line}: {problem}"))
}

#[test]
fn every_scenario_plays_as_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    scripts(&root.join(SCRIPTS), &mut paths).expect("the scripts can be listed");
    let wanted = std::env::var("SCENARIO").unwrap_or_default();
    paths.retain(|path| path.to_string_lossy().contains(&wanted));
    assert!(!paths.is_empty(), "no script below {SCRIPTS}");
    let results = distributor::pool::map(distributor::pool::cores(), &paths, |path| check(root, path));
    let mut list = Vec::new();
    for (path, result) in paths.iter().zip(&results) {
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        list.push(format!("{} ... {verdict}\n", path.strip_prefix(root).unwrap_or(path).display()));
    }
    let failures: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    // Past libtest's capture: the scripts are the tests, so they are listed as tests are.
    let _ = io::stdout().write_all(list.concat().as_bytes());
    assert!(failures.is_empty(), "{} of {} failed\n\n{}", failures.len(), paths.len(), failures.join("\n\n"));
}
