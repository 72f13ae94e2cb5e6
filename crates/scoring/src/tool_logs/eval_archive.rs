//! The members of an `.eval` file, which is a zip file. Members are read one by one and never written to a disk.
//!
//! Sizes in headers are not trusted: decompressed bytes are counted. Names are labels; what a sample is named is in its
//! content.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use flate2::read::DeflateDecoder;
use rawzip::{
    CompressionMethod, FileReader, RECOMMENDED_BUFFER_SIZE, ZipArchive, ZipArchiveEntryWayfinder,
};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use serde::de::DeserializeOwned;

use super::evaluation::LogProblem;
use super::python_json::{invalid, read_json};

/// Maximum number of members: a million samples with their summaries.
const MOST_MEMBERS: usize = 2_100_000;
/// Maximum length of all names together, in bytes.
const LONGEST_NAMES: usize = 256 << 20;
/// A member may have this size, decompressed, whatever its ratio.
const SMALL_MEMBER: u64 = 16 << 20;
const LARGEST_MEMBER: u64 = 1 << 30;
/// Maximum ratio of a member: the conversation that is repeated in each event of an agent is compressed well.
const MEMBER_RATIO: u64 = 1_000;
/// A file may have this size, decompressed, whatever its ratio.
const SMALL_FILE: u64 = 1 << 30;
/// Maximum ratio of a file: tracebacks of failed samples reach 20.
const FILE_RATIO: u64 = 200;
/// Maximum window of a Zstandard frame: the usual limit of decoders.
const LARGEST_WINDOW: u64 = 128 << 20;

/// An open `.eval` file.
pub(super) struct EvalArchive {
    archive: ZipArchive<FileReader>,
    members: BTreeMap<String, ArchiveMember>,
    /// Bytes that may still be decompressed.
    left: Cell<u64>,
}

#[derive(Clone, Copy)]
struct ArchiveMember {
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    compressed: u64,
}

impl EvalArchive {
    /// Reads the directory of the members.
    pub(super) fn open(file: File) -> Result<Self, LogProblem> {
        let size = file.metadata().map_err(|error| damaged(&error))?.len();
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let archive = ZipArchive::from_file(file, &mut buffer).map_err(|error| damaged(&error))?;
        let members = directory(&archive, &mut buffer)?;
        let left = Cell::new(SMALL_FILE.max(size.saturating_mul(FILE_RATIO)));
        Ok(Self {
            archive,
            members,
            left,
        })
    }

    /// The names of the members, sorted.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// Parses a member; `None` if there is none of this name.
    pub(super) fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, LogProblem> {
        let Some(member) = self.members.get(name).copied() else {
            return Ok(None);
        };
        let bad = |problem: String| LogProblem::invalid(name, problem);
        let entry = self
            .archive
            .get_entry(member.place)
            .map_err(|error| bad(error.to_string()))?;
        let raw = entry.reader();
        let decompressed: Box<dyn Read + '_> = match member.method {
            CompressionMethod::STORE => Box::new(raw),
            CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(raw)),
            CompressionMethod::ZSTD => Box::new(ZstdFrames::Between(BufReader::new(raw))),
            other => {
                return Err(bad(format!(
                    "its compression method {} is not supported",
                    other.as_u16()
                )));
            }
        };
        let ratio = member.compressed.saturating_mul(MEMBER_RATIO);
        let limit = SMALL_MEMBER
            .max(ratio)
            .min(LARGEST_MEMBER)
            .min(self.left.get());
        let counted = DecompressedBytes {
            from: decompressed,
            count: 0,
            limit,
            left: &self.left,
        };
        read_json(entry.verifying_reader(counted), u64::MAX)
            .map(Some)
            .map_err(bad)
    }
}

fn directory(
    archive: &ZipArchive<FileReader>,
    buffer: &mut [u8],
) -> Result<BTreeMap<String, ArchiveMember>, LogProblem> {
    let mut members = BTreeMap::new();
    let mut length = 0_usize;
    let mut entries = archive.entries(buffer);
    while let Some(entry) = entries.next_entry().map_err(|error| damaged(&error))? {
        let name = String::from_utf8_lossy(entry.file_path().as_ref()).into_owned();
        if name.starts_with('/') || name.split(['/', '\\']).any(|part| part == "..") {
            let problem = "is not a name that Inspect AI gives; the file is not imported";
            return Err(LogProblem::invalid(name, problem));
        }
        if entry.flags().is_encrypted() {
            return Err(LogProblem::invalid(
                name,
                "is encrypted; Inspect AI encrypts nothing",
            ));
        }
        length = length.saturating_add(name.len());
        if members.len() >= MOST_MEMBERS || length > LONGEST_NAMES {
            let problem = format!("has more than {MOST_MEMBERS} members; import it in parts");
            return Err(LogProblem::invalid("", problem));
        }
        let member = ArchiveMember {
            place: entry.wayfinder(),
            method: entry.compression_method(),
            compressed: entry.compressed_size_hint(),
        };
        if members.insert(name.clone(), member).is_some() {
            let problem = "is in the file twice; write the log again with Inspect AI";
            return Err(LogProblem::invalid(name, problem));
        }
    }
    if members.len() as u64 != archive.entries_hint() {
        return Err(damaged(&format!(
            "{} of {} members",
            members.len(),
            archive.entries_hint()
        )));
    }
    Ok(members)
}

fn damaged(problem: &dyn std::fmt::Display) -> LogProblem {
    LogProblem::invalid(
        "",
        format!("is damaged or incomplete: {problem}; copy the file again"),
    )
}

/// Counts decompressed bytes and fails above a limit.
struct DecompressedBytes<'a> {
    from: Box<dyn Read + 'a>,
    count: u64,
    limit: u64,
    left: &'a Cell<u64>,
}

impl Read for DecompressedBytes<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.count = self.count.saturating_add(read as u64);
        self.left.set(self.left.get().saturating_sub(read as u64));
        if self.count > self.limit {
            return Err(invalid(format!(
                "decompresses to more than {} bytes, which no log does; the file is not imported",
                self.limit
            )));
        }
        Ok(read)
    }
}

/// Decompresses Zstandard frames that follow each other: Inspect AI starts a new one every 200 MiB.
enum ZstdFrames<R: Read> {
    Between(BufReader<R>),
    Frame(Box<StreamingDecoder<BufReader<R>, FrameDecoder>>),
    /// After an error.
    Failed,
}

impl<R: Read> Read for ZstdFrames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            *self = match std::mem::replace(self, Self::Failed) {
                Self::Between(mut from) => {
                    if from.fill_buf()?.is_empty() {
                        *self = Self::Between(from);
                        return Ok(0);
                    }
                    let frame = StreamingDecoder::new_with_max_window_size(from, LARGEST_WINDOW);
                    Self::Frame(Box::new(frame.map_err(|error| {
                        invalid(format!("is not Zstandard data: {error}"))
                    })?))
                }
                Self::Frame(mut frame) => {
                    let read = frame.read(into)?;
                    if read > 0 {
                        *self = Self::Frame(frame);
                        return Ok(read);
                    }
                    Self::Between(frame.into_inner())
                }
                Self::Failed => return Err(invalid("is damaged".into())),
            };
        }
    }
}
