//! The checksum of a backup, stored in a block after the pages of the database. SQLite checks only the structure, and
//! it ignores the block, because the file header states the number of pages.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead as _, BufReader, Read, Write as _},
    path::Path,
};

use sha2::{Digest as _, Sha256};

use scoregate_base::keys::Digest;

/// Size of the block. It is a multiple of every page size, so the file still consists of whole pages.
const BLOCK: usize = 65_536;
/// The first bytes of the block, followed by the checksum.
const OPENING: &str = "scoregate-backup sha256 ";

/// Computes the checksum of a file and appends it durably.
pub fn seal(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).append(true).open(path)?;
    let block = block_for(&file)?;
    file.write_all(&block)?;
    file.sync_all()
}

/// Whether a file matches its checksum. `None` if it has no checksum.
pub fn is_intact(path: &Path) -> io::Result<Option<bool>> {
    let mut file = File::open(path)?;
    let block = u64::try_from(BLOCK).unwrap_or(u64::MAX);
    let Some(content) = file.metadata()?.len().checked_sub(block) else {
        return Ok(None);
    };
    let expected = block_for((&file).take(content))?;
    let mut found = Vec::with_capacity(BLOCK);
    file.read_to_end(&mut found)?;
    let is_sealed = found.starts_with(OPENING.as_bytes());
    Ok(is_sealed.then(|| found == expected))
}

fn block_for(content: impl Read) -> io::Result<Vec<u8>> {
    let mut content = BufReader::with_capacity(BLOCK, content);
    let mut hash = Sha256::new();
    loop {
        let part = content.fill_buf()?;
        if part.is_empty() {
            break;
        }
        hash.update(part);
        let length = part.len();
        content.consume(length);
    }
    let sha256 = Digest::from_bytes(hash.finalize().into());
    let mut block = format!("{OPENING}{sha256}\n").into_bytes();
    block.resize(BLOCK, 0);
    Ok(block)
}
