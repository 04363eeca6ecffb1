//! From arguments to what was typed, by a program's table.

use std::ffi::{OsStr, OsString};

use lexopt::Arg;

use super::flags::{Flag, HELP, VERSION};
use super::programs::Program;
use crate::error::{Code, Error, Result};

/// What was typed: flags with their values, and operands.
#[derive(Debug, Default)]
pub struct Parsed {
    given: Vec<(&'static str, OsString)>,
    operand: Option<OsString>,
}

impl Parsed {
    /// Whether `flag` was given.
    pub fn has(&self, flag: &Flag) -> bool {
        self.values(flag).next().is_some()
    }

    /// The value of `flag`.
    pub fn value(&self, flag: &Flag) -> Option<&OsStr> {
        self.values(flag).next()
    }

    /// Every value of a flag that may be repeated.
    pub fn values(&self, flag: &Flag) -> impl Iterator<Item = &OsStr> {
        self.given.iter().filter(|(long, _)| *long == flag.long).map(|(_, value)| value.as_os_str())
    }

    /// The value of `flag` as text.
    pub fn text(&self, flag: &Flag) -> Result<Option<&str>> {
        self.texts(flag).next().transpose()
    }

    /// Every value of `flag` as text.
    pub fn texts(&self, flag: &Flag) -> impl Iterator<Item = Result<&str>> {
        self.values(flag).map(|value| {
            value
                .to_str()
                .ok_or_else(|| Error::new(Code::Usage, format!("--{}: {} is not UTF-8", flag.long, value.display())))
        })
    }

    /// The operand.
    pub fn operand(&self) -> Option<&OsStr> {
        self.operand.as_deref()
    }
}

/// Reads `args` by the table of `program`. Errors are `usage`.
pub fn parse(program: &Program, args: &[OsString]) -> Result<Parsed> {
    let mut parsed = Parsed::default();
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next().map_err(|error| usage(program, error.to_string()))? {
        // Who asks for help gets it, whatever else stands on the line behind it; a value of its own was refused above.
        if parsed.has(&HELP) || parsed.has(&VERSION) {
            break;
        }
        match arg {
            Arg::Value(operand) => take_operand(program, &mut parsed, operand)?,
            Arg::Long(name) => {
                let flag = program.flags().find(|flag| flag.long == name);
                let flag = flag.ok_or_else(|| unknown(program, name))?;
                take_flag(program, &mut parsed, flag, &mut parser)?;
            }
            Arg::Short(letter) => {
                let flag = program.flags().find(|flag| flag.short == Some(letter));
                let flag = flag.ok_or_else(|| usage(program, format!("unknown option -{letter}")))?;
                take_flag(program, &mut parsed, flag, &mut parser)?;
            }
        }
    }
    Ok(parsed)
}

fn take_flag(program: &Program, parsed: &mut Parsed, flag: &Flag, parser: &mut lexopt::Parser) -> Result<()> {
    if parsed.has(flag) && !flag.repeats && flag.value.is_some() {
        return Err(usage(program, format!("--{} is given twice", flag.long)));
    }
    let value = match flag.value {
        Some(name) => {
            let value = parser.value().map_err(|_| usage(program, format!("--{} needs a value: {name}", flag.long)))?;
            if value.is_empty() {
                return Err(usage(program, format!("--{} needs a value: {name}", flag.long)));
            }
            value
        }
        None => OsString::new(),
    };
    parsed.given.push((flag.long, value));
    Ok(())
}

fn take_operand(program: &Program, parsed: &mut Parsed, operand: OsString) -> Result<()> {
    if program.operand.is_none() || parsed.operand.is_some() {
        return Err(usage(program, format!("unexpected argument {:?}", operand.display().to_string())));
    }
    if operand.is_empty() {
        return Err(usage(program, "an argument is empty"));
    }
    parsed.operand = Some(operand);
    Ok(())
}

fn unknown(program: &Program, name: &str) -> Error {
    let known = program.flags().map(|flag| flag.long);
    let error = usage(program, format!("unknown option --{name}"));
    match crate::suggest::nearest(name, known) {
        Some(near) => error.hint(format!("did you mean --{near}?")),
        None => error,
    }
}

/// The error of a wrong command line of `program`.
pub fn usage(program: &Program, message: impl Into<String>) -> Error {
    Error::new(Code::Usage, message).hint(format!("see {} --help", program.name))
}

#[cfg(test)]
mod tests {
    use super::super::{BUNDLE, CONFIG, DRY_RUN, ID, PIPELINES, RUN};
    use super::*;

    fn args(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn message(program: &Program, line: &str) -> String {
        let error = parse(program, &args(line)).unwrap_err();
        assert_eq!(error.code, Code::Usage);
        error.message
    }

    #[test]
    fn options_stand_before_or_after_the_operand_in_both_forms() {
        for line in ["dir --id a", "--id a dir", "--id=a dir", "--id a -- dir"] {
            let parsed = parse(&BUNDLE, &args(line)).unwrap();
            assert_eq!(parsed.operand().unwrap(), "dir", "{line}");
            assert_eq!(parsed.value(&ID).unwrap(), "a", "{line}");
        }
        assert_eq!(parse(&BUNDLE, &args("-- --id")).unwrap().operand().unwrap(), "--id");
        let parsed = parse(&RUN, &args("-nc f --pipeline a --pipeline=b")).unwrap();
        assert!(parsed.has(&DRY_RUN));
        assert_eq!(parsed.value(&CONFIG).unwrap(), "f");
        assert_eq!(parsed.values(&PIPELINES).count(), 2);
    }

    #[test]
    fn who_asks_for_help_gets_it_whatever_stands_behind() {
        for line in ["--help", "--help --bogus", "-hz", "-h --format= d", "--help --dry-run=1", "--help -- d"] {
            assert!(parse(&RUN, &args(line)).unwrap().has(&HELP), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(message(&BUNDLE, "d --id a --id b"), "--id is given twice");
        assert_eq!(message(&BUNDLE, "d --id"), "--id needs a value: ID");
        assert_eq!(message(&BUNDLE, "d --id="), "--id needs a value: ID");
        assert_eq!(message(&BUNDLE, "d e"), "unexpected argument \"e\"");
        assert_eq!(message(&RUN, "d"), "unexpected argument \"d\"");
        assert_eq!(message(&RUN, "-z"), "unknown option -z");
        assert_eq!(message(&RUN, "--dry-run=yes"), "unexpected argument for option '--dry-run': \"yes\"");
        assert_eq!(message(&RUN, "--help=1"), "unexpected argument for option '--help': \"1\"");
        assert_eq!(message(&RUN, "-V=1"), "unexpected argument for option '-V': \"1\"");
        let error = parse(&RUN, &args("--dryrun")).unwrap_err();
        assert_eq!(
            (error.message.as_str(), error.hint.as_deref()),
            ("unknown option --dryrun", Some("did you mean --dry-run?"))
        );
    }
}
