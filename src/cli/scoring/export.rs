//! `scoregate scoring export`: writes the suite table, every run, then every withdrawal and incident, as a line of JSON.

use std::io;
use std::path::Path;

use crate::cli::exit::Exit;
use crate::cli::printer;
use scoregate_base::clock::Clock;
use scoregate_scoring::Archive;

/// Bytes of a write.
const CHUNK: usize = 1 << 16;

pub(super) fn run(archive: &Path) -> Exit {
    if !archive.exists() {
        return printer::input_error(&format!("there is no archive {}", archive.display()));
    }
    let (mut chunk, mut written) = (String::with_capacity(2 * CHUNK), Ok(()));
    let mut put = |line: &str| {
        chunk.push_str(line);
        chunk.push('\n');
        if chunk.len() >= CHUNK {
            written = printer::write(&chunk);
            chunk.clear();
        }
        written.is_ok()
    };
    let read = Archive::open(archive, Clock::system().now().wall).and_then(|archive| {
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
        Ok(())
    });
    if let Err(error) = read {
        return printer::fault(&error.into());
    }
    match written.and_then(|()| printer::write(&chunk)) {
        Ok(()) => Exit::Done,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(error) => printer::fault(&anyhow::Error::new(error).context("standard output cannot be written")),
    }
}
