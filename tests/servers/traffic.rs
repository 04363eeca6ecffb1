//! The proxy passes on what comes, and tells what came.

use std::io::BufReader;
use std::net::TcpStream;

use crate::servers::http::exchange;
use crate::servers::place::one;
use crate::servers::proxy::{Kind, Proxy};
use crate::servers::{Place, all};

/// A request by way of the proxy: method, key, query, body.
type Asked = (&'static str, Option<&'static str>, &'static [(&'static str, &'static str)], &'static [u8]);

/// One of each kind; the object is there where it is asked for.
const ASKED: [(Kind, Asked); 11] = [
    (Kind::PutObject, ("PUT", Some("a b"), &[], b"1234567")),
    (Kind::GetObject, ("GET", Some("a b"), &[], b"")),
    (Kind::HeadObject, ("HEAD", Some("a b"), &[], b"")),
    (Kind::List, ("GET", None, &[("list-type", "2"), ("prefix", "none/")], b"")),
    (Kind::List, ("GET", None, &[("prefix", "none/")], b"")),
    (Kind::ListUploads, ("GET", None, &[("prefix", "none/"), ("uploads", "")], b"")),
    (Kind::DeleteObject, ("DELETE", Some("a b"), &[], b"")),
    (Kind::GetObject, ("GET", Some("a b"), &[], b"")),
    (Kind::DeleteObjects, ("POST", None, &[("delete", "")], b"<Delete><Object><Key>none/x</Key></Object></Delete>")),
    (Kind::AbortUpload, ("DELETE", Some("x"), &[("uploadId", "none")], b"")),
    (Kind::CreateUpload, ("POST", Some("up"), &[("uploads", "")], b"")),
];

#[test]
fn requests_pass_over_one_connection_and_are_told() {
    for server in all() {
        let (place, proxy) = (server.place("traffic"), Proxy::before(server.address));
        let mut line = BufReader::new(TcpStream::connect(proxy.address).unwrap());
        let mut statuses = Vec::new();
        for (kind, (method, key, query, body)) in ASKED {
            let headers: &[(&str, &str)] = if kind == Kind::DeleteObjects {
                &[("Content-MD5", "YI+EY2utl7Nc00VWZGd34Q==")]
            } else {
                &[("x-amz-meta-told", "kept")]
            };
            let request = place.signed((proxy.address, method), key, query, headers, body);
            statuses.push(exchange(&mut line, &request).unwrap().status());
        }
        let name = server.name;
        let seen = proxy.seen();
        let kinds: Vec<Kind> = seen.iter().map(|seen| seen.kind).collect();
        assert_eq!(kinds, ASKED.map(|(kind, _)| kind), "{name}");
        assert_eq!(statuses[..8], [200, 200, 200, 200, 200, 200, 204, 404], "{name}: {statuses:?}");
        assert_eq!(seen.iter().map(|seen| seen.status.unwrap()).collect::<Vec<_>>(), statuses, "{name}");
        assert_eq!((proxy.connections(), proxy.busiest()), (1, 1), "{name}");
        assert_eq!((proxy.count(Kind::GetObject), proxy.counts()[&Kind::List]), (2, 2), "{name}");
        assert_eq!(seen[0].key, format!("{}a b", place.prefix), "{name}");
        assert_eq!((seen[0].length, seen[0].body.as_slice()), (7, b"1234567".as_slice()), "{name}");
        assert_eq!(seen[0].header("X-Amz-Meta-Told"), Some("kept"), "{name}");
        assert_eq!(seen[3].parameter("prefix").as_deref(), Some("none/"), "{name}");
        proxy.forget();
        assert!(proxy.seen().is_empty());
        let open = place.uploads();
        assert_eq!(open.len(), 1, "{name}");
        abort(&place, &open[0].key, &open[0].id);
    }
}

#[test]
fn an_upload_in_parts_passes() {
    for server in all() {
        let (place, proxy) = (server.place("parts"), Proxy::before(server.address));
        let call = |method, query: &[(&str, &str)], body: &[u8]| {
            let answer = place.call_at(proxy.address, method, Some("big"), query, &[], body);
            assert_eq!(answer.status(), 200, "{}: {}", server.name, answer.text());
            answer
        };
        let id = one(&call("POST", &[("uploads", "")], b"").text(), "UploadId").to_owned();
        let parts = [vec![b'1'; 5 * 1024 * 1024], vec![b'2'; 3]];
        let mut told = String::new();
        for (number, part) in (1..).zip(&parts) {
            let number = number.to_string();
            let answer = call("PUT", &[("partNumber", &number), ("uploadId", &id)], part);
            let tag = answer.field("etag").unwrap();
            told += &format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>");
        }
        let told = format!("<CompleteMultipartUpload>{told}</CompleteMultipartUpload>");
        call("POST", &[("uploadId", &id)], told.as_bytes());
        assert_eq!(place.bytes("big"), parts.concat(), "{}", server.name);
        let kinds: Vec<Kind> = proxy.seen().iter().map(|seen| seen.kind).collect();
        assert_eq!(kinds, [Kind::CreateUpload, Kind::UploadPart, Kind::UploadPart, Kind::CompleteUpload]);
        assert!(proxy.seen()[1].body.is_empty() && place.uploads().is_empty());
    }
}

fn abort(place: &Place, key: &str, id: &str) {
    assert_eq!(place.call("DELETE", Some(key), &[("uploadId", id)], &[], b"").status(), 204);
}
