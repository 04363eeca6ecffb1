//! What a stranger does to a bucket arrives there.

use crate::servers::place::Versions;
use crate::servers::{all, moto};

/// Names that are encoded somewhere on the way.
const KEYS: [&str; 7] = ["a", "b c/d+e", "h\u{e4}/\u{4f60}", "m&n<o>.html", "p%20q", "s=t?u#v", "~x-y_z.!*'()"];

#[test]
fn objects_are_put_listed_got_and_deleted() {
    for server in all() {
        let (place, other) = (server.place("objects"), server.place("objects"));
        other.put("a", b"other");
        for key in KEYS {
            place.put(key, key.as_bytes());
        }
        assert_eq!(place.keys(), KEYS, "{}", server.name);
        assert_eq!(place.pages(2), KEYS, "{}", server.name);
        for key in KEYS {
            assert_eq!(place.bytes(key), key.as_bytes(), "{}", server.name);
            assert_eq!(place.head(key).unwrap().header("content-length"), Some(key.len().to_string().as_str()));
            place.delete(key);
            assert!(place.get(key).is_none() && place.head(key).is_none(), "{}: {key}", server.name);
        }
        place.delete("a");
        assert!(place.tree().is_empty());
        assert_eq!(other.bytes("a"), b"other");
    }
}

#[test]
fn headers_are_kept() {
    for server in all() {
        let place = server.place("headers");
        place.put_with("a", b"1", &[("Content-Type", "text/x-test"), ("x-amz-meta-told", "kept")]);
        let object = place.get("a").unwrap();
        assert_eq!(object.header("content-type"), Some("text/x-test"), "{}", server.name);
        assert_eq!(object.header("x-amz-meta-told"), Some("kept"), "{}", server.name);
    }
}

#[test]
fn open_uploads_are_listed() {
    for server in all() {
        let (place, other) = (server.place("uploads"), server.place("uploads"));
        other.open_upload("a b");
        assert_eq!(place.uploads(), []);
        let id = place.open_upload("c d/\u{e4}");
        let uploads = place.uploads();
        assert_eq!(uploads.len(), 1, "{}", server.name);
        assert_eq!((uploads[0].key.as_str(), &uploads[0].id), ("c d/\u{e4}", &id), "{}", server.name);
        let answer = place.call("DELETE", Some("c d/\u{e4}"), &[("uploadId", &id)], &[], b"");
        assert_eq!((answer.status(), place.uploads()), (204, vec![]), "{}", server.name);
    }
}

#[test]
fn versions_are_kept_where_the_bucket_keeps_them() {
    let Some(server) = moto::server() else { return };
    let (plain, versioned) = (server.place("plain"), server.versioned("versioned"));
    for place in [&plain, &versioned] {
        place.put("a", b"1");
        place.put("a", b"2");
        place.put("ab", b"3");
    }
    assert_eq!(plain.versions("a"), Versions { objects: 1, deletions: 0 });
    assert_eq!(versioned.versions("a"), Versions { objects: 2, deletions: 0 });
    versioned.delete("a");
    assert!(versioned.get("a").is_none());
    assert_eq!(versioned.versions("a"), Versions { objects: 2, deletions: 1 });
}

#[test]
fn moto_honours_conditions() {
    let Some(server) = moto::server() else { return };
    let place = server.place("conditions");
    let put = |headers: &[(&str, &str)]| place.call("PUT", Some("a"), &[], headers, b"1").status();
    assert_eq!(put(&[("If-None-Match", "*")]), 200);
    assert_eq!(put(&[("If-None-Match", "*")]), 412);
    assert_eq!(put(&[("If-Match", "\"00000000000000000000000000000000\"")]), 412);
    let etag = place.head("a").unwrap().header("etag").unwrap().to_owned();
    assert_eq!(put(&[("If-Match", &etag)]), 200);
}
