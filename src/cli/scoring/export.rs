//! `scoregate scoring export`: writes the suite table, every run, then every withdrawal and incident, as a line of JSON.

use std::io;

use crate::cli::command_error::CommandOutcome;
use crate::cli::exit::Exit;
use crate::cli::printer;

use super::archive_place::ArchivePlace;

/// Bytes of a write.
const CHUNK: usize = 1 << 16;

pub(super) fn run(place: &ArchivePlace) -> CommandOutcome {
    let archive = place.open()?;
    let mut chunk = String::with_capacity(2 * CHUNK);
    let mut written = Ok(());
    let mut put = |line: &str| {
        chunk.push_str(line);
        chunk.push('\n');
        if chunk.len() >= CHUNK {
            written = printer::write(&chunk);
            chunk.clear();
        }
        written.is_ok()
    };
    put(&archive.suites()?.write_line());
    archive.each_run(&mut |record| put(&record.write()))?;
    // Last: a run that is withdrawn meanwhile is then written twice, which an import of the lines resolves.
    archive.each_withdrawal(&mut |withdrawal| put(&withdrawal.write()))?;
    // Read before the records, so that these cover all that was scanned up to the positions.
    let mut positions = Vec::new();
    archive.each_scan_position(&mut |model, position| {
        positions.push(position.write(model));
        true
    })?;
    archive.each_incident_record(&mut |record| put(&record.write()))?;
    positions.iter().all(|position| put(position));
    match written.and_then(|()| printer::write(&chunk)) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(anyhow::Error::new(error)
            .context("standard output cannot be written")
            .into()),
        Ok(()) | Err(_) => Ok(Exit::Done),
    }
}
