//! The runner itself: what it must find, it finds.

use distributor::cli;
use distributor::host::Host;
use serde_json::json;

use super::play::{Command, play};

/// A program that does what its first argument says.
fn puppet(host: &Host) -> u8 {
    let args: Vec<String> = host.args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let word = |at: usize| args.get(at).map_or("", String::as_str);
    let say = |text: &str| host.stdout.write(text).unwrap();
    match word(0) {
        "say" => say(&format!("{}\n", args[1..].join("\n"))),
        "raw" => say(word(1)),
        "complain" => host.stderr.write(&format!("{}\n", word(1))).unwrap(),
        "fail" => return 1,
        "panic" => panic!("so it ends"),
        "cwd" => say(&format!("{}\n", host.resolve(word(1)).display())),
        "world" => {
            let name = host.var("NAME").unwrap_or_default().display().to_string();
            say(&format!("{} {} {name} {:?}\n", host.now(), (host.token)(), host.cancel.signal()));
        }
        "write" => std::fs::write(host.resolve(word(1)), word(2)).unwrap(),
        "copy" => {
            let bytes = std::fs::read(host.resolve(word(1))).unwrap();
            std::fs::write(host.resolve(word(2)), bytes).unwrap();
        }
        other => panic!("no such trick: {other}"),
    }
    0
}

/// A distributor-run with one bundle and one destination, and a source that can't be read. The name of its
/// configuration says what its dry run does wrong, or its run.
fn pretender(host: &Host) -> u8 {
    let Ok(parsed) = cli::parse(&cli::RUN, &host.args) else { return 2 };
    let trick = parsed.text(&cli::CONFIG).unwrap().unwrap_or_default();
    let (mut action, mut code, mut output, mut destination) = ("publish_new", None, "x", "d");
    match (trick, parsed.has(&cli::DRY_RUN)) {
        ("writes", true) => std::fs::write(host.resolve("a"), "other").unwrap(),
        ("panics", true) => panic!("so it looks"),
        ("mute dry run", true) | ("mute run", false) | ("mute", _) => return 2,
        ("other action", true) => action = "skip_same",
        ("other output", true) => output = "y",
        ("other place", true) => destination = "e",
        ("other code", true) => (action, code) = ("error", Some("locked")),
        ("error" | "other code", _) => (action, code) = ("error", Some("no_space")),
        _ => {}
    }
    let token = (host.token)();
    if parsed.text(&cli::FORMAT).unwrap() == Some("json") {
        // Bytes written and messages may differ.
        let record = json!({
            "destination_id": destination, "bundle_path": "a b", "action": action, "outputs": [output],
            "bytes_written": host.args.len(), "error": code.map(|code| json!({"code": code, "message": host.args.len()})),
        });
        let pipeline = json!({"pipeline_id": "p", "error": null, "destinations": [record]});
        let gone = json!({"pipeline_id": "q", "error": {"code": "not_found"}, "destinations": []});
        host.stdout.write(&format!("{}\n", json!({"pipelines": [pipeline, gone]}))).unwrap();
    } else if !parsed.has(&cli::QUIET) {
        let about = code.map_or(token, |code| format!("{code}: why"));
        let line = format!("{action:15}  p/{destination}   a b   {about}\n    a list\n");
        host.stdout.write(&format!("{line}{:15}  q  not_found: why\n1 published\n", "error")).unwrap();
    }
    0
}

fn commands(name: &str) -> Option<Command> {
    match name {
        "puppet" => Some(puppet),
        "distributor-run" => Some(pretender),
        _ => None,
    }
}

fn verdict(script: &str) -> Result<(), (usize, String)> {
    play(script, commands)
}

/// Plays steps in a scene with one file, `a`, that holds `text` and a line feed.
fn steps(steps: &str) -> Result<(), (usize, String)> {
    verdict(&format!("# head\n-- a --\ntext\n-- script --\n{steps}\n"))
}

