//! Plays a script: builds its scene, runs its commands on a host that holds the world still, checks what came of it.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use distributor::host::{Cancel, Host, Stream};
use distributor::timestamp::Timestamp;

use super::preview::{Asked, Preview};
use super::scene::{Scene, Snapshot};
use super::script::{Action, Problem, Run, Script, parse};
use super::{directives, expect, words};

/// A program as the library has it.
pub(crate) type Command = fn(&Host) -> u8;
/// Finds a program by its name.
pub(crate) type Commands = fn(&str) -> Option<Command>;

/// The time at the start of every script.
const START: &str = "2026-06-04T12:00:00Z";
/// The program whose dry run stands before each of its runs.
const PREVIEWED: &str = "distributor-run";
/// A command that takes longer hangs.
const LIMIT: Duration = Duration::from_mins(1);

/// A script in play.
pub(crate) struct Play {
    pub(crate) scene: Scene,
    pub(crate) cwd: PathBuf,
    pub(crate) clock: Timestamp,
    pub(crate) env: BTreeMap<OsString, OsString>,
    pub(crate) signal: Option<u8>,
    pub(crate) snapshot: Option<(PathBuf, Snapshot)>,
    /// Whether the next command may do other things than its dry run says.
    pub(crate) no_preview: bool,
    /// Standard output of the last command, and whether a step has looked at it since.
    pub(crate) stdout: Option<String>,
    tokens: Arc<AtomicU64>,
    commands: Commands,
}

/// Reads and plays a script.
pub(crate) fn play(text: &str, commands: Commands) -> Result<(), Problem> {
    let script = parse(text)?;
    let mut play = Play::new(commands).map_err(|problem| (0, problem))?;
    play.set(&script)?;
    for step in &script.steps {
        let result = match &step.action {
            Action::Run(run) => play.run(run),
            Action::Do { verb, rest, block } => directives::follow(&mut play, verb, rest, block),
        };
        result.map_err(|problem| (step.line, problem))?;
    }
    if play.no_preview {
        let line = script.steps.last().map_or(0, |step| step.line);
        return Err((line, "no-preview: no command follows".to_owned()));
    }
    Ok(())
}

impl Play {
    fn new(commands: Commands) -> Result<Play, String> {
        let scene = Scene::new().map_err(|error| format!("no scene: {error}"))?;
        Ok(Play {
            cwd: scene.root().to_owned(),
            scene,
            clock: Timestamp::parse(START)?,
            env: BTreeMap::new(),
            signal: None,
            snapshot: None,
            no_preview: false,
            stdout: None,
            tokens: Arc::default(),
            commands,
        })
    }

    fn set(&mut self, script: &Script) -> Result<(), Problem> {
        for section in &script.files {
            directives::create(self, &section.head, &section.body).map_err(|problem| (section.line, problem))?;
        }
        Ok(())
    }

    fn run(&mut self, run: &Run) -> Result<(), String> {
        let mut words = words::split(&run.line)?.into_iter().map(|word| self.scene.expand(&word));
        let name = words.next().map(|name| String::from_utf8_lossy(&name).into_owned()).unwrap_or_default();
        let args: Vec<OsString> = words.map(OsString::from_vec).collect();
        let command = (self.commands)(&name).ok_or_else(|| format!("no program is called {name:?}"))?;
        let preview = self.preview(&name, command, &args)?;
        let done = self.call(command, args, &Arc::clone(&self.tokens))?;
        let result = judge(run, &done);
        let stdout = self.stdout.insert(done.stdout);
        result.and_then(|()| preview.map_or(Ok(()), |preview| preview.holds(stdout)))
    }

