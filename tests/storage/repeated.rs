//! Servers that repeat what they were told: no secret comes back in an error.

use distributor::error::Error;
use distributor::storage::s3::{Key, Keys};

use crate::servers::fault::{self, Fault};
use crate::servers::http::Message;
use crate::servers::proxy::Kind;
use crate::servers::{ACCESS_KEY, SECRET_KEY, moto};
use crate::verbs::{Line, VERBS, Verb};

const TOKEN: &str = "SESSION+token=0123456789";
const ENCODED: [&str; 2] = ["SESSION%2Btoken%3D0123456789", "SESSION%2btoken=012345678%39"];

fn line(verb: &Verb) -> Option<Line> {
    let line = Line::with(moto::server()?.place("repeated"), |settings| {
        settings.keys = Keys::given(Key {
            id: ACCESS_KEY.into(),
            secret: SECRET_KEY.into(),
            session_token: Some(TOKEN.into()),
            expires: None,
        });
    });
    verb.before.iter().for_each(|(key, bytes)| line.place.put(key, bytes));
    Some(line)
}

#[track_caller]
fn discreet(error: &Error, what: &str) {
    let text = format!("{error:?}");
    for secret in [TOKEN, ENCODED[0], ENCODED[1], ACCESS_KEY, SECRET_KEY] {
        assert!(!text.contains(secret), "{what}: {text}");
    }
}

/// Every answer in which `secret` may stand.
fn answers(secret: &str) -> Vec<Message> {
    let error = |inner: &str| format!("<Error>{inner}</Error>");
    let listing = |inner: &str| fault::answer(200, &format!("<ListBucketResult>{inner}</ListBucketResult>"));
    vec![
        fault::answer(400, &error(&format!("<Code>{secret}</Code><Message>{secret} and {secret}</Message>"))),
        fault::answer(403, &error(&format!("<Code>AccessDenied</Code><Message>{SECRET_KEY} {ACCESS_KEY}</Message>"))),
        fault::answer(200, &error(&format!("<Code>{secret}</Code><Message>{secret}</Message>"))),
        fault::elsewhere(301, "PermanentRedirect", secret),
        fault::elsewhere(400, "AuthorizationHeaderMalformed", secret),
        fault::answer(200, &format!("<{secret}/>")),
        fault::answer(501, &error(&format!("<Code>{secret}</Code>"))),
        fault::answer(412, &error(&format!("<Code>PreconditionFailed</Code><Message>{secret}</Message>"))),
        listing(&format!("<IsTruncated>{secret}</IsTruncated>")),
        listing(&format!("<Contents><Key>{secret}</Key><Size>{secret}</Size></Contents>")),
    ]
}

#[test]
fn no_error_repeats_what_a_server_repeats() {
    let one = |verb: &Verb| {
        let (Some(line), kind) = (line(verb), verb.kind) else { return };
        for secret in [TOKEN, ENCODED[0], ENCODED[1]] {
            // Whatever an object says, it is one.
            let is_one = |answer: &Message| kind == Kind::GetObject && answer.status() == 200;
            for answer in answers(secret).into_iter().filter(|answer| !is_one(answer)) {
                line.proxy.forget();
                let what = format!("{}: {} {}", verb.name, answer.start, answer.text());
                line.proxy.fault(usize::MAX, Fault::Instead(answer), move |seen| seen.kind == kind);
                if let Err(error) = (verb.act)(&line) {
                    discreet(&error, &what);
                }
            }
        }
    };
    // The uploads would take long, and are told of by the same code.
    let verbs = VERBS.iter().filter(|verb| !["begin", "part", "complete", "abort"].contains(&verb.name));
    std::thread::scope(|scope| verbs.for_each(|verb| drop(scope.spawn(|| one(verb)))));
}

#[test]
fn no_key_that_stays_does_so_either() {
    let Some(line) = line(&VERBS[0]) else { return };
    for secret in [TOKEN, ENCODED[0], SECRET_KEY] {
        let key = format!("{}x/2", line.place.prefix);
        let error = format!("<Error><Key>{key}</Key><Code>{secret}</Code><Message>it was {secret}</Message></Error>");
        let answer = fault::answer(200, &format!("<DeleteResult>{error}</DeleteResult>"));
        line.proxy.fault(1, Fault::Instead(answer), |seen| seen.parameter("delete").is_some());
        let results = line.remove(&["x/1", "x/2"]);
        let error = results[1].as_ref().unwrap_err();
        discreet(error, secret);
        assert!(error.message.contains("x/2: …: it was …"), "{error:?}");
    }
}
