//! The members of an `.eval` file, which is a zip file. Members are read one by one and never written to disk.
//!
//! Sizes in headers are not trusted. Instead, decompressed bytes are counted. Names are only labels. The id of a sample
//! is in its content.

use std::{
    cell::Cell,
    collections::BTreeMap,
    fmt::Display,
    fs::File,
    io::{self, BufRead, BufReader, Read},
};

use flate2::read::DeflateDecoder;
use rawzip::{
    CompressionMethod, FileReader, RECOMMENDED_BUFFER_SIZE, ZipArchive, ZipArchiveEntryWayfinder,
};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use serde::de::DeserializeOwned;

use super::{evaluation::LogProblem, python_json::read_json};

/// A file of any size may decompress to this size.
const SMALL_LOG: u64 = 16 << 20;
/// Maximum compression ratio of a larger file. Agent logs compress well, because each event repeats the conversation.
const LARGEST_RATIO: u64 = 1_000;

/// An open `.eval` file.
pub struct EvalArchive {
    archive: ZipArchive<FileReader>,
    members: BTreeMap<String, ArchiveMember>,
    /// Maximum number of decompressed bytes.
    limit: u64,
    /// Bytes that may still be decompressed.
    left: Cell<u64>,
}

#[derive(Clone, Copy)]
struct ArchiveMember {
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
}

impl EvalArchive {
    /// Reads the directory of the members.
    pub fn open(file: File) -> Result<Self, LogProblem> {
        let size = file.metadata().map_err(damaged)?.len();
        let limit = size.saturating_mul(LARGEST_RATIO).saturating_add(SMALL_LOG);
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let archive = ZipArchive::from_file(file, &mut buffer).map_err(damaged)?;
        let members = directory(&archive, &mut buffer)?;
        Ok(Self {
            archive,
            members,
            limit,
            left: Cell::new(limit),
        })
    }

    /// The names of the members, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// Parses a member; `None` if there is no member with this name.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, LogProblem> {
        let member = self.members.get(name);
        member
            .map(|member| self.parse(*member))
            .transpose()
            .map_err(|problem| LogProblem::invalid(name, problem))
    }

    fn parse<T: DeserializeOwned>(&self, member: ArchiveMember) -> Result<T, String> {
        let entry = self.archive.get_entry(member.place);
        let entry = entry.map_err(|error| error.to_string())?;
        let raw = entry.reader();
        let decompressed: Box<dyn Read + '_> = match member.method {
            CompressionMethod::STORE => Box::new(raw),
            CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(raw)),
            CompressionMethod::ZSTD => Box::new(ZstdFrames::Between(BufReader::new(raw))),
            other => {
                return Err(format!(
                    "its compression method {} is not supported",
                    other.as_u16()
                ));
            }
        };
        let counted = DecompressedBytes {
            from: decompressed,
            archive: self,
        };
        read_json(entry.verifying_reader(counted))
    }
}

fn directory(
    archive: &ZipArchive<FileReader>,
    buffer: &mut [u8],
) -> Result<BTreeMap<String, ArchiveMember>, LogProblem> {
    let mut members = BTreeMap::new();
    let mut entries = archive.entries(buffer);
    while let Some(entry) = entries.next_entry().map_err(damaged)? {
        let name = String::from_utf8_lossy(entry.file_path().as_ref()).into_owned();
        let member = ArchiveMember {
            place: entry.wayfinder(),
            method: entry.compression_method(),
        };
        if members.insert(name.clone(), member).is_some() {
            let problem = "is in the file twice; write the log again with Inspect AI";
            return Err(LogProblem::invalid(name, problem));
        }
    }
    let found = members.len();
    let expected = archive.entries_hint();
    if found as u64 != expected {
        return Err(damaged(format!("{found} of {expected} members")));
    }
    Ok(members)
}

fn damaged(problem: impl Display) -> LogProblem {
    LogProblem::invalid(
        "",
        format!("is damaged or incomplete: {problem}; copy the file again"),
    )
}

/// Counts decompressed bytes and fails above the limit.
struct DecompressedBytes<'a> {
    from: Box<dyn Read + 'a>,
    archive: &'a EvalArchive,
}

impl Read for DecompressedBytes<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        let left = &self.archive.left;
        let limit = self.archive.limit;
        left.set(left.get().checked_sub(read as u64).ok_or_else(|| {
            invalid(format!(
                "decompresses to more than {limit} bytes, too large for a log; the file is not imported"
            ))
        })?);
        Ok(read)
    }
}

/// Decompresses consecutive Zstandard frames. Inspect AI starts a new frame every 200 MiB.
enum ZstdFrames<R: Read> {
    Between(BufReader<R>),
    Frame(Box<StreamingDecoder<BufReader<R>, FrameDecoder>>),
    /// An error has occurred.
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
                    Self::Frame(Box::new(StreamingDecoder::new(from).map_err(|error| {
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

fn invalid(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}
