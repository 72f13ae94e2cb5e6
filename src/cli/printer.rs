//! The one place that writes to the terminal. Data goes to standard output, talk to standard error; a pipe that was
//! closed ends the command quietly, as every good command does.

use std::io::{self, Write as _};

use super::exit::Exit;

/// Writes data.
pub(super) fn data(text: &str) -> Exit {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Exit::Done,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(_) => Exit::Fault,
    }
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

/// Says what went wrong on our side.
pub(super) fn fault(error: &anyhow::Error) -> Exit {
    say(&format!("error: {error:#}"));
    Exit::Fault
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
