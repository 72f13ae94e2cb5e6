//! `scoregate scoring export`: writes the suite table and then every run, each as a line of JSON.

use std::io;

use crate::cli::{command_error::CommandOutcome, printer};

use super::archive_place::ArchivePlace;

/// Number of bytes per write.
const CHUNK: usize = 1 << 16;

pub fn run(place: &ArchivePlace) -> CommandOutcome {
    let archive = place.open()?;
    let mut chunk = archive.suites()?.write_line() + "\n";
    let mut written = Ok(());
    archive.each_run(&mut |record| {
        chunk.push_str(&record.write());
        chunk.push('\n');
        if chunk.len() >= CHUNK {
            written = printer::write(&chunk);
            chunk.clear();
        }
        written.is_ok()
    })?;
    match written.and_then(|()| printer::write(&chunk)) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(anyhow::Error::new(error)
            .context("standard output cannot be written")
            .into()),
        Ok(()) | Err(_) => Ok(()),
    }
}
