//! The outputs that a destination gets from a bundle. Pure: what they are called and what is in them, not where they go.

mod links;
pub mod markdown;
mod outputs;

pub use outputs::{Output, Outputs, Pages, outputs, unused};
