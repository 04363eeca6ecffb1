//! A directory with bundles and a configuration, and a place in a bucket.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use distributor::error::Code;
use serde_json::Value;

use crate::servers::{ACCESS_KEY, Place, SECRET_KEY, Server};

pub(crate) const RUN: &str = env!("CARGO_BIN_EXE_distributor-run");
pub(crate) const VALIDATE: &str = env!("CARGO_BIN_EXE_distributor-validate");
pub(crate) const INSPECT: &str = env!("CARGO_BIN_EXE_distributor-inspect");
pub(crate) const PRUNE: &str = env!("CARGO_BIN_EXE_distributor-prune");
pub(crate) const RECONCILE_STATE: &str = env!("CARGO_BIN_EXE_distributor-reconcile-state");
pub(crate) const BUNDLE: &str = env!("CARGO_BIN_EXE_distributor-bundle");

/// What the tests may have around them and the programs would heed.
const FOREIGN: &[&str] = &["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "HOME"];

pub(crate) struct Scene {
    dir: tempfile::TempDir,
    schema: jsonschema::Validator,
    /// What this test has in the bucket.
    pub(crate) place: Place,
}

impl Scene {
    pub(crate) fn on(server: &'static Server) -> Scene {
        Scene::at(server.place("programs"))
    }

    pub(crate) fn at(place: Place) -> Scene {
        let text = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/report.schema.json")).unwrap();
        let schema = serde_json::from_slice(&text).unwrap();
        let schema = jsonschema::draft202012::options().should_validate_formats(true).build(&schema).unwrap();
        Scene { dir: tempfile::tempdir().unwrap(), schema, place }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> &Scene {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
        self
    }

    /// Makes a bundle of these files anew, as of a day in June.
    pub(crate) fn bundle(&self, dir: &str, day: u8, files: &[(&str, &str)]) -> &Scene {
        let _ = fs::remove_dir_all(self.path(dir));
        for (name, text) in files {
            self.write(&format!("{dir}/{name}"), text);
        }
        self.run(BUNDLE, &format!("{dir} --id reports.monthly --created 2026-06-{day:02}T12:00:00Z"), 0);
        self
    }

    /// The same, in the bucket below `at`.
    pub(crate) fn bundle_there(&self, at: &str, day: u8, files: &[(&str, &str)]) -> &Scene {
        self.bundle("upload", day, files);
        let names = files.iter().map(|(name, _)| *name).chain(["manifest.json"]);
        names.for_each(|name| {
            self.place.put(&format!("{at}{name}"), &fs::read(self.path("upload").join(name)).unwrap());
        });
        self
    }

    /// The keys of an S3 place, `below` in what this test has: the inside of a flow mapping.
    pub(crate) fn s3(&self, below: &str) -> String {
        self.s3_through(self.place.server.address, below)
    }

    pub(crate) fn s3_through(&self, address: SocketAddr, below: &str) -> String {
        self.s3_at(&format!("http://{address}"), below)
    }

    pub(crate) fn s3_at(&self, endpoint: &str, below: &str) -> String {
        let (bucket, region) = (self.place.bucket, self.place.server.region);
        let prefix = format!("{}{below}", self.place.prefix);
        format!(
            "backend: s3, endpoint: '{endpoint}', bucket: {bucket}, prefix: '{prefix}', region: {region}, \
             path_style: true, access_key_id_env: TEST_KEY_ID, secret_access_key_env: TEST_SECRET_KEY"
        )
    }

    /// A configuration of one pipeline: the inside of its source, and of each destination.
    pub(crate) fn configure(&self, source: &str, destinations: &[&str]) -> &Scene {
        let destinations: String = destinations.iter().map(|inside| format!("      - {{{inside}}}\n")).collect();
        let text = format!("pipelines:\n  - id: reports\n    source: {{{source}}}\n    destinations:\n{destinations}");
        self.write("site.yml", &text)
    }

    pub(crate) fn command(&self, program: &str, args: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.dir.path()).args(args.split_whitespace()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("AWS_") || FOREIGN.contains(&text.as_ref()) {
                command.env_remove(&name);
            }
        }
        command.env_remove("DISTRIBUTOR_CONFIG").env("TEST_KEY_ID", ACCESS_KEY).env("TEST_SECRET_KEY", SECRET_KEY);
        command
    }

    pub(crate) fn output(&self, program: &str, args: &str) -> Output {
        checked(&mut self.command(program, args))
    }

    /// Runs a program, whose document has to keep to the schema and whose codes have to be ours.
    #[track_caller]
    pub(crate) fn run(&self, program: &str, args: &str, status: i32) -> Value {
        self.document(&self.output(program, &format!("{args} --format json")), status)
    }

    #[track_caller]
    pub(crate) fn document(&self, output: &Output, status: i32) -> Value {
        let (shown, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(status), "{said}{shown}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
        let faults: Vec<String> =
            self.schema.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path)).collect();
        assert!(faults.is_empty(), "{}\n{shown}", faults.join("\n"));
        document
    }

    /// Runs distributor-run, and gives the action or the error's code of each destination.
    #[track_caller]
    pub(crate) fn publish(&self, args: &str, status: i32) -> Vec<String> {
        outcomes(&self.run(RUN, &format!("-c site.yml {args}"), status))
    }

    /// What lies `below` in the bucket, without the state.
    pub(crate) fn there(&self, below: &str) -> BTreeMap<String, String> {
        let place = Place { prefix: format!("{}{below}", self.place.prefix), ..self.place.clone() };
        let mut tree = place.tree();
        tree.retain(|key, _| key != ".distributor.json" && !key.ends_with("/.distributor.json"));
        tree.into_iter().map(|(key, bytes)| (key, String::from_utf8(bytes).unwrap())).collect()
    }

    /// A state in the bucket.
    pub(crate) fn state(&self, below: &str) -> Value {
        serde_json::from_slice(&self.place.bytes(&format!("{below}.distributor.json"))).unwrap()
    }
}

/// What a command says, in which no secret may stand.
pub(crate) fn checked(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    for said in [&output.stdout, &output.stderr] {
        let said = String::from_utf8_lossy(said);
        assert!(!said.contains(SECRET_KEY) && !said.contains(ACCESS_KEY), "{said}");
    }
    output
}

/// The action or the error's code of each destination of a run.
pub(crate) fn outcomes(document: &Value) -> Vec<String> {
    let pipelines = document["pipelines"].as_array().unwrap();
    let records = pipelines.iter().flat_map(|pipeline| pipeline["destinations"].as_array().unwrap());
    let outcome = |record: &Value| record["error"]["code"].as_str().or(record["action"].as_str()).unwrap().to_owned();
    let outcomes: Vec<String> = records.map(outcome).collect();
    let known = |outcome: &str| {
        Code::ALL.iter().any(|code| code.as_str() == outcome) || outcome.contains('_') || outcome == "republish"
    };
    assert!(outcomes.iter().all(|outcome| known(outcome)), "{outcomes:?}");
    outcomes
}

/// The texts of a list, or those of a field of its objects.
pub(crate) fn texts<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    let text = |item: &'a Value| if field.is_empty() { item.as_str() } else { item[field].as_str() };
    list.as_array().into_iter().flatten().filter_map(text).collect()
}

/// These files.
pub(crate) fn files(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}
