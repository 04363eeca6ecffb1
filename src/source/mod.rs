//! What a source holds: finding bundles, and choosing among them.

mod discover;
mod select;

pub use discover::{Discovery, Found, discover};
pub use select::newest;
