//! Every file in testdata/config: the valid ones load, the invalid ones say what their first lines announce.
// clippy.toml lets tests unwrap, but not the helpers that they share.
#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use distributor::config::{self, Config, OnConflict, PathMapping, Pattern, Problem, Source, Target, Transform, World};
use distributor::error::{Code, Warning};
use distributor::host::Host;

fn data(kind: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/config").join(kind);
    let mut files: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension() == Some(OsStr::new("yml")));
    files.sort();
    assert!(!files.is_empty());
    files
}

fn host(env: &[(&str, &str)]) -> Host {
    Host::fixed("/srv", env)
}

fn parse(text: &[u8]) -> Result<(Config, Vec<Warning>), Vec<Problem>> {
    let read = |path: &Path| match path.to_str() {
        Some("/etc/d/page.html") => Ok(b"<title>{{title}}</title>{{ content }}".to_vec()),
        Some("/etc/d/typo.html") => Ok(b"{{titel}}\n{{title}}{{\nzzz }}{{zzz}}".to_vec()),
        Some("/etc/d/bare.html") => Ok(b"}} {{title}} content {{content".to_vec()),
        Some("/etc/d/latin1.html") => Ok(b"\xfc".to_vec()),
        _ => Err(std::io::Error::from_raw_os_error(2)),
    };
    let home = Path::new("/home/op");
    let world = World { home: Some(home), state_directory: Some(Path::new("/var/lib/d")), read: &read };
    config::parse(text, Path::new("/etc/d/distributor.yml"), &world)
}

fn problems(text: &str) -> Vec<String> {
    parse(text.as_bytes()).map_or_else(|all| all.iter().map(Problem::to_string).collect(), |_| Vec::new())
}

/// The `# error: ` lines at the top of an invalid file.
fn announced(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    text.lines().map_while(|line| line.strip_prefix("# error: ")).map(str::to_owned).collect()
}