    /// The dry run that shows what a run will do, and changes nothing; `None` where there is nothing to hold it against.
    fn preview(&mut self, name: &str, command: Command, args: &[OsString]) -> Result<Option<Preview>, String> {
        let previewed = name == PREVIEWED && self.signal.is_none();
        let differs = std::mem::take(&mut self.no_preview);
        let Some(asked) = previewed.then(|| Asked::of(args)).flatten() else {
            return if differs { Err("no-preview: this command has no preview".to_owned()) } else { Ok(None) };
        };
        let look = |play: &Play| Snapshot::of(play.scene.root()).map_err(|error| format!("no snapshot: {error}"));
        let before = look(self)?;
        // The run gets the ids that it would get without a preview.
        let tokens = Arc::new(AtomicU64::new(self.tokens.load(Ordering::SeqCst)));
        let said = self.call(command, asked.dry.clone(), &tokens);
        let said = said.map_err(|problem| format!("the dry run beforehand: {problem}"))?;
        let changes = before.differences(&look(self)?);
        if !changes.is_empty() {
            return Err(format!("the dry run beforehand changed the scene:{}", expect::block(&changes)));
        }
        Ok((!differs).then(|| Preview::new(&asked, said.stdout, said.stderr)))
    }

    fn call(&mut self, command: Command, args: Vec<OsString>, tokens: &Arc<AtomicU64>) -> Result<Done, String> {
        let (out, err) = (Captured::default(), Captured::default());
        let status = within(LIMIT, command, self.host(args, &out, &err, Arc::clone(tokens)))?;
        Ok(Done { status, stdout: self.scene.hide(&out.bytes()), stderr: self.scene.hide(&err.bytes()) })
    }

    fn host(&mut self, args: Vec<OsString>, out: &Captured, err: &Captured, tokens: Arc<AtomicU64>) -> Host {
        let now = self.clock.clone();
        let cancel = Cancel::default();
        if let Some(signal) = self.signal.take() {
            cancel.raise(signal);
        }
        Host {
            args,
            env: self.env.clone(),
            stdout: Stream::new(out.clone(), false),
            stderr: Stream::new(err.clone(), false),
            clock: Box::new(move || now.clone()),
            token: Box::new(move || format!("{:016x}", tokens.fetch_add(1, Ordering::SeqCst) + 1)),
            cancel,
            ..Host::fixed(self.cwd.clone(), &[])
        }
    }
}

/// What a command did, the scene's directory hidden.
struct Done {
    status: u8,
    stdout: String,
    stderr: String,
}

/// Holds what a command did against what was expected of it.
fn judge(run: &Run, done: &Done) -> Result<(), String> {
    let Done { status, stdout, stderr } = done;
    let expected = run.status.unwrap_or(0);
    let show = |what, output| format!("\n  {what}:{}", expect::block(&expect::split(output)));
    if *status != expected {
        let outputs = show("standard output", stdout) + &show("standard error", stderr);
        return Err(format!("exit status\n  expected: {expected}\n  got: {status}{outputs}"));
    }
    if let Some(lines) = &run.stdout {
        expect::lines("standard output", lines, stdout).map_err(|p| p + &show("standard error", stderr))?;
    }
    match &run.stderr {
        Some(lines) => expect::lines("standard error", lines, stderr),
        // A run that goes well says nothing there, unless the script says what.
        None if expected == 0 => expect::lines("standard error", &[], stderr),
        None => Ok(()),
    }
}

/// Runs a command on a thread of its own, so that one that hangs or panics fails its script alone.
fn within(limit: Duration, command: Command, host: Host) -> Result<u8, String> {
    let (done, wait) = mpsc::channel();
    let worker = thread::spawn(move || {
        let status = command(&host);
        // Nobody waits any more where the limit has passed.
        let _ = done.send(status);
    });
    match wait.recv_timeout(limit) {
        Ok(status) => Ok(status),
        Err(mpsc::RecvTimeoutError::Timeout) => Err(format!("the command hangs: no end after {limit:?}")),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            let panic = worker.join().err();
            Err(format!("the command panicked: {}", panic.as_deref().map_or("?", reason)))
        }
    }
}

fn reason(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("?")
}

/// A stream kept for inspection.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