#[track_caller]
fn holds(script: &str) {
    assert_eq!(steps(script), Ok(()), "{script}");
}

/// The steps fail on the line that holds `at`, with `words` in the message.
#[track_caller]
fn fails(script: &str, at: usize, words: &str) {
    let (line, problem) = steps(script).expect_err(script);
    assert_eq!(line, at + 4, "{problem}");
    assert!(problem.contains(words), "{problem}");
}

#[test]
fn outputs_and_status_are_held_against_what_is_expected() {
    holds("$ puppet say one two\n> one\n> two");
    holds("$ puppet say one two\n> ...\n> t[..]");
    holds("$ puppet say one");
    holds("$ puppet fail\nstatus 1\nno stdout\nno stderr");
    holds("$ puppet complain x\n! x");
    fails("$ puppet say one\n> two", 1, "expected:\n    two\n  got:\n    one");
    fails("$ puppet say one two\n> one", 1, "standard output differs");
    fails("$ puppet say one\nno stdout", 1, "standard output differs");
    fails("$ puppet raw one\n> one", 1, "no line feed at the end");
    fails("$ puppet fail", 1, "expected: 0\n  got: 1");
    fails("$ puppet say a\nstatus 3", 1, "expected: 3\n  got: 0\n  standard output:\n    a");
    fails("$ puppet complain x", 1, "standard error differs");
    fails("$ puppet complain x\n! y", 1, "standard error differs");
    fails("\n$ puppet panic", 2, "panicked: so it ends");
    fails("$ nobody", 1, "no program is called \"nobody\"");
}

#[test]
fn what_a_script_gets_wrong_is_found_before_anything_runs() {
    for (script, line, words) in [
        ("# head\n", 1, "no `-- script --` section"),
        ("head\n-- script --\n", 1, "only comments"),
        ("-- script --\nexists a\n", 0, "runs nothing"),
        ("-- script --\n$ puppet fail\nexist a\n", 3, "unknown directive `exist`"),
        ("-- script --\n> one\n", 2, "right below its `$` line"),
        ("-- script --\n$ puppet fail\nexists a\nstatus 1\n", 4, "right below its `$` line"),
        ("-- script --\n$ puppet fail\nstatus 1\nstatus 1\n", 4, "a second status"),
        ("-- script --\n$ puppet fail\nstatus one\n", 3, "not an exit status"),
        ("-- script --\n$ puppet fail\nno stdout\n> x\n", 4, "nothing was expected above"),
        ("-- script --\n$ puppet fail\n> x\nno stdout\n", 4, "lines were expected above"),
        ("-- script --\n$ puppet fail\n| x\n", 3, "belong below a directive"),
        ("-- script --\nexists a\n| x\n$ puppet fail\n", 3, "takes no `|` lines"),
        ("-- ../a --\n-- script --\n$ puppet fail\n", 1, "not a path inside the scene"),
        ("-- a b c --\n-- script --\n$ puppet fail\n", 1, "not a section"),
        ("-- a size 3 --\nx\n-- script --\n$ puppet fail\n", 1, "no content"),
    ] {
        let (at, problem) = verdict(script).expect_err(script);
        assert_eq!((at, problem.contains(words)), (line, true), "{problem}");
    }
}

#[test]
fn the_world_stands_still_until_a_script_moves_it() {
    holds("$ puppet world\n> 2026-06-04T12:00:00Z 0000000000000001  None");
    holds(
        "clock 2026-06-05T00:00:00Z\nenv NAME=value\nsignal 15\n$ puppet world\n> 2026-06-05T00:00:00Z 0000000000000001 value Some(15)\n$ puppet world\n> [..]2 value None\nunset NAME\n$ puppet world\n> [..]3  None",
    );
    holds(
        "$ puppet cwd x\n> $SCENE/x\nmkdir d/e\ncd d\n$ puppet cwd x\n> $SCENE/d/x\ncd .\n$ puppet say $SCENE\n> $SCENE",
    );
    fails("$ puppet fail\nstatus 1\ncd a", 3, "not a directory");
    fails("$ puppet fail\nstatus 1\nclock noon", 3, "RFC 3339");
    fails("$ puppet fail\nstatus 1\nunset NAME", 3, "not set");
}

