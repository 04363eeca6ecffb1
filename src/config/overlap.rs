//! Destinations and sources that lie on or in each other, by their names alone: links are not followed.

use std::path::{Component, Path};

use super::choice::{PathMapping, StateMode};
use super::field::Context;
use super::model::{Destination, Source, Target};
use super::pipeline::Read;
use super::place::{S3Place, SshPlace};
use super::problem::Spot;

/// A root: the storage it is on, and its path there by segments.
#[derive(Debug, PartialEq)]
struct Root {
    storage: Vec<String>,
    path: Vec<String>,
}

impl Root {
    fn contains(&self, other: &Root) -> bool {
        self.storage == other.storage && other.path.starts_with(&self.path)
    }
}

/// A destination and what is said of it.
struct Node<'a> {
    name: String,
    destination: &'a Destination,
    root: Root,
    spot: &'a Spot,
}

/// Checks every destination against every other and every source.
pub(super) fn check(read: &[Read], cx: &mut Context) {
    let nodes = destinations(read);
    for (at, node) in nodes.iter().enumerate() {
        let is_path = !matches!(node.destination.target, Target::S3(_));
        if is_path && node.root.path.as_slice() == ["/"] {
            let hint = "choose a directory that holds nothing else";
            cx.report.add_with(node.spot, "a destination must not be \"/\"", hint);
            continue;
        }
        for earlier in &nodes[..at] {
            pair(earlier, node, cx);
        }
        against_sources(node, read, cx);
    }
}

fn destinations(read: &[Read]) -> Vec<Node<'_>> {
    let mut nodes = Vec::new();
    for pipeline in read {
        for (destination, spot) in &pipeline.destinations {
            let Some(destination) = destination else { continue };
            let name = format!("{}/{}", pipeline.id.as_deref().unwrap_or("?"), destination.id);
            let root = match &destination.target {
                Target::Local(target) => local(&target.path),
                Target::Ssh(target) => ssh(&target.place),
                Target::S3(place) => s3(place),
            };
            nodes.push(Node { name, destination, root, spot });
        }
    }
    nodes
}

fn pair(earlier: &Node, later: &Node, cx: &mut Context) {
    let (a, b) = (earlier.destination, later.destination);
    if earlier.root == later.root {
        let both_fit = a.path_mapping == PathMapping::PreserveRelative
            && b.path_mapping == PathMapping::PreserveRelative
            && a.state_mode == b.state_mode;
        let both_shared = a.state_mode == StateMode::SharedRoot && b.state_mode == StateMode::SharedRoot;
        if !both_fit && !both_shared {
            let message = format!("is the same place as destination {}", earlier.name);
            let hint = "choose another one; sharing needs state.mode shared_root on both, or path_mapping \
                        preserve_relative and one state.mode";
            cx.report.add_with(later.spot, message, hint);
        }
        return;
    }
    let inside = |inner: &Node, outer: &Node| {
        outer.destination.path_mapping == PathMapping::Fixed && outer.root.contains(&inner.root)
    };
    if inside(later, earlier) {
        cx.report.add(later.spot, format!("lies inside destination {}, which is fixed", earlier.name));
    } else if inside(earlier, later) {
        cx.report.add(later.spot, format!("is fixed, and destination {} lies inside it", earlier.name));
    }
}

fn against_sources(node: &Node, read: &[Read], cx: &mut Context) {
    for pipeline in read {
        let Some((source, _)) = &pipeline.source else { continue };
        let root = match source {
            Source::Local(source) => local(&source.path),
            Source::Ssh(place) => ssh(place),
            Source::S3(place) => s3(place),
            Source::HttpUpload(_) => continue,
        };
        let name = pipeline.id.as_deref().unwrap_or("?");
        if root == node.root {
            cx.report.add(node.spot, format!("is the source of pipeline {name}"));
        } else if root.contains(&node.root) {
            cx.report.add(node.spot, format!("lies inside the source of pipeline {name}"));
        } else if node.root.contains(&root) {
            cx.report.add(node.spot, format!("the source of pipeline {name} lies inside it"));
        }
    }
}

fn local(path: &Path) -> Root {
    let mut segments = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => segments.push(crate::path::escape(name.as_encoded_bytes())),
            Component::RootDir => segments.push("/".to_owned()),
            Component::ParentDir => up(&mut segments),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Root { storage: vec!["local".to_owned()], path: segments }
}

/// One directory up: not beyond the root, but beyond where a relative path starts.
fn up(segments: &mut Vec<String>) {
    match segments.last().map(String::as_str) {
        Some("/") => {}
        None | Some("..") => segments.push("..".to_owned()),
        Some(_) => drop(segments.pop()),
    }
}

fn ssh(place: &SshPlace) -> Root {
    let Root { path, .. } = local(Path::new(&place.path));
    let user = place.user.clone().unwrap_or_default();
    // The user counts: servers that confine users give each a root of its own.
    let storage = vec!["ssh".to_owned(), place.host.to_ascii_lowercase(), place.port.to_string(), user];
    Root { storage, path }
}

fn s3(place: &S3Place) -> Root {
    // AWS's bucket names are the same in every region.
    let endpoint = place.endpoint.clone().unwrap_or_default();
    let path = place.prefix.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect();
    Root { storage: vec!["s3".to_owned(), endpoint, place.bucket.clone()], path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_by_segments_without_dots() {
        let root = |text: &str| local(Path::new(text));
        assert_eq!(root("/a/./b/../c/"), root("/a/c"));
        assert_eq!(root("/.."), root("/"));
        assert_eq!(root("a/../.."), root(".."));
        assert!(root("/a").contains(&root("/a/b")));
        assert!(!root("/a").contains(&root("/ab")));
        assert!(!root("/a/b").contains(&root("/a")));
        assert!(!root("/a").contains(&root("a/b")));
    }
}
