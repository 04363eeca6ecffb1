//! The pages that `markdown_to_html` makes: against the `CommonMark` specification, against hostile input, in a browser.
// clippy.toml lets tests unwrap, but not the helpers that they share.
#![allow(clippy::unwrap_used)]

mod browser;
mod commonmark;
mod handbook;
mod hostile;
mod properties;
mod scene;
mod server;
mod size;
mod tree;
mod vet;