#[test]
fn files_are_looked_at() {
    let run = "$ puppet copy a b\n";
    holds(&format!("{run}cmp a b\nexists b\n! exists c\ncontains b ext\n! contains b it's\ntree .\n| a\n| b"));
    holds(&format!(
        "{run}mkdir e\nlink l -> a\nfifo f\nchmod 0640 b\nmode b 0640\ntree .\n| a\n| b\n| e/\n| f (fifo)\n| l -> a"
    ));
    holds(&format!(
        "{run}write c x\\ty\nappend c\n| z\n|\n| 'q\ncontains c x\\ty\\nz\\n\\n'q\\n\nmove c d\nremove d\n! exists d"
    ));
    fails(&format!("{run}append b x\ncmp a b"), 3, "they differ");
    fails(&format!("{run}exists c"), 2, "it is not there");
    fails(&format!("{run}! exists b"), 2, "it is there");
    fails(&format!("{run}contains b x t"), 2, "has not it");
    fails(&format!("{run}! contains b ext"), 2, "has it");
    fails(&format!("{run}cmp a c"), 2, "No such file");
    fails(&format!("{run}mode b 0000"), 2, "expected: 0000");
    fails(&format!("{run}tree .\n| a"), 2, "the tree differs");
    fails(&format!("{run}remove c"), 2, "No such file");
    fails(&format!("{run}remove ../c"), 2, "not a path inside the scene");
    fails(&format!("{run}exists a b"), 2, "takes 1 words, and 2 are given");
}

#[test]
fn a_snapshot_sees_every_change() {
    let run = "$ puppet say x\n";
    holds(&format!("{run}snapshot\nunchanged\nmkdir d\nsnapshot d\nwrite b x\nunchanged"));
    for (change, words) in [
        ("append a x", "a: other content"),
        ("chmod 0600 a", "a: mode 644 is now 600"),
        ("touch a 2020-01-01T00:00:00Z", "a: another modification time"),
        ("remove a", "a: gone"),
        ("write b x", "b: new"),
        ("$ puppet copy a b\nmove b a", "a: "),
    ] {
        let at = 4 + change.lines().count() - 1;
        fails(&format!("{run}chmod 0644 a\nsnapshot\n{change}\nunchanged"), at + 1, words);
    }
    fails(&format!("{run}unchanged"), 2, "no snapshot was taken");
}

#[test]
fn json_is_read_from_the_output_and_from_files() {
    holds("$ puppet say '{\"a\": [1]}'\njson /a/0 = 1\njson .a = length 1\njson /b = absent");
    holds("write f {\"a b\": \"it's\"}\n$ puppet say x\njson-in f /a~1b = absent\njson-in f . = {\"a b\": \"it's\"}");
    fails("$ puppet say '{\"a\": 1}'\njson /a = 2", 2, "expected: 2\n  got: 1");
    fails("$ puppet say '{}' '{}'\njson /a = 2", 2, "not JSON");
    fails("$ puppet raw '{}'\njson /a = absent", 2, "a line feed");
    fails("$ puppet say '{}'\njson /a absent", 2, "takes POINTER = VALUE");
    fails("json /a = 1\n$ puppet fail", 1, "no command has run");
}

#[test]
fn bundles_are_made_as_the_format_says() {
    let script = "-- b/z.md --\nhello\n-- b/d/manifest.json --\n-- b/a size 3 --\n-- script --\n\
        bundle b id-1 2026-06-04T11:55:00Z\n$ puppet say x\njson-in b/manifest.json /files = length 3\n\
        json-in b/manifest.json /files/0/path = \"a\"\njson-in b/manifest.json /files/2 = \
        {\"path\": \"z.md\", \"size\": 6, \"sha256\": \
        \"sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03\"}\n";
    assert_eq!(verdict(script), Ok(()));
}

