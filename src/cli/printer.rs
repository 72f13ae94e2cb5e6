//! The one place that writes to the terminal. Data goes to standard output, talk to standard error; a pipe that was
//! closed ends the command quietly, as every good command does.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use crate::store::maintenance::way_back;
use crate::telemetry::log;

use super::exit::Exit;

/// How long the end of a command that serves waits for its last lines to be written. The access log has the same time
/// before.
const LAST_LINES: Duration = Duration::from_millis(500);
/// How many cells a full bar has.
const BAR: u64 = 30;

/// Writes data.
pub(super) fn data(text: &str) -> Exit {
    match write(text) {
        Ok(()) => Exit::Done,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(error) => {
            say(&format!("error: standard output cannot be written: {error}"));
            Exit::Fault
        }
    }
}

/// Writes a part of the data, and tells if nobody reads it any more.
pub(super) fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Says something. Nobody listening is no reason to fail.
pub(super) fn say(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Says what the operator has to mend.
pub(super) fn input(text: &str) -> Exit {
    say(&format!("error: {text}"));
    Exit::Input
}

/// Says what went wrong on our side, and the way back from a store that is refused.
pub(super) fn fault(error: &anyhow::Error) -> Exit {
    say(&reason(error));
    Exit::Fault
}

/// Ends a command that serves. An error goes through the writer of the log, so that standard error without a reader
/// delays the end by half a second at most.
pub(super) fn served(outcome: anyhow::Result<Exit>) -> Exit {
    let exit = outcome.unwrap_or_else(|error| {
        let reason = reason(&error);
        if !log::say(&reason) {
            say(&reason);
        }
        Exit::Fault
    });
    log::finish(LAST_LINES);
    exit
}

fn reason(error: &anyhow::Error) -> String {
    let way_back = error.chain().find_map(|cause| way_back(cause.downcast_ref()?));
    way_back.map_or_else(|| format!("error: {error:#}"), |way_back| format!("error: {error:#}\n{way_back}"))
}

/// Writes a table: columns as wide as they need to be.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> Exit {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(head.get(column).map(|name| name.chars().count())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let names: Vec<String> = head.iter().map(|name| name.to_uppercase()).collect();
    let lines: Vec<String> = std::iter::once(line(&names)).chain(rows.iter().map(|row| line(row))).collect();
    data(&format!("{}\n", lines.join("\n")))
}

/// A line on the terminal that tells how far something is. Elsewhere it is silent.
pub(super) struct Progress {
    of: Option<u64>,
    is_seen: bool,
}

impl Progress {
    /// A line about something of this size, if that is known.
    pub(super) fn of(size: Option<u64>) -> Self {
        Self { of: size, is_seen: io::stderr().is_terminal() }
    }

    /// Tells how far it is.
    pub(super) fn show(&self, done: u64, words: &str) {
        if self.is_seen {
            let line = drawn(done, self.of, words);
            drop(write!(io::stderr().lock(), "\r\x1b[2K{line}"));
        }
    }

    /// Says something in between; the line comes back with the next step.
    pub(super) fn say(&self, text: &str) {
        self.clear();
        say(text);
    }

    /// Takes the line away.
    pub(super) fn clear(&self) {
        if self.is_seen {
            drop(write!(io::stderr().lock(), "\r\x1b[2K"));
        }
    }
}

/// Short enough for any terminal.
fn drawn(done: u64, of: Option<u64>, words: &str) -> String {
    let Some(of) = of.filter(|of| *of > 0) else { return words.to_owned() };
    let (done, full) = (done.min(of), |cells: u64| "#".repeat(usize::try_from(cells).unwrap_or(0)));
    let part =
        |whole: u64| u64::try_from(u128::from(done) * u128::from(whole) / u128::from(of)).unwrap_or(whole);
    let width = usize::try_from(BAR).unwrap_or(0);
    format!("[{:<width$}] {:>3} %  {words}", full(part(BAR)), part(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_grows_with_what_is_done_and_needs_to_know_of_what() {
        assert_eq!(drawn(0, Some(10), "x"), format!("[{}]   0 %  x", " ".repeat(30)));
        assert_eq!(drawn(5, Some(10), "x"), format!("[{}{}]  50 %  x", "#".repeat(15), " ".repeat(15)));
        assert_eq!(drawn(u64::MAX, Some(u64::MAX), "x"), format!("[{}] 100 %  x", "#".repeat(30)));
        assert_eq!((drawn(5, None, "x"), drawn(0, Some(0), "x")), ("x".into(), "x".into()));
    }
}
