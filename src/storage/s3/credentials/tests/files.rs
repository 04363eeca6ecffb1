//! Keys of the environment and of profile files.

use super::{found, refused, says, three};

/// A home directory with these files below `.aws`.
fn home(files: &[(&str, &str)]) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".aws")).unwrap();
    for (name, text) in files {
        std::fs::write(home.path().join(".aws").join(name), text).unwrap();
    }
    home
}

const BOTH: &str = "# people\n[default]\naws_access_key_id=D\naws_secret_access_key = hush/+d=\n\
                    \n[ci]\naws_access_key_id = C\naws_secret_access_key = hush-c\naws_session_token = hush-t\n";

#[test]
fn the_environment_gives_a_whole_key_or_an_error() {
    let (id, secret, token) =
        (("AWS_ACCESS_KEY_ID", " A\n"), ("AWS_SECRET_ACCESS_KEY", "hush"), ("AWS_SESSION_TOKEN", "hush-t"));
    assert_eq!(found(&[id, secret]), three("A", "hush", None));
    assert_eq!(found(&[id, secret, token, ("AWS_PROFILE", "gone")]), three("A", "hush", Some("hush-t")));
    says(&refused(&[id]), &["the environment", "$AWS_SECRET_ACCESS_KEY is not set"]);
    says(&refused(&[secret, ("AWS_ACCESS_KEY_ID", "")]), &["$AWS_ACCESS_KEY_ID is not set"]);
    let odd = refused(&[id, ("AWS_SECRET_ACCESS_KEY", "hush\nhush")]);
    says(&odd, &["the secret access key holds characters that none has"]);
}

#[test]
fn a_profile_is_found_by_its_name_in_either_file() {
    let config =
        "[default]\nregion = eu-west-1\n[profile  conf]\naws_access_key_id = F\naws_secret_access_key = hush\n";
    let home = home(&[("credentials", BOTH), ("config", config)]);
    let at = ("HOME", home.path().to_str().unwrap());
    assert_eq!(found(&[at]), three("D", "hush/+d=", None));
    assert_eq!(found(&[at, ("AWS_PROFILE", "ci")]), three("C", "hush-c", Some("hush-t")));
    assert_eq!(found(&[at, ("AWS_PROFILE", "conf")]), three("F", "hush", None));
    says(&refused(&[at, ("AWS_PROFILE", "cj")]), &["there is no profile \"cj\"", "set AWS_PROFILE"]);
}

#[test]
fn files_are_where_variables_say() {
    let home = home(&[("mine", BOTH), ("config", "[default]\n")]);
    let at = ("HOME", home.path().to_str().unwrap());
    let file = home.path().join(".aws/mine");
    for path in ["~/.aws/mine", file.to_str().unwrap()] {
        assert_eq!(found(&[at, ("AWS_SHARED_CREDENTIALS_FILE", path)]).0, "D", "{path}");
    }
    let gone = refused(&[at, ("AWS_SHARED_CREDENTIALS_FILE", "gone")]);
    says(&gone, &["/nowhere/gone: there is no such file, and $AWS_SHARED_CREDENTIALS_FILE names it"]);
    says(&refused(&[at]), &["there are no credentials"]);
    says(&refused(&[at, ("AWS_PROFILE", "default")]), &["profile \"default\" has no key", "no other credentials"]);
}

#[test]
fn what_a_profile_asks_for_and_is_not_done_is_named() {
    for setting in ["role_arn", "sso_session", "SSO_start_url", "credential_process"] {
        let config =
            format!("[default]\nregion = x\n; {setting} = no\n[profile p]\n{setting} = hush\nsource_profile = q\n");
        let home = home(&[("config", &config)]);
        let at = ("HOME", home.path().to_str().unwrap());
        let error = refused(&[at, ("AWS_PROFILE", "p")]);
        says(&error, &["profile \"p\" sets", &setting.to_lowercase(), "which distributor does not carry out"]);
        says(&refused(&[at]), &["there are no credentials"]);
    }
    let with = |setting| [("credentials", BOTH), ("config", setting)];
    let role = home(&with("[default]\nrole_arn = x\n"));
    says(&refused(&[("HOME", role.path().to_str().unwrap())]), &["role_arn", "export-credentials", "AWS_PROFILE"]);
    let process = home(&[("credentials", "[p]\ncredential_process = x\n"), ("config", "[profile p]\nregion = x\n")]);
    let at = [("HOME", process.path().to_str().unwrap()), ("AWS_PROFILE", "p")];
    says(&refused(&at), &["profile \"p\" sets credential_process"]);
    let process = home(&with("[default]\ncredential_process = x\n"));
    assert_eq!(found(&[("HOME", process.path().to_str().unwrap())]).0, "D", "the credentials file goes before it");
}

#[test]
fn files_that_are_wrong_are_named_without_what_they_hold() {
    for (text, word) in [
        ("[default]\naws_access_key_id = hush\n", "aws_secret_access_key is missing"),
        ("[default]\naws_secret_access_key = hush\n", "aws_access_key_id is missing"),
        ("[default]\naws_access_key_id = A\naws_secret_access_key =\n", "the secret access key is empty"),
        ("[default]\naws_access_key_id = A\naws_secret_access_key = hush # mine\n", "holds characters"),
    ] {
        let home = home(&[("credentials", text)]);
        let error = refused(&[("HOME", home.path().to_str().unwrap())]);
        says(&error, &[word, "[default] of /", ".aws/credentials"]);
    }
    let junk = home(&[("credentials", "[default]\n# none\n\nhush\n")]);
    let error = refused(&[("HOME", junk.path().to_str().unwrap())]);
    says(&error, &[".aws/credentials: line 4 is neither a [profile] nor a setting"]);
    let home = home(&[]);
    let at = ("HOME", home.path().to_str().unwrap());
    let shut = format!("{}/shut", home.path().display());
    std::fs::create_dir(&shut).unwrap();
    std::fs::write(format!("{shut}/.aws"), "hush").unwrap();
    says(&refused(&[("HOME", &shut)]), &["there are no credentials"]);
    std::fs::write(home.path().join(".aws/credentials"), b"\xffhush").unwrap();
    says(&refused(&[at]), &[".aws/credentials: it is not UTF-8"]);
    std::fs::write(home.path().join(".aws/credentials"), vec![b'#'; 2 << 20]).unwrap();
    says(&refused(&[at]), &["larger than 1 MiB"]);
    std::fs::remove_file(home.path().join(".aws/credentials")).unwrap();
    std::fs::create_dir(home.path().join(".aws/credentials")).unwrap();
    says(&refused(&[at]), &[".aws/credentials: is a directory"]);
}

#[test]
fn a_pipe_is_no_file_of_the_chain_and_none_waits_for_it() {
    let home = home(&[("credentials", BOTH)]);
    let pipe = home.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    let (at, file) = (("HOME", home.path().to_str().unwrap()), pipe.to_str().unwrap());
    for variables in [
        [("AWS_WEB_IDENTITY_TOKEN_FILE", file), ("AWS_ROLE_ARN", "r")],
        [("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file), ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x")],
        [("AWS_SHARED_CREDENTIALS_FILE", file), at],
        [("AWS_CONFIG_FILE", file), at],
    ] {
        says(&refused(&variables), &[&format!("{file}: it is not a regular file")]);
    }
    // That is how a file is left out.
    let left_out = [("AWS_CONFIG_FILE", "/dev/null"), ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"), at];
    says(&refused(&left_out), &["there are no credentials"]);
}
