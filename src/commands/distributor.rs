//! `distributor COMMAND`: becomes `distributor-COMMAND` from the same directory.

use crate::cli::{self, DISTRIBUTOR, PROGRAMS, usage};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::suggest::nearest;

/// Runs the program and returns its exit status; it does not return where another program took over.
pub fn main(host: &Host) -> u8 {
    let first = host.args.first().and_then(|arg| arg.to_str());
    match first {
        Some("-h" | "--help") => super::print(host, &DISTRIBUTOR, &format!("{}\n{}", DISTRIBUTOR.help(), listing())),
        Some(name) if !name.starts_with('-') => {
            super::start_with(host, &DISTRIBUTOR, &[], |_, _| hand_over(host, name))
        }
        _ => super::start_with(host, &DISTRIBUTOR, &host.args, |_, _| Ok(super::print(host, &DISTRIBUTOR, &listing()))),
    }
}

fn hand_over(host: &Host, name: &str) -> Result<u8> {
    let command = |program: &'static cli::Program| program.name.trim_start_matches("distributor-");
    let Some(program) = PROGRAMS.iter().find(|program| command(program) == name) else {
        let error = usage(&DISTRIBUTOR, format!("there is no command {name:?}"));
        return Err(match nearest(name, PROGRAMS.iter().map(|program| command(program))) {
            Some(near) => error.hint(format!("did you mean {near}?")),
            None => error,
        });
    };
    let error = (host.become_program)(program.name, &host.args[1..]);
    Err(Error::io(program.name, &error).hint(format!("install {} beside distributor", program.name)))
}

/// The programs and what each does.
fn listing() -> String {
    let width = PROGRAMS.iter().map(|program| program.name.len()).max().unwrap_or_default();
    PROGRAMS.iter().fold(String::new(), |text, program| text + &format!("{:width$}  {}\n", program.name, program.job))
}
