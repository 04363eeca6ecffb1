//! A key in the shared profile files (AWS SDKs and Tools Reference Guide, "Shared config and credentials files").

use super::section::Section;
use super::world::World;
use super::{Key, no_key};
use crate::error::{Error, Result};

/// Settings that make another key of those that stand there: with them, these would be the wrong identity.
const ELSEWHERE: &[&str] = &["role_arn", "sso_session", "sso_start_url", "sso_account_id", "sso_role_name"];
const PROCESS: &str = "credential_process";

/// The key of the profile that `$AWS_PROFILE` names, or of `default`. A profile that is named has to be there; one that
/// is there may hold other settings only.
pub(super) fn find(world: &World) -> Result<Option<Key>> {
    let cure = || "set AWS_PROFILE, AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE to what is there, or unset them";
    let failed = |what: String| no_key("the profile files", what, cure());
    let named = world.text("AWS_PROFILE").map_err(failed)?.map(str::trim);
    let profile = named.unwrap_or("default");
    let credentials = Section::open(world, "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", &[profile.to_owned()]);
    let credentials = credentials.map_err(failed)?;
    let mut names = vec![format!("profile {profile}")];
    // The one profile that may stand there without the word.
    names.extend((profile == "default").then(|| profile.to_owned()));
    let config = Section::open(world, "AWS_CONFIG_FILE", ".aws/config", &names).map_err(failed)?;
    if named.is_some() && credentials.is_none() && config.is_none() {
        return Err(failed(format!("there is no profile {profile:?}")));
    }
    let sections: Vec<Section> = [credentials, config].into_iter().flatten().collect();
    let sets = |name: &str| sections.iter().any(|section| section.sets(name));
    if let Some(name) = ELSEWHERE.iter().find(|name| sets(name)) {
        return Err(not_done(profile, name));
    }
    for section in &sections {
        if let Some(key) = section.key()? {
            return Ok(Some(key));
        }
        // A key of the same file goes before it.
        if section.sets(PROCESS) {
            return Err(not_done(profile, PROCESS));
        }
    }
    Ok(None)
}

fn not_done(profile: &str, setting: &str) -> Error {
    let what = format!("profile {profile:?} sets {setting}, which distributor does not carry out");
    let cure = "put its key into the environment (aws configure export-credentials --format env), or name another \
                profile in AWS_PROFILE";
    no_key("the profile files", what, cure)
}
