//! How far a program has come, shown while it runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::reporter::Settings;
use super::text::size;
use crate::host::Host;

/// When it is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// On a terminal that can go back to the start of a line.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How often the line is drawn anew; what is done sooner shows none.
const TICK: Duration = Duration::from_millis(200);
/// How often a line is written where there is no terminal.
const LINE: Duration = Duration::from_secs(30);

/// The line at the bottom of a terminal.
#[derive(Debug, Default)]
pub(super) struct Bar {
    drawn: AtomicBool,
}

impl Bar {
    /// Writes `text` in the line's place. Where even standard error is gone there is nobody left to tell.
    pub(super) fn write(&self, host: &Host, text: &str) {
        let clear = if self.drawn.swap(false, Ordering::SeqCst) { "\r\x1b[K" } else { "" };
        let _ = host.stderr.write(&format!("{clear}{text}"));
    }

    fn draw(&self, host: &Host, text: &str) {
        let _ = host.stderr.write(&format!("\r\x1b[K{text}"));
        self.drawn.store(true, Ordering::SeqCst);
    }
}

/// Does `work`, and shows meanwhile how many bytes have passed.
pub(super) fn watch<T>(host: &Host, program: &str, settings: Settings, bar: &Bar, work: impl FnOnce() -> T) -> T {
    let dumb = host.var("TERM").is_none_or(|term| term == "dumb");
    let as_bar = match settings.progress {
        Progress::Always => true,
        Progress::Auto => host.stderr.is_terminal() && !dumb && !settings.quiet,
        Progress::Never => false,
    };
    let as_lines = !as_bar && settings.verbose && settings.progress == Progress::Auto;
    if !as_bar && !as_lines {
        return work();
    }
    let (done, wait) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let show = move || {
            let begun = Instant::now();
            let every = if as_bar { TICK } else { LINE };
            while wait.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let line = line(program, host.cancel.passed(), begun.elapsed());
                match line {
                    Some(line) if as_bar => bar.draw(host, &line),
                    Some(line) => bar.write(host, &format!("{line}\n")),
                    None => {}
                }
            }
            bar.write(host, "");
        };
        // Where there is no thread for it the work is done all the same.
        let _ = std::thread::Builder::new().spawn_scoped(scope, show);
        let result = work();
        drop(done);
        result
    })
}

/// `None` before there is anything to tell.
fn line(program: &str, bytes: u64, time: Duration) -> Option<String> {
    let rate = u128::from(bytes) * 1000 / time.as_millis().max(1);
    let rate = u64::try_from(rate).unwrap_or(u64::MAX);
    (bytes > 0).then(|| format!("{program}: {} in {} s, {}/s", size(bytes), time.as_secs(), size(rate)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_bytes_time_and_rate() {
        assert_eq!(line("p", 0, Duration::from_secs(9)), None);
        assert_eq!(line("p", 3 << 20, Duration::from_secs(2)).unwrap(), "p: 3.0 MiB in 2 s, 1.5 MiB/s");
    }
}
