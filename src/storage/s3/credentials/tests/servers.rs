//! Keys that servers give: web identity, container, instance metadata.

use std::time::{Duration, Instant};

use super::Reply::{self, Endless, HangsUp, Nothing, Says};
use super::{Server, closed, document, found, get, in_minutes, refused, safe, says, serve, three};

const URI: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
const METADATA: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";

fn sts(id: &str) -> String {
    let until = in_minutes(60);
    format!(
        "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
         <AssumeRoleWithWebIdentityResult><AssumedRoleUser><Arn>arn</Arn></AssumedRoleUser>\
         <Credentials><SessionToken>hush-token</SessionToken><SecretAccessKey>hush-secret</SecretAccessKey>\
         <Expiration>{until}</Expiration><AccessKeyId>{id}</AccessKeyId></Credentials>\
         </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
    )
}

/// The variables of a web identity whose token stands in `token`.
fn identity<'a>(server: &'a Server, token: &'a tempfile::NamedTempFile) -> Vec<(&'a str, &'a str)> {
    vec![
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.path().to_str().unwrap()),
        ("AWS_ENDPOINT_URL_STS", &server.address),
    ]
}

fn token(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn a_web_identity_is_changed_for_a_key_and_its_token_is_read_anew() {
    let server = serve(|_, _| Says(200, sts("W")));
    let file = token("hush+1/\n");
    assert_eq!(found(&identity(&server, &file)), three("W", "hush-secret", Some("hush-token")));
    std::fs::write(file.path(), "hush2").unwrap();
    let mut named = identity(&server, &file);
    named.push(("AWS_ROLE_SESSION_NAME", "me"));
    found(&named);
    let asked = server.asked();
    assert!(asked[0].starts_with("POST / HTTP/1.1\r\n"), "no token in an address: {}", asked[0]);
    let form = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr";
    assert!(asked[0].ends_with(&format!("{form}&RoleSessionName=distributor&WebIdentityToken=hush%2B1%2F")));
    assert!(asked[1].ends_with("&RoleSessionName=me&WebIdentityToken=hush2"));
}

#[test]
fn what_a_web_identity_is_refused_for_is_said_with_its_cure() {
    let file = token("hush");
    for (status, code, word) in [
        (403, "AccessDenied", "trust policy"),
        (400, "ExpiredTokenException", "new token into the file"),
        (400, "InvalidIdentityToken", "identity provider"),
        (400, "Other", "AWS_ENDPOINT_URL_STS"),
    ] {
        let text = format!(
            "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>hush</Message></Error></ErrorResponse>"
        );
        let server = serve(move |_, _| Says(status, text.clone()));
        let error = refused(&identity(&server, &file));
        says(&error, &["the web identity", &server.address, &format!("{code} ({status})"), word]);
        assert_eq!(server.asked().len(), 1);
    }
    let server = serve(|before, _| if before == 0 { Says(503, "hush".to_owned()) } else { Says(200, sts("W")) });
    assert_eq!(found(&identity(&server, &file)).0, "W", "what passes is tried again");
    for text in ["<hush>", "", "<AssumeRoleWithWebIdentityResponse>hush</AssumeRoleWithWebIdentityResponse>"] {
        let server = serve(move |_, _| Says(200, text.to_owned()));
        says(&refused(&identity(&server, &file)), &["the answer is not that of a key"]);
    }
}

#[test]
fn a_web_identity_has_a_role_a_token_and_a_region() {
    let server = serve(|_, _| Nothing);
    for (text, word) in [("", "it is empty"), ("hush\nhush", "more than a token")] {
        says(&refused(&identity(&server, &token(text))), &[word]);
    }
    let file = token("hush");
    let mut all = identity(&server, &file);
    all[1].1 = "gone";
    says(&refused(&all), &["/nowhere/gone: there is no such file"]);
    let all = identity(&server, &file);
    says(&refused(&all[1..]), &["$AWS_ROLE_ARN is not"]);
    let mut all = all;
    all[2] = ("AWS_REGION", "example.org/?");
    says(&refused(&all), &["which is no region"]);
    assert!(server.asked().is_empty());
}

#[test]
fn a_region_has_its_own_token_service() {
    let at = |variables: &[(&str, &str)]| {
        let world = super::World::new(&crate::host::Host::fixed("/", variables));
        super::super::web_identity::endpoint(&world).unwrap()
    };
    assert_eq!(at(&[]), "https://sts.amazonaws.com/");
    assert_eq!(at(&[("AWS_DEFAULT_REGION", "eu-west-1")]), "https://sts.eu-west-1.amazonaws.com/");
    let both = [("AWS_DEFAULT_REGION", "eu-west-1"), ("AWS_REGION", "cn-north-1")];
    assert_eq!(at(&both), "https://sts.cn-north-1.amazonaws.com.cn/");
    assert_eq!(at(&[both[0], ("AWS_ENDPOINT_URL_STS", "https://sts.example.org")]), "https://sts.example.org");
}

#[test]
fn a_container_is_given_the_key_of_its_role() {
    let server = serve(|_, _| Says(200, document("C", &in_minutes(60))));
    let uri = (URI, server.address.as_str());
    let file = token("hush-file\n");
    assert_eq!(found(&[uri]), three("C", "hush-secret", Some("hush-token")));
    found(&[uri, ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hush-variable")]);
    let path = file.path().to_str().unwrap();
    let both = [("AWS_CONTAINER_AUTHORIZATION_TOKEN", "x"), ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", path)];
    found(&[uri, both[0], both[1]]);
    let asked = server.asked();
    assert!(!asked[0].contains("authorization"));
    assert!(asked[1].contains("authorization: hush-variable\r\n"));
    assert!(asked[2].contains("authorization: hush-file\r\n"), "the file goes before the variable");
    says(
        &refused(&[uri, ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "gone")]),
        &["/nowhere/gone: there is no such file"],
    );
}

#[test]
fn a_token_goes_over_tls_or_to_where_nobody_listens() {
    use super::super::container::{address, allowed};
    for (text, url) in [
        ("http://localhost:1/x", "http://127.0.0.1:1/x"),
        ("http://127.9.9.9/", "http://127.9.9.9/"),
        ("http://169.254.170.2/v2", "http://169.254.170.2/v2"),
        ("http://169.254.170.23/v1/credentials", "http://169.254.170.23/v1/credentials"),
        ("http://[fd00:ec2::23]/v1", "http://[fd00:ec2::23]/v1"),
        ("http://[::1]/", "http://[::1]/"),
        ("https://example.org/x", "https://example.org/x"),
    ] {
        assert_eq!(allowed(text).map(String::from).as_deref(), Some(url), "{text}");
    }
    for text in [
        "http://example.org/",
        "http://localhost.example.org/",
        "http://169.254.169.254/",
        "http://127.0.0.1@example.org/",
        "http://u:p@127.0.0.1/",
        "http://[::2]/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "127.0.0.1",
    ] {
        assert_eq!(allowed(text), None, "{text}");
        says(&refused(&[(URI, text)]), &["the container's role", URI]);
    }
    let at = |path| address(&super::World::new(&crate::host::Host::fixed("/", &[(RELATIVE, path)])));
    assert_eq!(at("/v2/x?y").unwrap().as_str(), "http://169.254.170.2/v2/x?y");
    assert_eq!(at("/@example.org").unwrap().host_str(), Some("169.254.170.2"));
    assert_eq!(at("//example.org/x").unwrap().host_str(), Some("169.254.170.2"));
    assert!(at("@example.org").is_err() && at(".example.org").is_err());
}

const RELATIVE: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";

type Replies = Box<dyn Fn() -> Reply + Send + Sync>;

#[test]
fn wrong_answers_are_errors_that_repeat_nothing() {
    let says_it = |status: u16, text: &'static str| move || Says(status, text.to_owned());
    let odd = |change: fn(String) -> String| move || Says(200, change(document("C", &in_minutes(60))));
    let cases: Vec<(&str, Replies)> = vec![
        ("the answer is not that of a key", Box::new(says_it(200, "hush"))),
        ("the answer is not that of a key", Box::new(says_it(200, "{\"AccessKeyId\":{\"hush\":1}}"))),
        ("the answer is not that of a key", Box::new(says_it(200, ""))),
        ("the key's end is no time", Box::new(odd(|text| text.replace('Z', "hush")))),
        ("the secret access key holds", Box::new(odd(|text| text.replace("hush-s", "hush s")))),
        ("the server answers 404", Box::new(says_it(404, "hush"))),
        ("the server answers 302", Box::new(says_it(302, "hush"))),
        ("the answer is longer", Box::new(|| Endless)),
    ];
    for (word, reply) in cases {
        let server = serve(move |_, _| reply());
        let secret_path = format!("{}/hush-path?hush", server.address);
        says(&refused(&[(URI, &secret_path)]), &["the container's role", &server.address, word]);
        assert_eq!(server.asked().len(), 1, "{word}: it is for good");
    }
    let server = serve(|before, _| match before {
        0 => HangsUp,
        1 => Says(500, "hush".to_owned()),
        _ => Says(200, document("C", &in_minutes(60))),
    });
    assert_eq!(found(&[(URI, &server.address)]).0, "C", "what passes is tried again");
    let server = serve(|_, _| Says(200, document("C", &in_minutes(-1))));
    says(&refused(&[(URI, &server.address)]), &["has ended already", "clock"]);
}

/// Instance metadata with a role, but for what `other` says.
fn metadata(other: impl Fn(usize, &str) -> Option<Reply> + Send + Sync + 'static) -> Server {
    serve(move |before, request| {
        let line = request.lines().next().unwrap();
        if let Some(reply) = other(before, line) {
            return reply;
        }
        let session = request.contains("x-aws-ec2-metadata-token: hush-session\r\n");
        match line {
            "PUT /latest/api/token HTTP/1.1" if request.contains("x-aws-ec2-metadata-token-ttl-seconds: 60\r\n") => {
                Says(200, "hush-session".to_owned())
            }
            _ if !session => Says(401, String::new()),
            "GET /latest/meta-data/iam/security-credentials/ HTTP/1.1" => Says(200, "web-role\n".to_owned()),
            "GET /latest/meta-data/iam/security-credentials/web-role HTTP/1.1" => {
                Says(200, document("I", &in_minutes(60)))
            }
            _ => Says(404, String::new()),
        }
    })
}

#[test]
fn an_instance_gives_the_key_of_its_role_within_a_session() {
    let server = metadata(|_, _| None);
    assert_eq!(found(&[(METADATA, &server.address)]), three("I", "hush-secret", Some("hush-token")));
    assert_eq!(server.asked().len(), 3);
    let disabled = refused(&[(METADATA, &server.address), ("AWS_EC2_METADATA_DISABLED", "True")]);
    says(&disabled, &["there are no credentials", "is disabled by AWS_EC2_METADATA_DISABLED"]);
    assert_eq!(server.asked().len(), 3);
    let server = metadata(|before, _| (before == 1).then(|| Says(401, String::new())));
    assert_eq!(found(&[(METADATA, &server.address)]).0, "I", "a session that was forgotten is begun again");
}

#[test]
fn an_instance_without_a_role_has_no_key() {
    for reply in [(404, ""), (200, ""), (200, "\n")] {
        let server = metadata(move |_, line| line.contains("credentials/ ").then(|| Says(reply.0, reply.1.to_owned())));
        says(&refused(&[(METADATA, &server.address)]), &["there are no credentials", "has no role"]);
    }
}

#[test]
fn a_host_that_is_no_instance_has_no_key_and_knows_soon() {
    let servers = [serve(|_, _| Nothing), serve(|_, _| HangsUp), serve(|_, _| Says(403, "hush".to_owned()))];
    let mut addresses: Vec<String> = servers.iter().map(|server| server.address.clone()).collect();
    addresses.push(closed());
    for address in addresses {
        let host = crate::host::Host::fixed("/nowhere", &[]);
        let mut world = super::World::new(&host);
        world.metadata = address;
        let begun = Instant::now();
        let error = safe(get(&super::Chain::new(world)).unwrap_err());
        says(&error, &["there are no credentials; http://127.0.0.1:"]);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
    assert!(servers.iter().all(|server| server.asked().len() == 2), "two tries");
}

#[test]
fn metadata_that_is_wrong_or_silent_is_said_soon() {
    for (status, text, word) in [(200, "", "no token"), (200, "hush\nhush", "no token"), (403, "hush", "answers 403")] {
        let server = metadata(move |_, line| line.starts_with("PUT").then(|| Says(status, text.to_owned())));
        let error = refused(&[(METADATA, &server.address)]);
        says(&error, &["the instance's role", "/latest/api/token", word, METADATA]);
        assert!(server.asked().iter().all(|request| request.starts_with("PUT")), "never without a session");
    }
    for (text, word) in [("../../hush", "no role's name"), ("hush hush", "no role's name")] {
        let server = metadata(move |_, line| line.contains("credentials/ ").then(|| Says(200, text.to_owned())));
        says(&refused(&[(METADATA, &server.address)]), &[word]);
    }
    let begun = Instant::now();
    let server = metadata(|_, _| Some(Nothing));
    says(&refused(&[(METADATA, &server.address)]), &["does not answer in time"]);
    assert_eq!(server.asked().len(), 2, "two tries");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    says(&refused(&[(METADATA, "127.0.0.1")]), &["is no address"]);
}
