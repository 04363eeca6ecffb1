//! What a source holds: finding bundles, choosing among them, and their files.

mod discover;
mod fetch;
mod select;
mod staging;

pub use discover::{Discovery, Found, discover};
pub use fetch::{Checked, Files};
pub use select::newest;
pub use staging::Staging;