#[test]
fn scenes_hold_links_fifos_directories_and_modes() {
    let script = "-- link d/l -> ../a --\n-- fifo p --\n-- dir e mode 0700 --\n-- a mode 0600 --\nx\n\
        -- odd\\xff --\n-- big size 70000 mode 0400 --\n-- script --\n$ puppet say x\n\
        mode a 0600\nmode e 0700\nmode big 0400\ntree .\n| a\n| big\n| d/l -> ../a\n| e/\n| odd\\xff\n| p (fifo)\n";
    assert_eq!(verdict(script), Ok(()));
}

#[test]
fn a_run_does_what_its_dry_run_said() {
    holds("$ distributor-run -c honest\n> publish_new[..]  p/d  [..]1\n> ...\n$ puppet world\n> [..]2  None");
    for run in ["-c honest --format json", "-c error", "-c error --format json -v", "-c mute\nstatus 2"] {
        holds(&format!("$ distributor-run {run}"));
    }
    let differ = "the dry run beforehand and the run differ: ";
    for (trick, in_text, in_json) in [
        (
            "other action",
            "other records\n  dry run:\n    skip_same  p/d  a b\n    error  q  not_found:\n  run:\n    publish_new ",
            "p/d  a b: action\n  dry run: \"skip_same\"\n  run: \"publish_new\"",
        ),
        (
            "other place",
            "other records",
            "other records\n  dry run:\n    p\n    p/e  a b\n    q\n  run:\n    p\n    p/d",
        ),
        ("other code", "other records", "p/d  a b: error\n  dry run: \"locked\"\n  run: \"no_space\""),
        ("mute run", "the run has no report", "the run has no report"),
        ("mute dry run", "the dry run has no report", "the dry run has no report"),
    ] {
        let status = if trick == "mute run" { "\nstatus 2" } else { "" };
        let run = format!("$ distributor-run --config '{trick}'");
        fails(&format!("{run}{status}"), 1, &format!("{differ}{in_text}"));
        fails(&format!("{run} --format json{status}"), 1, &format!("{differ}{in_json}"));
        holds(&format!("{run} --quiet{status}"));
    }
    holds("$ distributor-run -c 'other output'");
    fails("$ distributor-run -c 'other output' --format=json", 1, &format!("{differ}p/d  a b: outputs"));
}

#[test]
fn a_dry_run_changes_nothing() {
    for args in ["", " -v", " -q", " --format json"] {
        fails(&format!("$ distributor-run -c writes{args}"), 1, "changed the scene:\n    a: other content");
    }
    fails("$ distributor-run -c panics", 1, "the dry run beforehand: the command panicked: so it looks");
}

#[test]
fn not_every_command_has_a_preview() {
    for args in ["--help", "-V", "--format yaml", "--bogus"] {
        let status = if args == "--bogus" { "\nstatus 2" } else { "" };
        holds(&format!("$ distributor-run -c panics -q {args}{status}"));
    }
    for args in ["--help", "-V", "--format yaml", "--bogus", "-n", "--dry-run"] {
        let run = format!("$ distributor-run -c honest {args}");
        fails(&format!("no-preview why\n{run}"), 2, "no-preview: this command has no preview");
    }
    holds("signal 15\n$ distributor-run -c writes");
    fails("no-preview why\n$ puppet say x", 2, "no-preview: this command has no preview");
}

#[test]
fn what_can_not_be_foreseen_has_a_reason() {
    let run = "$ distributor-run -c 'other action'";
    holds(&format!("no-preview why it's so\n{run}"));
    fails(&format!("no-preview why\n{run}\n{run}"), 3, "differ");
    fails("no-preview why\n$ distributor-run -c writes", 2, "changed the scene");
    fails(&format!("no-preview\n{run}"), 1, "takes a reason");
    fails("$ puppet say x\nno-preview why", 2, "no command follows");
}
