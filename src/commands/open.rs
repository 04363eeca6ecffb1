//! From the configuration to pipelines and places.

use std::ffi::OsStr;

use crate::cli::{self, Parsed, Program, usage};
use crate::config::{self, Config, Destination, Pipeline, S3Credentials, S3Place, Source, Target};
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::path::{RelPath, escape};
use crate::report::Reporter;
use crate::secrets::Secrets;
use crate::storage::s3::{Authorities, Key, Keys, Parts, Proxies, S3, Settings};
use crate::storage::{Local, Modes, Storage};
use crate::suggest::nearest;

/// Reads the configuration that `--config` or the environment names, and says its warnings.
pub(super) fn config(host: &Host, parsed: &Parsed, reporter: &Reporter<'_>) -> Result<Config> {
    let (config, warnings) = config::load(host, parsed.value(&cli::CONFIG))?;
    for warning in warnings {
        reporter.warn(warning);
    }
    Ok(config)
}

/// The bundle directory `dir` of a command line.
pub(super) fn directory(host: &Host, program: &'static Program, dir: &OsStr) -> Result<Local> {
    if dir.to_string_lossy().contains("://") {
        let message = "DIR is a directory of this machine, and a configuration names other places";
        return Err(usage(program, format!("{}: {message}", escape(dir.as_encoded_bytes()))));
    }
    Ok(Local::new(host.resolve(dir), Modes::default()))
}

/// The pipeline with this id.
pub(super) fn pipeline<'a>(config: &'a Config, id: &str) -> Result<&'a Pipeline> {
    config.pipeline(id).ok_or_else(|| {
        let known: Vec<&str> = config.pipelines.iter().map(|pipeline| pipeline.id.as_str()).collect();
        unknown(Code::UnknownPipeline, "pipeline", id, &known)
    })
}

/// The error of an id that nothing has.
pub(super) fn unknown(code: Code, what: &str, id: &str, known: &[&str]) -> Error {
    let error = Error::new(code, format!("there is no {what} {id:?}"));
    match nearest(id, known.iter().copied()) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error.hint(format!("there is {}", known.join(", "))),
    }
}

/// Opens places, with what they need beside the configuration.
pub(super) struct Opener<'a> {
    host: &'a Host,
    secrets: Secrets,
    authorities: Option<Authorities>,
    proxies: Proxies,
}

impl<'a> Opener<'a> {
    /// Checks that every variable the pipelines need has a value, and that those that S3 heeds have good ones.
    pub(super) fn new(
        host: &'a Host,
        config: &Config,
        pipelines: &[&str],
        reporter: &Reporter<'_>,
    ) -> Result<Opener<'a>> {
        let secrets = Secrets::load(host, config.secrets_directory.as_deref())?;
        let names = config.variables(pipelines);
        secrets.warnings(&names).into_iter().for_each(|warning| reporter.warn(warning));
        secrets.require(&names)?;
        let places = config.s3_places(pipelines);
        places
            .iter()
            .filter_map(|place| place.credentials.as_ref())
            .try_for_each(|names| key(&secrets, names).map(drop))?;
        let on_s3 = !places.is_empty();
        let authorities = if on_s3 { authorities(host)? } else { None };
        let proxies = if on_s3 { Proxies::of(host)? } else { Proxies::default() };
        // All is read that a program starts with.
        host.cancel.listen();
        Ok(Opener { host, secrets, authorities, proxies })
    }

    /// The place of a pipeline's source.
    pub(super) fn source(&self, pipeline: &Pipeline) -> Result<Box<dyn Storage>> {
        match &pipeline.source {
            Source::Local(source) => Ok(Box::new(Local::new(&source.path, Modes::default()))),
            Source::S3(place) => self.s3(place),
            Source::HttpUpload(_) => {
                let message = format!("pipeline {} is served by distributor-serve", pipeline.id);
                Err(Error::new(Code::Usage, message).hint("its bundles come by upload: there is no source to look at"))
            }
            Source::Ssh(_) => Err(unsupported("a source with backend: ssh")),
        }
    }

    /// The place of a destination.
    pub(super) fn destination(&self, destination: &Destination) -> Result<Box<dyn Storage>> {
        match &destination.target {
            Target::Local(target) => Ok(Box::new(Local::new(&target.path, target.modes))),
            Target::S3(place) => self.s3(place),
            Target::Ssh(_) => Err(unsupported("a destination with backend: ssh")),
        }
    }

    fn s3(&self, place: &S3Place) -> Result<Box<dyn Storage>> {
        let keys = match &place.credentials {
            Some(names) => Keys::given(key(&self.secrets, names)?),
            None => Keys::chain(self.host),
        };
        let rules = place.cache_control.clone();
        let cache_control = move |path: &RelPath| {
            let rule = rules.iter().find(|rule| rule.patterns.iter().any(|pattern| pattern.matches(path)));
            rule.map(|rule| rule.value.clone())
        };
        let settings = Settings {
            endpoint: place.endpoint.clone(),
            bucket: place.bucket.clone(),
            region: place.region.clone(),
            path_style: place.path_style,
            storage_class: place.storage_class.clone(),
            cache_control: Box::new(cache_control),
            concurrency: place.concurrency,
            parts: Parts::default(),
            connect_timeout: place.connect_timeout,
            timeout: place.timeout,
            authorities: self.authorities.clone(),
            proxies: self.proxies.clone(),
            keys,
            holder: self.host.holder.clone(),
            cancel: self.host.cancel.clone(),
        };
        Ok(Box::new(S3::new(settings, &place.prefix)?))
    }
}

/// The key in these variables. An error names the variable, and never its value.
fn key(secrets: &Secrets, names: &S3Credentials) -> Result<Key> {
    let value = |name: &str| {
        let missing = || Error::new(Code::MissingSecret, format!("variable {name} has no value"));
        secrets.get(name).ok_or_else(missing)
    };
    let in_it = |what: &str, name: &str| format!("the {what} in ${name}");
    let (id, secret) = (&names.access_key_id_env, &names.secret_access_key_env);
    let (id_is, secret_is) = (in_it("access key id", id), in_it("secret access key", secret));
    let token = names.session_token_env.as_ref();
    let token = token.map(|name| Ok((in_it("session token", name), value(name)?))).transpose()?;
    let token = token.as_ref().map(|(what, value)| (what.as_str(), value.expose()));
    let key = Key::named((&id_is, value(id)?.expose()), (&secret_is, value(secret)?.expose()), token, None);
    let cure = "it is one word of ASCII; see that it was copied whole and alone";
    key.map_err(|what| Error::new(Code::InvalidConfig, what).hint(cure))
}

/// The authorities that `$AWS_CA_BUNDLE` names.
fn authorities(host: &Host) -> Result<Option<Authorities>> {
    let read = host.var("AWS_CA_BUNDLE").map(|file| Authorities::read(&host.resolve(file)));
    read.transpose().map_err(|what| {
        let message = format!("$AWS_CA_BUNDLE: {what}");
        Error::new(Code::InvalidConfig, message).hint("name a PEM file with the certificates of authorities")
    })
}

fn unsupported(what: &str) -> Error {
    Error::new(Code::Unsupported, format!("this version does not carry out {what}"))
        .hint("change the configuration, or use a version that does")
}
