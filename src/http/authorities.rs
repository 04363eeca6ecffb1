//! Whom to trust.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use ureq::tls::{Certificate, PemItem, parse_pem};

use crate::{error, host};

/// The certificates of authorities that servers are held against.
#[derive(Clone, Debug)]
pub struct Authorities(pub(super) Arc<Vec<Certificate<'static>>>);

impl Authorities {
    /// Those of a PEM file. The error says what is wrong with it.
    pub fn read(file: &Path) -> Result<Authorities, String> {
        let read = || {
            let mut pem = Vec::new();
            host::open_file(file)?.read_to_end(&mut pem).map(|_| pem)
        };
        let read: Result<Vec<u8>, io::Error> = read();
        let parsed = read.map_err(|error| error::words(&error)).and_then(|pem| Authorities::parse(&pem));
        parsed.map_err(|what| format!("{}: {what}", file.display()))
    }

    fn parse(pem: &[u8]) -> Result<Authorities, String> {
        let mut found = Vec::new();
        for item in parse_pem(pem) {
            if let PemItem::Certificate(certificate) = item.map_err(|_| "it is not a whole PEM file")? {
                // Who takes it later passes over what can't be read.
                let mut store = RootCertStore::empty();
                let number = found.len() + 1;
                store
                    .add(certificate.der().to_vec().into())
                    .map_err(|_| format!("its certificate number {number} can't be read"))?;
                found.push(certificate);
            }
        }
        if found.is_empty() { Err("no certificate in it".to_owned()) } else { Ok(Authorities(Arc::new(found))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_read_or_refused() {
        let of = |names: &[&str]| {
            let key = rcgen::KeyPair::generate().unwrap();
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap().pem()
        };
        let (one, other) = (of(&["a"]), of(&["b"]));
        assert_eq!(Authorities::parse(format!("# both\n{one}\n{other}").as_bytes()).unwrap().0.len(), 2);
        let lines: Vec<&str> = other.lines().collect();
        let without = [&lines[..2], &lines[3..]].concat().join("\n");
        for (text, said) in [
            ("nothing".to_owned(), "no certificate in it"),
            (lines[..3].join("\n"), "it is not a whole PEM file"),
            (format!("{one}\n{without}"), "its certificate number 2 can't be read"),
        ] {
            assert_eq!(Authorities::parse(text.as_bytes()).unwrap_err(), said);
        }
    }

    #[test]
    fn a_pipe_is_no_file_of_certificates() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
        let said = Authorities::read(&pipe).unwrap_err();
        assert!(said.ends_with("/pipe: it is not a regular file"), "{said}");
    }
}
