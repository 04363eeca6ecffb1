//! The real programs in a world that is against them: planted links, full disks, kill -9, others at work.
// clippy.toml lets tests unwrap, but not the helpers that they share.
#![allow(clippy::unwrap_used)]

mod calls;
mod disk;
mod kill;
mod links;
mod scene;
