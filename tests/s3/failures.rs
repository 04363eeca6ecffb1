//! Secrets that are missing, servers that are, and places that belong to somebody else.

use std::time::{Duration, Instant};

use crate::scene::{PRUNE, RUN, Scene, VALIDATE, checked, files, outcomes};
use crate::servers::proxy::{Kind, Proxy};
use crate::servers::{self, ACCESS_KEY, SECRET_KEY, fault, fault::Fault};

const JUNE: &[(&str, &str)] = &[("data/june.csv", "a,b\n"), ("index.html", "<h1>June</h1>\n")];

#[test]
fn a_secret_that_is_missing_keeps_a_program_from_starting() {
    let Some(server) = servers::all().pop() else { return };
    let scene = Scene::on(server);
    scene.configure("backend: local, path: in", &[&format!("id: www, {}", scene.s3("site"))]);
    scene.bundle("in/report", 1, JUNE);
    for (program, args) in [(RUN, ""), (RUN, "--dry-run"), (PRUNE, "--pipeline reports --destination www --dry-run")] {
        let empty =
            scene.command(program, &format!("-c site.yml --format json {args}")).env("TEST_SECRET_KEY", "").output();
        let output = empty.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
        assert!(said.contains("[missing_secret]") && !said.contains(ACCESS_KEY), "{said}");
    }
    let mut command = scene.command(RUN, "-c site.yml");
    let output = checked(command.env_remove("TEST_SECRET_KEY").env_remove("TEST_KEY_ID"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(2) && said.contains("TEST_KEY_ID") && said.contains("TEST_SECRET_KEY"),
        "{said}"
    );
    assert_eq!(scene.place.keys(), Vec::<String>::new());
    // A check of the configuration needs no secret.
    let output = scene.command(VALIDATE, "-c site.yml").env_remove("TEST_SECRET_KEY").output().unwrap();
    assert!(output.status.success());
    // They may be files, too.
    let text = std::fs::read_to_string(scene.path("site.yml")).unwrap();
    scene.write("site.yml", &format!("secrets: {{directory: secrets}}\n{text}"));
    scene.write("secrets/TEST_KEY_ID", &format!("{ACCESS_KEY}\n")).write("secrets/TEST_SECRET_KEY", SECRET_KEY);
    let mut command = scene.command(RUN, "-c site.yml --format json");
    let output = checked(command.env_remove("TEST_SECRET_KEY").env_remove("TEST_KEY_ID"));
    assert_eq!(outcomes(&scene.document(&output, 0)), ["publish_new"]);
}

#[test]
fn a_place_that_names_no_variables_takes_the_key_of_the_environment_or_of_a_profile() {
    for server in servers::all() {
        let scene = Scene::on(server);
        let site = scene.s3("site");
        let (site, _) = site.split_once(", access_key_id_env").unwrap();
        scene.configure("backend: local, path: in", &[&format!("id: www, {site}")]).bundle("in/report", 1, JUNE);
        let key = format!("aws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n");
        scene.write("home/.aws/credentials", &format!("[default]\naws_access_key_id = other\n[news]\n{key}"));
        let run = |variables: &[(&str, &str)], status: i32| {
            let mut command = scene.command(RUN, "-c site.yml --format json");
            command.env("AWS_EC2_METADATA_DISABLED", "true").envs(variables.iter().copied());
            scene.document(&checked(&mut command), status)
        };
        let document = run(&[], 1);
        assert_eq!(outcomes(&document), ["auth_failed"]);
        let message = document["pipelines"][0]["destinations"][0]["error"]["message"].as_str().unwrap();
        assert!(message.contains("there are no credentials") && message.contains("access_key_id_env"), "{message}");
        let home = scene.path("home").display().to_string();
        assert_eq!(outcomes(&run(&[("HOME", &home)], 1)), ["auth_failed"], "half a key");
        assert_eq!(outcomes(&run(&[("HOME", &home), ("AWS_PROFILE", "nobody")], 1)), ["auth_failed"]);
        assert_eq!(outcomes(&run(&[("HOME", &home), ("AWS_PROFILE", "news")], 0)), ["publish_new"]);
        let environment = [("AWS_ACCESS_KEY_ID", ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", SECRET_KEY)];
        assert_eq!(outcomes(&run(&environment, 0)), ["skip_same"]);
    }
}

#[test]
fn a_server_that_is_not_there_is_told_within_seconds_and_stops_no_other_destination() {
    let Some(server) = servers::all().pop() else { return };
    let scene = Scene::on(server);
    let nobody = servers::process::free();
    let lost = format!("id: lost, {}", scene.s3_through(nobody, "site"));
    scene.configure("backend: local, path: in", &[&lost, "id: disk, backend: local, path: out"]);
    scene.bundle("in/report", 1, JUNE);
    let begun = Instant::now();
    let document = scene.run(RUN, "-c site.yml", 1);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(outcomes(&document), ["unreachable", "publish_new"]);
    assert_eq!(document["status"], "partial_failure");
    let message = document["pipelines"][0]["destinations"][0]["error"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("{nobody}: connection refused: check the address")), "{message}");
    let unknown = lost.replace(&nobody.to_string(), "no-such-host.invalid");
    scene.configure("backend: local, path: in", &[&unknown]);
    assert_eq!(scene.publish("", 1), ["unreachable"]);
    scene.configure(&scene.s3_through(nobody, "in"), &["id: disk, backend: local, path: out"]);
    let document = scene.run(RUN, "-c site.yml", 1);
    assert_eq!(document["pipelines"][0]["error"]["code"], "unreachable");
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for_long() {
    let Some(server) = servers::all().pop() else { return };
    let (scene, proxy) = (Scene::on(server), Proxy::before(server.address));
    proxy.fault(100, Fault::Silence, |_| true);
    let site = format!("id: www, {}, timeout: 1s", scene.s3_through(proxy.address, "site"));
    scene.configure("backend: local, path: in", &[&site]).bundle("in/report", 1, JUNE);
    let begun = Instant::now();
    assert_eq!(scene.publish("", 1), ["timeout"]);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[test]
fn a_bucket_that_is_not_there_is_not_made() {
    for server in servers::all() {
        let scene = Scene::on(server);
        let site = scene.s3("site").replace("bucket: bucket", "bucket: nowhere");
        scene.configure("backend: local, path: in", &[&format!("id: www, {site}")]).bundle("in/report", 1, JUNE);
        for args in ["--dry-run", ""] {
            let document = scene.run(RUN, &format!("-c site.yml {args}"), 1);
            let error = &document["pipelines"][0]["destinations"][0]["error"];
            // Garage says no more than that this key may not.
            assert!(["not_found", "permission_denied"].contains(&outcomes(&document)[0].as_str()), "{error}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("s3://nowhere/") && !message.contains("run again"), "{message}");
        }
    }
}

#[test]
fn a_wrong_key_is_refused_and_not_shown() {
    // moto believes every signature.
    let Some(server) = servers::garage::server() else { return };
    let scene = Scene::on(server);
    scene.configure("backend: local, path: in", &[&format!("id: www, {}", scene.s3("site"))]);
    scene.bundle("in/report", 1, JUNE);
    for (name, value) in [("TEST_SECRET_KEY", "not-the-one"), ("TEST_KEY_ID", "GKnobody")] {
        let mut command = scene.command(RUN, "-c site.yml --format json");
        let document = scene.document(&checked(command.env(name, value)), 1);
        let error = &document["pipelines"][0]["destinations"][0]["error"];
        assert_eq!(outcomes(&document), ["auth_failed"], "{error}");
        assert!(!error.to_string().contains(value), "{error}");
    }
}

#[test]
fn a_bucket_of_another_region_is_told_with_its_region() {
    let Some(server) = servers::moto::server() else { return };
    let (scene, proxy) = (Scene::on(server), Proxy::before(server.address));
    proxy.fault(100, Fault::Instead(fault::elsewhere(301, "PermanentRedirect", "eu-west-3")), |_| true);
    let site = format!("id: www, {}", scene.s3_through(proxy.address, "site"));
    scene.configure("backend: local, path: in", &[&site]).bundle("in/report", 1, JUNE);
    let document = scene.run(RUN, "-c site.yml", 1);
    let message = document["pipelines"][0]["destinations"][0]["error"]["message"].as_str().unwrap();
    assert!(message.contains("set region: eu-west-3"), "{message}");
}

#[test]
fn a_region_that_is_not_the_server_s_is_told_by_a_run_too() {
    let Some(server) = servers::garage::server() else { return };
    let scene = Scene::on(server);
    let site = scene.s3("site").replace("region: garage", "region: us-east-1");
    scene.configure("backend: local, path: in", &[&format!("id: www, {site}")]).bundle("in/report", 1, JUNE);
    for args in ["--dry-run", ""] {
        let document = scene.run(RUN, &format!("-c site.yml {args}"), 1);
        let message = document["pipelines"][0]["destinations"][0]["error"]["message"].as_str().unwrap();
        assert!(message.contains("set region: garage"), "{message}");
    }
}

#[test]
fn a_server_that_is_lost_is_not_asked_again_for_each_bundle() {
    let Some(server) = servers::all().pop() else { return };
    let (scene, proxy) = (Scene::on(server), Proxy::before(server.address));
    proxy.fault(usize::MAX, Fault::Silence, |_| true);
    let site = format!("id: www, {}, timeout: 1s", scene.s3_through(proxy.address, "site"));
    scene.configure("backend: local, path: in", &[&site, "id: disk, backend: local, path: out"]);
    (1..=9).for_each(|day| {
        scene.bundle(&format!("in/{day}"), day, JUNE);
    });
    let document = scene.run(RUN, "-c site.yml", 1);
    assert_eq!(outcomes(&document), ["timeout", "publish_new"].repeat(9));
    let records = document["pipelines"][0]["destinations"].as_array().unwrap();
    let again = |record: &&serde_json::Value| {
        record["error"]["message"].as_str().is_some_and(|m| m.starts_with("not tried any more: "))
    };
    assert_eq!((records.iter().filter(again).count(), proxy.seen().len()), (8, 2), "{document}");
}

#[test]
fn an_address_that_is_not_s3_s_is_told_as_such() {
    for server in servers::all() {
        let scene = Scene::on(server);
        let endpoint = format!("endpoint: 'http://{}/bucket'", server.address);
        let site = scene.s3("site").replace(&format!("endpoint: 'http://{}'", server.address), &endpoint);
        scene.configure(&site, &["id: disk, backend: local, path: out"]);
        let document = scene.run(RUN, "-c site.yml", 1);
        let error = &document["pipelines"][0]["error"];
        assert!(error["message"].as_str().unwrap().contains("without the bucket's name"), "{error}");
    }
}

#[test]
fn a_server_that_knows_no_conditions_is_sent_none() {
    for server in servers::all() {
        let (scene, proxy) = (Scene::on(server), Proxy::before(server.address));
        let not_implemented = Fault::Instead(fault::error(501, "NotImplemented"));
        let conditional =
            |seen: &servers::proxy::Seen| ["if-match", "if-none-match"].iter().any(|n| seen.header(n).is_some());
        proxy.fault(100, not_implemented, conditional);
        let site = format!("id: www, {}", scene.s3_through(proxy.address, "site"));
        scene.configure("backend: local, path: in", &[&site]).bundle("in/report", 1, JUNE);
        assert_eq!(scene.publish("", 0), ["publish_new"]);
        scene.bundle("in/report", 2, &[("index.html", "<h1>July</h1>\n")]);
        assert_eq!(scene.publish("", 0), ["replace_older"]);
        // What fails half-way takes back what was new.
        scene.bundle("in/report", 3, &[("index.html", "<h1>August</h1>\n"), ("new.csv", "c,d\n")]);
        let is_page = |seen: &servers::proxy::Seen| seen.kind == Kind::PutObject && seen.key.ends_with("index.html");
        proxy.fault(1, Fault::Instead(fault::error(403, "AccessDenied")), is_page);
        assert_eq!(scene.publish("", 1), ["permission_denied"]);
        assert!(!scene.there("site/report/").contains_key("new.csv"));
        assert_eq!(scene.publish("", 0), ["replace_older"]);
        assert_eq!(scene.place.keys().len(), 3, "{:?}", scene.place.keys());
    }
}

#[test]
fn a_proxy_is_heeded_and_left_out_where_that_is_said() {
    let Some(server) = servers::moto::server() else { return };
    let scene = Scene::on(server);
    scene.configure("backend: local, path: in", &[&format!("id: www, {}", scene.s3("site"))]);
    scene.bundle("in/report", 1, JUNE);
    let nobody = format!("http://{}", servers::process::free());
    let mut command = scene.command(RUN, "-c site.yml --format json");
    let document = scene.document(&checked(command.env("HTTP_PROXY", &nobody)), 1);
    assert_eq!(outcomes(&document), ["unreachable"]);
    let message = document["pipelines"][0]["destinations"][0]["error"]["message"].as_str().unwrap();
    assert!(message.contains("through the proxy 127.0.0.1:"), "{message}");
    // One of the other scheme does not count, and one that can't be used is no small matter.
    let other = checked(scene.command(RUN, "-c site.yml --dry-run").env("HTTPS_PROXY", &nobody));
    assert_eq!(other.status.code(), Some(0));
    let socks = checked(scene.command(RUN, "-c site.yml").env("ALL_PROXY", "socks5://user:hidden@127.0.0.1:1"));
    let said = String::from_utf8(socks.stderr).unwrap();
    assert!(socks.status.code() == Some(2) && said.contains("$ALL_PROXY") && !said.contains("hidden"), "{said}");
    let document = scene.document(&checked(command.env("NO_PROXY", "localhost, 127.0.0.1")), 0);
    assert_eq!(outcomes(&document), ["publish_new"]);
}

#[test]
fn a_key_that_may_not_delete_is_told_of() {
    for server in servers::all() {
        for kind in [Kind::DeleteObject, Kind::DeleteObjects] {
            let (scene, proxy) = (Scene::on(server), Proxy::before(server.address));
            let is_ours = move |seen: &servers::proxy::Seen| seen.kind == kind;
            proxy.fault(9, Fault::Instead(fault::error(403, "AccessDenied")), is_ours);
            let site = format!("id: www, {}", scene.s3_through(proxy.address, "site"));
            scene.configure("backend: local, path: in", &[&site]).bundle("in/report", 1, JUNE);
            let document = scene.run(RUN, "-c site.yml", 0);
            assert_eq!(outcomes(&document), ["publish_new"], "{kind:?}");
            let warning = &document["warnings"][0];
            assert_eq!(warning["code"], "clean_up_failed", "{document}");
            assert!(warning["message"].as_str().unwrap().contains("AccessDenied (403)"), "{warning}");
        }
    }
}

#[test]
fn a_busy_server_is_asked_again() {
    for server in servers::all() {
        let (scene, proxy) = (Scene::on(server), Proxy::before(server.address));
        for kind in [Kind::List, Kind::PutObject, Kind::GetObject] {
            proxy.fault(2, Fault::Instead(fault::slow_down(0)), move |seen| seen.kind == kind);
        }
        let site = format!("id: www, {}", scene.s3_through(proxy.address, "site"));
        scene.configure("backend: local, path: in", &[&site]).bundle("in/report", 1, JUNE);
        assert_eq!(scene.publish("", 0), ["publish_new"]);
        assert_eq!(scene.there("site/report/"), files(JUNE));
    }
}

#[test]
fn a_key_that_can_be_none_is_told_by_the_name_of_its_variable_before_anything_is_asked() {
    let Some(server) = servers::all().pop() else { return };
    let scene = Scene::on(server);
    let nobody = servers::process::free();
    let site = format!("id: www, {}, session_token_env: TEST_TOKEN", scene.s3_through(nobody, "site"));
    scene.configure("backend: local, path: in", &[&site]).bundle("in/report", 1, JUNE);
    for (variable, value) in [
        ("TEST_KEY_ID", "\u{fc}"),
        ("TEST_KEY_ID", "hush hush"),
        ("TEST_SECRET_KEY", "hush\nhush"),
        ("TEST_SECRET_KEY", "hush\u{e4}"),
        ("TEST_SECRET_KEY", " \n"),
        ("TEST_TOKEN", "hush\u{7f}"),
    ] {
        let mut command = scene.command(RUN, "-c site.yml");
        let output = command.env("TEST_TOKEN", "t").env(variable, value).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("${variable} ")) && said.contains("[invalid_config]"), "{said}");
        assert!(!said.contains("hush") && !said.contains('\u{fc}'), "{said}");
    }
    // Line breaks around it are no part of it.
    scene.configure("backend: local, path: in", &[&format!("id: www, {}", scene.s3("site"))]);
    let mut command = scene.command(RUN, "-c site.yml --format json");
    let output = checked(command.env("TEST_KEY_ID", format!(" {ACCESS_KEY}\r\n")));
    assert_eq!(outcomes(&scene.document(&output, 0)), ["publish_new"]);
}

#[test]
fn names_in_json_do_nothing_to_a_terminal() {
    let Some(server) = servers::all().pop() else { return };
    let scene = Scene::on(server);
    scene.configure("backend: local, path: in", &[&format!("id: www, {}", scene.s3("site"))]);
    scene.bundle("in/report", 1, &[("a\u{202e}b\u{200b}.csv", "a,b\n")]);
    let odd = "site/report/x\u{9b}31m\u{202e}";
    scene.place.put(odd, b"theirs");
    for (args, status) in [("-v", 1), ("--force --dry-run", 0)] {
        let output = scene.output(RUN, &format!("-c site.yml --format json {args}"));
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(!text.contains(['\u{9b}', '\u{202e}', '\u{200b}']), "{text}");
        let document = scene.document(&output, status);
        assert_eq!(document.to_string().contains("x\u{9b}31m\u{202e}"), status == 0, "{document}");
    }
}
