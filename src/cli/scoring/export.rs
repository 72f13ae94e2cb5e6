//! `scoregate scoring export`: every run as a line of JSON.
//!
//! Not for: how a run is written (`scoring`).

use std::io;
use std::path::Path;

use crate::cli::exit::Exit;
use crate::cli::printer;
use crate::clock::Clock;
use crate::scoring::Archive;

/// So much is written at once.
const PIECE: usize = 1 << 16;

pub(super) fn run(archive: &Path) -> Exit {
    if !archive.exists() {
        return printer::input(&format!("there is no archive {}", archive.display()));
    }
    let (mut piece, mut written) = (String::with_capacity(2 * PIECE), Ok(()));
    let read = Archive::open(archive, Clock::system().now().wall).and_then(|archive| {
        archive.each_run(&mut |record| {
            piece.push_str(&record.write());
            piece.push('\n');
            if piece.len() >= PIECE {
                written = printer::write(&piece);
                piece.clear();
            }
            written.is_ok()
        })
    });
    if let Err(error) = read {
        return printer::fault(&error.into());
    }
    match written.and_then(|()| printer::write(&piece)) {
        Ok(()) => Exit::Done,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(error) => printer::fault(&anyhow::Error::new(error).context("standard output cannot be written")),
    }
}
