//! A key in the environment itself.

use super::world::World;
use super::{Key, no_key};
use crate::error::Result;

const ID: &str = "AWS_ACCESS_KEY_ID";
const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
const TOKEN: &str = "AWS_SESSION_TOKEN";

/// Whether it decides.
pub(super) fn is_configured(world: &World) -> bool {
    world.has(ID) || world.has(SECRET)
}

/// The key, where there is one. Half a key is an error: who set it meant it.
pub(super) fn find(world: &World) -> Result<Option<Key>> {
    if !is_configured(world) {
        return Ok(None);
    }
    let key = || {
        let part = |name: &str| world.text(name)?.ok_or_else(|| format!("${name} is not set"));
        Key::of(part(ID)?, part(SECRET)?, world.text(TOKEN)?, None)
    };
    let cure = format!("set {ID} and {SECRET}, and {TOKEN} where the key is for a while, or unset them all");
    key().map(Some).map_err(|what| no_key("the environment", what, cure))
}
