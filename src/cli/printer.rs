//! All terminal output. Data goes to standard output, messages go to standard error. If a pipe is closed, the command
//! ends without an error.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

use scoregate_observe::telemetry::log;
use scoregate_store::maintenance::recovery_steps;

use super::{
    command_error::{CommandError, CommandOutcome},
    exit::Exit,
};

/// Time for which a command that ran a server waits for the last log lines before it ends. It first waits for the access log, for
/// at most the same time.
const LOG_FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// Writes data to standard output.
pub fn data(text: &str) -> anyhow::Result<()> {
    match write(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output cannot be written"),
    }
}

/// Writes part of the data. Fails if the pipe is closed.
pub fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Writes a message to standard error, replacing the progress line. Failures are ignored.
pub fn message(text: &str) {
    progress("");
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Replaces the progress line. Prints nothing if standard error is not a terminal.
pub fn progress(text: &str) {
    let mut terminal = io::stderr().lock();
    if terminal.is_terminal() {
        drop(write!(terminal, "\r\x1b[2K{text}"));
    }
}

/// Writes a response as JSON.
pub fn json(response: &Value) -> anyhow::Result<()> {
    data(&format!("{response:#}\n"))
}

/// Writes a response as JSON or with `show`.
pub fn answer(
    response: Value,
    is_json: bool,
    show: impl FnOnce(Value) -> anyhow::Result<()>,
) -> CommandOutcome {
    if is_json {
        json(&response)?;
    } else {
        show(response)?;
    }
    Ok(())
}

/// Shows a response. Fails if this version cannot parse it.
pub fn response<T: DeserializeOwned>(
    response: Value,
    show: impl FnOnce(&T) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    show(&serde_json::from_value(response).context("the server's response is invalid")?)
}

/// Ends a command that ran a server. An error is written through the log, so that a blocked standard error delays the exit by at
/// most half a second.
pub fn finish_serving(outcome: anyhow::Result<()>) -> CommandOutcome {
    let outcome = outcome.map_err(|error| {
        if log::write_line(&reason(&error)) {
            CommandError::Reported(Exit::Fault)
        } else {
            CommandError::Fault(error)
        }
    });
    log::finish(LOG_FLUSH_TIMEOUT);
    outcome
}

/// Reports the error of a command.
pub fn report(error: CommandError) -> Exit {
    match error {
        CommandError::Input(problem) => {
            message(&format!("error: {problem}"));
            Exit::Input
        }
        CommandError::Fault(error) => {
            message(&reason(&error));
            Exit::Fault
        }
        CommandError::Reported(exit) => exit,
    }
}

/// The text of an internal error, with the repair steps if the store was rejected.
pub fn reason(error: &anyhow::Error) -> String {
    let recovery_steps = error
        .chain()
        .find_map(|cause| recovery_steps(cause.downcast_ref()?));
    recovery_steps.map_or_else(
        || format!("error: {error:#}"),
        |recovery_steps| format!("error: {error:#}\n{recovery_steps}"),
    )
}

/// Formats fields with their names, one per line.
pub fn fields<'n>(fields: impl IntoIterator<Item = (&'n str, String)>) -> String {
    let lines: Vec<String> = fields
        .into_iter()
        .map(|(name, value)| format!("{name:<18} {value}\n"))
        .collect();
    lines.concat()
}

/// Writes a table with a header row.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> anyhow::Result<()> {
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    let width = |column: usize| {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count());
        cells
            .chain(header.get(column).map(|name| name.chars().count()))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let names: Vec<String> = header.iter().map(|name| name.to_uppercase()).collect();
    let lines: Vec<String> = std::iter::once(line(&names))
        .chain(rows.iter().map(|row| line(row)))
        .collect();
    data(&format!("{}\n", lines.join("\n")))
}

/// Writes a table of JSON objects. Each column has a name and a field of the objects.
pub fn objects(columns: &[(&str, &str)], objects: &[Value]) -> anyhow::Result<()> {
    let header: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    table(
        &header,
        objects.iter().map(|object: &Value| {
            columns
                .iter()
                .map(|(_, name)| cell(field(object, name)))
                .collect()
        }),
    )
}

/// A field of a JSON object, or null if the field is absent.
pub fn field<'v>(object: &'v Value, name: &str) -> &'v Value {
    object.get(name).unwrap_or(&Value::Null)
}

/// The items of a list in a JSON object; empty if the list is absent.
pub fn items<'v>(object: &'v Value, name: &str) -> &'v [Value] {
    field(object, name).as_array().map_or(&[], Vec::as_slice)
}

/// A JSON value as a cell of a table.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(" "),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}
