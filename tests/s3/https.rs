//! Certificates: those that are trusted, and what is said of others.

use crate::scene::{PRUNE, RUN, Scene, VALIDATE, checked, outcomes};
use crate::servers::{self, tls::Tls};

const PAGE: &[(&str, &str)] = &[("index.html", "<h1>June</h1>\n")];

#[test]
fn a_server_is_trusted_whose_authority_is_named_and_no_other() {
    for server in servers::all() {
        let scene = Scene::on(server);
        let (tls, other) = (Tls::before(server.address), Tls::before(server.address));
        scene.bundle("in/report", 1, PAGE).write("ca.pem", &tls.authority).write("other.pem", &other.authority);
        let run = |host: &str, bundle: Option<&str>, status: i32| {
            let endpoint = format!("https://{host}:{}", tls.address.port());
            scene.configure("backend: local, path: in", &[&format!("id: www, {}", scene.s3_at(&endpoint, "site"))]);
            let mut command = scene.command(RUN, "-c site.yml --format json");
            command.envs(bundle.map(|file| ("AWS_CA_BUNDLE", file)));
            scene.document(&checked(&mut command), status)
        };
        for (host, bundle, cure) in [
            ("127.0.0.1", None, "AWS_CA_BUNDLE"),
            ("127.0.0.1", Some("other.pem"), "AWS_CA_BUNDLE"),
            ("localhost", Some("ca.pem"), "a name that its certificate is for"),
        ] {
            let document = run(host, bundle, 1);
            let error = &document["pipelines"][0]["destinations"][0]["error"];
            assert_eq!(error["code"], "unreachable", "{host} {bundle:?}");
            assert!(error.to_string().contains(cure), "{host} {bundle:?}: {error}");
        }
        assert_eq!(scene.place.keys(), Vec::<String>::new());
        assert_eq!(outcomes(&run("127.0.0.1", Some("ca.pem"), 0)), ["publish_new"]);
        scene.write("both.pem", &format!("{}\n{}", other.authority, tls.authority));
        assert_eq!(outcomes(&run("127.0.0.1", Some("both.pem"), 0)), ["skip_same"]);
        // Its own certificate does not make it speak TLS.
        let endpoint = format!("https://{}", server.address);
        scene.configure("backend: local, path: in", &[&format!("id: www, {}", scene.s3_at(&endpoint, "site"))]);
        let document = scene.run(RUN, "-c site.yml", 1);
        let error = &document["pipelines"][0]["destinations"][0]["error"];
        assert!(error["message"].as_str().unwrap().contains("does not answer in TLS"), "{error}");
    }
}

#[test]
fn authorities_that_can_not_be_read_keep_a_program_from_starting() {
    let Some(server) = servers::all().pop() else { return };
    let scene = Scene::on(server);
    scene.configure("backend: local, path: in", &[&format!("id: www, {}", scene.s3("site"))]);
    scene.bundle("in/report", 1, PAGE).write("junk.pem", "junk\n").write("empty.pem", "");
    scene.write("half.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n");
    let upkeep = "-c site.yml --pipeline reports --destination www --dry-run";
    for file in ["none.pem", "junk.pem", "empty.pem", "half.pem", "in"] {
        for (program, args) in [(RUN, "-c site.yml"), (PRUNE, upkeep), (VALIDATE, "-c site.yml --pipeline reports")] {
            let output = checked(scene.command(program, args).env("AWS_CA_BUNDLE", file));
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{program} {file}: {said}");
            assert!(said.contains("$AWS_CA_BUNDLE") && said.contains("[invalid_config]"), "{said}");
        }
    }
    // Who has nothing on S3 is not asked for it.
    scene.configure("backend: local, path: in", &["id: www, backend: local, path: out"]);
    let output = checked(scene.command(RUN, "-c site.yml").env("AWS_CA_BUNDLE", "none.pem"));
    assert_eq!(output.status.code(), Some(0));
}
