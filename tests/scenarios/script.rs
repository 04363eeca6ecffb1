//! From the text of a script to its files and steps. The format is described in testdata/scenarios/README.md.

use super::directives;

/// A script, read and checked for its form.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// What lies in the scene at the start.
    pub(crate) files: Vec<Section>,
    /// What happens then.
    pub(crate) steps: Vec<Step>,
}

/// A `-- … --` section.
#[derive(Debug)]
pub(crate) struct Section {
    /// The line it begins on.
    pub(crate) line: usize,
    /// What stands between the dashes.
    pub(crate) head: String,
    /// The lines below it, line feeds included.
    pub(crate) body: String,
}

/// One step of a script.
#[derive(Debug)]
pub(crate) struct Step {
    /// The line it stands on.
    pub(crate) line: usize,
    /// What it does.
    pub(crate) action: Action,
}

/// What a step does.
#[derive(Debug)]
pub(crate) enum Action {
    /// Runs a program.
    Run(Run),
    /// Follows a directive.
    Do {
        /// Its name, one of [`directives::ALL`].
        verb: &'static str,
        /// The rest of its line.
        rest: String,
        /// The `|` lines below it.
        block: Vec<String>,
    },
}

/// A command line and what it is expected to do.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// The command line.
    pub(crate) line: String,
    /// Lines of standard output; `None` where it is not looked at.
    pub(crate) stdout: Option<Vec<String>>,
    /// Lines of standard error; `None` where nothing is said about it.
    pub(crate) stderr: Option<Vec<String>>,
    /// The exit status.
    pub(crate) status: Option<u8>,
}

/// A problem on a line.
pub(crate) type Problem = (usize, String);

/// Reads a script.
pub(crate) fn parse(text: &str) -> Result<Script, Problem> {
    let mut script = Script::default();
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let mut section = None;
    for (line, text) in lines.by_ref() {
        match (header(text), &mut section) {
            (Some("script"), _) => {
                script.files.extend(section.take());
                return steps(lines, script);
            }
            (Some(head), _) => {
                let next = Section { line, head: head.to_owned(), body: String::new() };
                script.files.extend(section.replace(next));
            }
            (None, Some(Section { body, .. })) => {
                *body += text;
                *body += "\n";
            }
            (None, None) if text.is_empty() || text.starts_with('#') => {}
            (None, None) => return Err((line, "only comments stand above the first section".to_owned())),
        }
    }
    Err((text.lines().count(), "no `-- script --` section".to_owned()))
}

fn header(line: &str) -> Option<&str> {
    Some(line.strip_prefix("-- ")?.strip_suffix(" --")?.trim())
}

fn steps<'a>(lines: impl Iterator<Item = (usize, &'a str)>, mut script: Script) -> Result<Script, Problem> {
    for (line, text) in lines {
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        match step(text, script.steps.last_mut()) {
            Ok(None) => {}
            Ok(Some(action)) => script.steps.push(Step { line, action }),
            Err(problem) => return Err((line, problem)),
        }
    }
    if !script.steps.iter().any(|step| matches!(step.action, Action::Run(_))) {
        return Err((0, "the script runs nothing".to_owned()));
    }
    Ok(script)
}

/// A new step, or `None` where the line belongs to the one before it.
fn step(text: &str, last: Option<&mut Step>) -> Result<Option<Action>, String> {
    if let Some(line) = text.strip_prefix("$ ") {
        return Ok(Some(Action::Run(Run { line: line.to_owned(), ..Run::default() })));
    }
    if let Some(line) = marked(text, '|') {
        let Some(Step { action: Action::Do { verb, block, .. }, .. }) = last else {
            return Err("`|` lines belong below a directive".to_owned());
        };
        if !directives::takes_block(verb) {
            return Err(format!("`{verb}` takes no `|` lines"));
        }
        block.push(line.to_owned());
        return Ok(None);
    }
    if let Some((verb, rest)) = directives::split(text) {
        return Ok(Some(Action::Do { verb, rest: rest.to_owned(), block: Vec::new() }));
    }
    expectation(text, last).map(|()| None)
}

fn expectation(text: &str, last: Option<&mut Step>) -> Result<(), String> {
    if !is_expectation(text) {
        let verb = text.split_whitespace().next().unwrap_or_default();
        return Err(format!("unknown directive `{verb}`"));
    }
    let run = last.and_then(|step| match &mut step.action {
        Action::Run(run) => Some(run),
        Action::Do { .. } => None,
    });
    let run = run.ok_or_else(|| format!("an expectation stands right below its `$` line: {text}"))?;
    match (marked(text, '>'), marked(text, '!'), text.strip_prefix("status ")) {
        (Some(line), ..) => add(&mut run.stdout, line),
        (_, Some(line), _) => add(&mut run.stderr, line),
        (.., Some(status)) => {
            let status = status.trim().parse().map_err(|_| format!("{status} is not an exit status"))?;
            run.status.replace(status).map_or(Ok(()), |_| Err("a second status".to_owned()))
        }
        _ if text == "no stdout" => nothing(&mut run.stdout),
        _ => nothing(&mut run.stderr),
    }
}

fn is_expectation(text: &str) -> bool {
    marked(text, '>').is_some()
        || marked(text, '!').is_some()
        || text.starts_with("status ")
        || ["no stdout", "no stderr"].contains(&text)
}

/// The text of a line that begins with `mark`.
fn marked(text: &str, mark: char) -> Option<&str> {
    let rest = text.strip_prefix(mark)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}

fn add(lines: &mut Option<Vec<String>>, line: &str) -> Result<(), String> {
    match lines {
        Some(lines) if lines.is_empty() => return Err("nothing was expected above, and now a line".to_owned()),
        _ => lines.get_or_insert_default().push(line.to_owned()),
    }
    Ok(())
}

fn nothing(lines: &mut Option<Vec<String>>) -> Result<(), String> {
    match lines.replace(Vec::new()) {
        None => Ok(()),
        Some(_) => Err("lines were expected above, and now none".to_owned()),
    }
}
