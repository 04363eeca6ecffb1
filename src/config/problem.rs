//! What is wrong with a file, and where: every check adds to one list.

use std::fmt;

use crate::error::Warning;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key or section, like `pipelines[2].destinations[0].transfer`; empty for the file as a whole.
    pub place: String,
    /// Its line, from 1.
    pub line: usize,
    /// Its column, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it, where that is not plain.
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// A place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    /// As in [`Problem::place`].
    pub(super) place: String,
    /// From 1.
    pub(super) line: usize,
    /// From 1.
    pub(super) column: usize,
}

impl Spot {
    /// The file as a whole, at a line and column.
    pub(super) fn file(line: usize, column: usize) -> Spot {
        Spot { place: String::new(), line, column }
    }
}

/// The longest message, in characters: a value that is repeated in one may be as long as the file.
const MAX_MESSAGE: usize = 400;

/// What the checks have found so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// What is wrong, in the order it was found.
    pub(super) problems: Vec<Problem>,
    /// What is allowed but should be known.
    pub(super) warnings: Vec<Warning>,
}

impl Report {
    /// Adds a problem.
    pub(super) fn add(&mut self, spot: &Spot, message: impl Into<String>) {
        self.push(spot, &message.into(), None);
    }

    /// Adds a problem with its cure.
    pub(super) fn add_with(&mut self, spot: &Spot, message: impl Into<String>, hint: impl Into<String>) {
        self.push(spot, &message.into(), Some(hint.into()));
    }

    fn push(&mut self, spot: &Spot, message: &str, hint: Option<String>) {
        let place = crate::path::escape(spot.place.as_bytes());
        let mut message = crate::path::escape(message.as_bytes());
        if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE) {
            message.truncate(end);
            message.push('…');
        }
        self.problems.push(Problem { place, line: spot.line, column: spot.column, message, hint });
    }

    /// The problems in the order of the file.
    pub(super) fn sorted(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| (problem.line, problem.column));
        self.problems
    }
}
