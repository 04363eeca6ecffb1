//! The programs by their names, versions and exit statuses.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::scene::{BUNDLE, DISTRIBUTOR, INSPECT, RUN, Scene, VALIDATE, stderr, stdout};

#[test]
fn distributor_becomes_the_program_beside_it() {
    let scene = Scene::new();
    scene.write("in/report.md", "x").bundle("in");
    let output = scene.output(DISTRIBUTOR, &["run", "--version"]);
    assert_eq!(stdout(&output), format!("distributor-run {}\n", env!("CARGO_PKG_VERSION")));
    let output = scene.output(DISTRIBUTOR, &["run", "-c", "site.yml"]);
    assert!(output.status.success() && stdout(&output).starts_with("publish_new"), "{}", stderr(&output));
    // Its status and its messages are the program's.
    let output = scene.output(DISTRIBUTOR, &["validate", "nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("distributor-validate: "), "{}", stderr(&output));
    assert_eq!(scene.output(DISTRIBUTOR, &["inspect", "--bogus"]).status.code(), Some(2));
    // A link to it elsewhere finds them too.
    symlink(DISTRIBUTOR, scene.path("distributor")).unwrap();
    let output = scene.output(scene.path("distributor").to_str().unwrap(), &["bundle", "--help"]);
    assert!(output.status.success() && stdout(&output).starts_with("distributor-bundle - "), "{}", stderr(&output));
}

#[test]
fn distributor_lists_the_programs_and_suggests_what_was_meant() {
    let scene = Scene::new();
    let output = scene.output(DISTRIBUTOR, &[]);
    let listed: Vec<String> =
        stdout(&output).lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect();
    assert!(output.status.success());
    for program in ["distributor-run", "distributor-validate", "distributor-inspect", "distributor-bundle"] {
        assert!(listed.iter().any(|name| name == program), "{listed:?}");
    }
    let output = scene.output(DISTRIBUTOR, &["rnu", "-c", "site.yml"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
    assert_eq!(stderr(&output), "distributor: there is no command \"rnu\": did you mean run? [usage]\n");
    let output = scene.output(DISTRIBUTOR, &["frobnicate"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("see distributor --help"), "{}", stderr(&output));
}

#[test]
fn every_program_says_its_version() {
    let scene = Scene::new();
    for program in [RUN, VALIDATE, INSPECT, BUNDLE, DISTRIBUTOR] {
        let name = Path::new(program).file_name().unwrap().to_str().unwrap();
        for flag in ["--version", "-V"] {
            let output = scene.output(program, &[flag]);
            assert!(output.status.success());
            assert_eq!(stdout(&output), format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
            assert_eq!(stderr(&output), "");
        }
    }
}

#[test]
fn statuses_are_those_of_the_table() {
    let scene = Scene::new();
    scene.write("in/report.md", "x").bundle("in");
    let status = |program, arguments: &[&str]| scene.output(program, arguments).status.code().unwrap();
    assert_eq!(status(RUN, &["-c", "site.yml"]), 0, "published");
    assert_eq!(status(RUN, &["-c", "site.yml"]), 0, "skipped");
    assert_eq!(status(RUN, &["-c", "site.yml", "--dry-run"]), 0);
    scene.write("in/report.md", "y");
    assert_eq!(status(VALIDATE, &["in"]), 1);
    scene.output(BUNDLE, &["in", "--id", "other", "--force"]);
    assert_eq!(status(RUN, &["-c", "site.yml"]), 1, "another source id");
    assert_eq!(status(RUN, &["-c", "site.yml", "--dry-run"]), 1);
    for (program, arguments) in [
        (RUN, &["-c", "nowhere.yml"][..]),
        (RUN, &["--bogus"]),
        (VALIDATE, &[]),
        (INSPECT, &[]),
        (BUNDLE, &["in"]),
        (DISTRIBUTOR, &["--bogus"]),
    ] {
        let output = scene.output(program, arguments);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{program} {arguments:?}");
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    }
}