#[test]
fn invalid_files_say_what_they_announce() {
    let mut wrong = Vec::new();
    for file in data("invalid") {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let bytes = fs::read(&file).unwrap();
        let expected = announced(&bytes);
        let Err(found) = parse(&bytes) else {
            wrong.push(format!("{name}: passes"));
            continue;
        };
        let found: Vec<String> = found.iter().map(Problem::to_string).collect();
        let fits = |(found, expected): (&String, &String)| {
            let (place, text) = expected.split_once(": ").unwrap_or((expected, ""));
            found.starts_with(&format!("{place}: ")) && found.contains(text)
        };
        if expected.is_empty() || found.len() != expected.len() || !found.iter().zip(&expected).all(fits) {
            wrong.push(format!("{name}: expected\n  {}\nfound\n  {}", expected.join("\n  "), found.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn valid_files_pass_with_the_warnings_they_announce() {
    for file in data("valid") {
        let bytes = fs::read(&file).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let expected: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# warning: ")).collect();
        match parse(&bytes) {
            Ok((_, warnings)) => {
                let found: Vec<&str> = warnings.iter().map(|warning| warning.code.as_str()).collect();
                assert_eq!(found, expected, "{}", file.display());
            }
            Err(problems) => panic!("{}: {problems:#?}", file.display()),
        }
    }
}

fn valid(name: &str) -> Config {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/config/valid").join(name);
    parse(&fs::read(file).unwrap()).unwrap().0
}

#[test]
fn what_is_left_out_has_its_default() {
    let config = valid("minimal.yml");
    assert_eq!(config.staging_directory.as_deref(), Some(Path::new("/var/lib/d")));
    assert_eq!(config.server.staging_directory, config.staging_directory);
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(
        (config.server.max_staging_size, config.server.queue_size, config.server.max_concurrency),
        (16 << 30, 64, 2)
    );
    assert_eq!(config.server.retention, Duration::from_hours(24));
    let Source::Local(source) = &config.pipelines[0].source else { panic!() };
    assert_eq!(source.path, Path::new("/etc/d/../var/reports"));
    let destination = &config.pipelines[0].destinations[0];
    let Target::Local(target) = &destination.target else { panic!() };
    assert_eq!(target.path, Path::new("/home/op/www"));
    assert_eq!((target.modes.file, target.modes.directory), (0o644, 0o755));
    assert_eq!(destination.path_mapping, PathMapping::PreserveRelative);
    assert_eq!(destination.outputs.policy.as_str(), "source_only");
    assert_eq!(destination.transfer.on_destination_older.as_str(), "replace");
    assert_eq!(destination.transfer.on_destination_newer.as_str(), "skip");
    assert_eq!(destination.transfer.on_conflict, OnConflict::Fail);
    assert_eq!(destination.reconciliation.as_str(), "replace");
    assert_eq!(destination.state_mode.as_str(), "single_owner");
    assert_eq!(destination.takeover.as_str(), "never");
    assert!(!destination.retention.prune.enabled);
    let primary: Vec<&str> = destination.links.primary.iter().map(Pattern::as_str).collect();
    assert_eq!(primary, ["index.html", "*.html"]);
}

#[test]
fn every_key_reaches_the_model() {
    let config = valid("every_key.yml");
    assert_eq!(config.secrets_directory.as_deref(), Some(Path::new("/run/secrets/distributor")));
    assert_eq!(config.upload_tokens[0].pipelines, ["uploads"]);
    let Source::HttpUpload(upload) = &config.pipeline("uploads").unwrap().source else { panic!() };
    assert_eq!((upload.max_upload_size, upload.max_files), (2 << 30, 5));
    let reports = config.pipeline("reports").unwrap();
    let Source::Ssh(ssh) = &reports.source else { panic!() };
    assert_eq!((ssh.host.as_str(), ssh.port, ssh.user.as_deref()), ("files.example.com", 2222, Some("publisher")));
    assert_eq!(ssh.path, "outbox");
    assert_eq!((ssh.connect_timeout.as_secs(), ssh.timeout.as_secs(), ssh.connections), (5, 120, 4));
    let Target::S3(s3) = &reports.destinations[0].target else { panic!() };
    assert_eq!((s3.bucket.as_str(), s3.prefix.as_str()), ("reports", "public/archive"));
    assert_eq!(s3.endpoint.as_deref(), Some("https://s3.example.com:9000"));
    assert_eq!(s3.cache_control[0].value, "max-age=60");
    let Transform::MarkdownToHtml(html) = &reports.destinations[0].transforms[0];
    assert_eq!(html.template.as_ref().unwrap().path, Path::new("/etc/d/page.html"));
    assert_eq!(html.raw_html.as_str(), "sanitize");
    assert_eq!(reports.destinations[0].links.base_url.as_deref(), Some("https://reports.example.com/archive/"));
    let prune = reports.destinations[0].retention.prune;
    assert_eq!((prune.older_than, prune.keep_latest), (Some(Duration::from_hours(30 * 24)), Some(10)));
    assert_eq!(config.variables(&["reports"]), ["KEY_PASSPHRASE", "S3_ID", "S3_KEY", "S3_TOKEN"],);
    assert!(config.variables(&["uploads"]).is_empty());
}

#[test]
fn a_file_over_1_mib_is_refused_and_one_of_1_mib_is_not() {
    let text = fs::read_to_string(data("valid").into_iter().find(|f| f.ends_with("minimal.yml")).unwrap()).unwrap();
    let fill = |size: usize| format!("{text}#{}\n", "x".repeat(size - text.len() - 2));
    assert!(problems(&fill(1 << 20)).is_empty());
    assert_eq!(problems(&fill((1 << 20) + 1)), ["1:1: the file is larger than 1 MiB"]);
}

#[test]
fn what_is_not_utf_8_is_refused_with_its_place_and_a_byte_order_mark_is_passed_over() {
    let found = parse(b"pipelines: []\n# \xc3\xbc \xff\n").unwrap_err();
    assert_eq!((found[0].line, found[0].column, found[0].message.as_str()), (2, 5, "not UTF-8"));
    assert_eq!(problems("\u{feff}pipelines: 1\n"), problems("pipelines: 1\n"));
}

#[test]
fn an_error_in_the_syntax_ends_the_reading() {
    for text in ["a: [", "a: b: c", "\"", "a:\n\t- b", "{{{{", "- ]", "a: 'b", "%YAML 9", "? ", "a: |9x", "a: \u{0}"] {
        assert_eq!(problems(text).len(), 1, "{text:?}: {:?}", problems(text));
    }
}

#[test]
fn deep_and_wide_files_end_soon() {
    let wide = "x: [".to_owned() + &"1,".repeat(400_000) + "]";
    assert_eq!(problems(&wide), ["1:39999: the file holds more than 20000 keys and values; split it"]);
    for text in ["[".repeat(500_000), "a: ".to_owned() + &"{a: ".repeat(200_000), "- ".repeat(300_000)] {
        assert_eq!(problems(&text).len(), 1);
    }
}

/// The manual's example is a configuration, and no key is without its entry there.
#[test]
fn the_manual_page_has_every_key_and_a_working_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("man/distributor.yml.5")).unwrap();
    let example = page.split(".Bd -literal -offset indent\n").nth(1).unwrap().split(".Ed").next().unwrap();
    assert!(problems(example).is_empty(), "{:?}", problems(example));
    let every_key = fs::read_to_string(root.join("testdata/config/valid/every_key.yml")).unwrap();
    let marks: Vec<&str> =
        page.lines().filter(|line| line.starts_with(".It Ic ") || line.starts_with(".Ic ")).collect();
    for line in every_key.lines() {
        let Some((key, _)) = line.trim_start_matches([' ', '-']).split_once(':') else { continue };
        let known = marks.iter().any(|mark| mark.split_whitespace().any(|word| word == key));
        assert!(known, "{key} is not in the manual page");
    }
}

#[test]
fn a_secret_in_the_wrong_place_is_not_repeated() {
    for text in [
        "upload_tokens: [{id: a, token: hunter2/x, pipelines: [u]}]",
        "upload_tokens: [{id: a, token_env: hunter2/x, pipelines: [u]}]",
        "pipelines: [{id: a, source: {backend: s3, bucket: bbb, secret_access_key: hunter2/x, access_key_id_env: hunter2/x, secret_access_key_env: 'hunter2/x'}, destinations: []}]",
        "pipelines: [{id: a, source: {backend: s3, bucket: bbb, endpoint: 'https://u:hunter2@h/'}, destinations: []}]",
        "pipelines: [{id: a, source: {backend: ssh, host: h, path: p, password: hunter2, ssh_key_passphrase: hunter2}, destinations: []}]",
        "pipelines: [{id: a, source: {backend: local, path: p}, destinations: [{id: b, backend: local, path: q, links: {base_url: 'https://u:hunter2@h/'}}]}]",
    ] {
        let found = problems(text).join("\n");
        assert!(!found.is_empty() && !found.contains("hunter2"), "{found}");
    }
}

#[test]
fn the_file_is_found_by_flag_then_variable_then_default() {
    let found = |env: &[(&str, &str)], flag: Option<&str>| config::locate(&host(env), flag.map(OsStr::new));
    assert_eq!(found(&[("DISTRIBUTOR_CONFIG", "/v.yml")], Some("f.yml")), Path::new("/srv/f.yml"));
    assert_eq!(found(&[("DISTRIBUTOR_CONFIG", "/v.yml")], None), Path::new("/v.yml"));
    assert_eq!(found(&[("DISTRIBUTOR_CONFIG", "")], None), Path::new("/etc/distributor/distributor.yml"));
}

#[test]
fn a_file_that_is_not_there_has_its_own_code_and_a_cure() {
    let error = config::load(&host(&[]), Some(OsStr::new("/nowhere/x.yml"))).unwrap_err();
    assert_eq!(error.code, Code::ConfigNotFound);
    assert_eq!(error.message, "/nowhere/x.yml: no such configuration file");
    assert!(error.hint.unwrap().contains("--config"));
    let error = config::load(&host(&[]), Some(OsStr::new("/"))).unwrap_err();
    assert_eq!(error.code, Code::InvalidConfig);
}

#[test]
fn loading_counts_the_problems_and_lists_them_in_the_detail() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.yml");
    fs::write(&file, "pipelines: []\nserver: {htp: {}}\n").unwrap();
    let error = config::load(&host(&[]), Some(file.as_os_str())).unwrap_err();
    assert_eq!(error.code, Code::InvalidConfig);
    assert_eq!(error.message, format!("{}: 2 problems", file.display()));
    assert_eq!(error.detail[0].message, "1:12: pipelines: must list at least one pipeline");
    assert_eq!(error.detail[1].message, "2:10: server: unknown key \"htp\"; did you mean \"http\"?");
    assert_eq!(error.detail[1].path.as_deref(), Some("server"));
}

#[test]
fn the_home_and_state_directories_come_from_the_environment() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.yml");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/config/valid/minimal.yml"), &file).unwrap();
    let load = |env: &[(&str, &str)]| config::load(&host(env), Some(file.as_os_str()));
    let (config, _) = load(&[("HOME", "/h"), ("STATE_DIRECTORY", "/s/a:/s/b")]).unwrap();
    assert_eq!(config.staging_directory.as_deref(), Some(Path::new("/s/a")));
    let Target::Local(target) = &config.pipelines[0].destinations[0].target else { panic!() };
    assert_eq!(target.path, Path::new("/h/www"));
    let error = load(&[]).unwrap_err();
    assert!(error.detail[0].message.contains("needs the variable HOME"), "{error:?}");
    assert!(load(&[("HOME", "/h")]).unwrap().0.staging_directory.is_none());
}

/// Any change of a byte or cut of a valid file ends in a configuration or in problems, never in a panic.
#[test]
fn damaged_files_never_panic() {
    let text = fs::read(data("valid").into_iter().find(|f| f.ends_with("every_key.yml")).unwrap()).unwrap();
    for at in (0..text.len()).step_by(29) {
        let _ = parse(&text[..at]);
        for byte in b"\0\n :-[{#&*!|'\"?\xff" {
            let mut changed = text.clone();
            changed[at] = *byte;
            if let Err(problems) = parse(&changed) {
                assert!(!problems.is_empty());
            }
        }
    }
}
