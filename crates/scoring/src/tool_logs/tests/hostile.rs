//! Damaged and hostile `.eval` files. Each is either rejected with a reason or read as if it were intact.

use std::io::{Cursor, Write as _};

use rawzip::{CompressionMethod, ZipArchiveWriter, crc32};
use tempfile::TempDir;

use crate::tool_logs::*;

use super::golden_files::{golden_file, golden_mapping, read_one};

const HEADER: &str = r#"{"status":"success","eval":{"eval_id":"e","created":"2026-11-24T17:00:00+00:00","task":"judged","model":"mockllm/meridian/atlas-4"}}"#;
const SAMPLE: &str = r#"{"id":1,"epoch":1,"scores":{"judge":{"value":1.0}}}"#;

/// A member: its name, compression method and compressed content, and the length and checksum that it claims.
struct WrittenMember {
    name: String,
    method: CompressionMethod,
    raw: Vec<u8>,
    length: u64,
    sum: u32,
}

impl WrittenMember {
    fn stored(name: &str, content: impl Into<Vec<u8>>) -> Self {
        let raw = content.into();
        let length = raw.len() as u64;
        let sum = crc32(&raw);
        Self {
            name: name.into(),
            method: CompressionMethod::STORE,
            raw,
            length,
            sum,
        }
    }
}

/// Writes a zip file with these members.
fn zip(members: &[WrittenMember]) -> Vec<u8> {
    let mut zip = ZipArchiveWriter::new(Cursor::new(Vec::new()));
    for member in members {
        let (mut entry, _) = zip
            .new_file(member.name.as_str())
            .compression_method(member.method)
            .start()
            .unwrap();
        entry.write_all(&member.raw).unwrap();
        entry
            .finish(rawzip::DataDescriptorOutput::new(member.sum, member.length))
            .unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn read_bytes(bytes: &[u8]) -> Result<MappedRuns, String> {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("log.eval");
    std::fs::write(&path, bytes).unwrap();
    let read =
        read_one(&path, &golden_mapping("inspect.toml")).map_err(|problem| problem.to_string());
    assert_eq!(
        std::fs::read_dir(&directory).unwrap().count(),
        1,
        "a member was written to the disk"
    );
    read
}

/// Reads a log with one additional member.
fn read_with(member: WrittenMember) -> Result<MappedRuns, String> {
    read_bytes(&zip(&[
        WrittenMember::stored("header.json", HEADER),
        WrittenMember::stored("samples/1_epoch_1.json", SAMPLE),
        member,
    ]))
}

#[test]
fn a_made_up_log_is_read() {
    let runs = read_with(WrittenMember::stored(
        "samples/2_epoch_1.json",
        SAMPLE.replace("\"id\":1", "\"id\":\"x\""),
    ));
    assert_eq!(runs.unwrap().scored, 2);
}

#[test]
fn a_sample_that_was_stopped_by_a_limit_counts_by_its_score_and_is_reported() {
    let limit = r#""id":2,"limit":{"type":"token","limit":1000.0}"#;
    let runs = read_with(WrittenMember::stored(
        "samples/2_epoch_1.json",
        SAMPLE.replace("\"id\":1", limit),
    ));
    let runs = runs.unwrap();
    assert_eq!((runs.scored, runs.limited), (2, 1));
}

#[test]
fn zstandard_frames_that_follow_each_other_are_one_member() {
    let content = SAMPLE.replace("\"id\":1", "\"id\":2");
    let mut raw = Vec::new();
    for part in content.as_bytes().chunks(20) {
        // A frame with a window of 1 MiB and one uncompressed block.
        raw.extend([0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x50]);
        raw.extend(&(u32::try_from(part.len()).unwrap() << 3 | 1).to_le_bytes()[..3]);
        raw.extend(part);
    }
    let name = "samples/2_epoch_1.json";
    let WrittenMember { length, sum, .. } = WrittenMember::stored(name, content);
    let member = WrittenMember {
        name: name.into(),
        method: CompressionMethod::ZSTD,
        raw,
        length,
        sum,
    };
    assert_eq!(read_with(member).unwrap().scored, 2);
}

#[test]
fn decompression_bombs_are_refused() {
    // Blocks of spaces, which are valid JSON: 128 KiB for each block of four bytes.
    let blocks = 8_192_u32;
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x50];
    for block in 1..=blocks {
        let head = u32::from(block == blocks) | 1 << 1 | (128 << 10) << 3;
        frame.extend(&head.to_le_bytes()[..3]);
        frame.push(b' ');
    }
    for says in [u64::from(blocks) << 17, 10] {
        let member = WrittenMember {
            name: "samples/2_epoch_1.json".into(),
            method: CompressionMethod::ZSTD,
            raw: frame.clone(),
            length: says,
            sum: 0,
        };
        let refused = read_with(member).unwrap_err();
        let is_expected =
            refused.contains("decompresses to more than") || says == 10 && refused.contains("size");
        assert!(
            is_expected && refused.contains("samples/2_epoch_1.json"),
            "{refused}"
        );
    }
}

#[test]
fn a_name_or_a_sample_that_is_given_twice_is_refused() {
    let refused = read_with(WrittenMember::stored("samples/1_epoch_1.json", SAMPLE)).unwrap_err();
    assert!(refused.contains("is in the file twice"), "{refused}");
    let refused = read_with(WrittenMember::stored("samples/other.json", SAMPLE)).unwrap_err();
    assert!(
        refused.contains("sample 1, epoch 1: is in the log twice"),
        "{refused}"
    );
}

#[test]
fn contents_that_do_not_match_their_sum_or_method_are_refused() {
    let name = "samples/2_epoch_1.json";
    let good = || WrittenMember::stored(name, SAMPLE.replace("\"id\":1", "\"id\":2"));
    assert!(read_with(good()).is_ok());
    let rows = [
        (WrittenMember { sum: 1, ..good() }, "checksum"),
        (
            WrittenMember {
                length: 5,
                ..good()
            },
            "size",
        ),
        (
            WrittenMember {
                length: 5_000,
                ..good()
            },
            "size",
        ),
        (
            WrittenMember {
                method: CompressionMethod::ZSTD,
                ..good()
            },
            "is not Zstandard data",
        ),
        (
            WrittenMember {
                method: CompressionMethod::DEFLATE,
                ..good()
            },
            "deflate",
        ),
        (
            WrittenMember {
                method: CompressionMethod::BZIP2,
                ..good()
            },
            "compression method 12 is not supported",
        ),
        (
            WrittenMember::stored(name, "{\"id\":2"),
            "EOF while parsing",
        ),
        (
            WrittenMember::stored(name, "{\"id\":2}"),
            "missing field `epoch`",
        ),
        (
            WrittenMember::stored(name, *b"{\"id\":\"\xff\xfe\"}"),
            "unicode",
        ),
    ];
    for (member, problem) in rows {
        let refused = read_with(member).unwrap_err();
        assert!(
            refused.starts_with(name) && refused.contains(problem),
            "{problem}: {refused}"
        );
    }
}

#[test]
fn long_texts_are_skipped() {
    let long = "x".repeat(10 << 20);
    let with = |more: &str| SAMPLE.replace("\"id\":1", &format!("\"id\":2,{more}"));
    let read = |more: &str| read_with(WrittenMember::stored("samples/2_epoch_1.json", with(more)));
    assert_eq!(
        read(&format!("\"messages\":[\"{long}\"]")).unwrap().scored,
        2
    );
    let failed = read(&format!(
        "\"error\":{{\"message\":\"{long}\",\"traceback\":\"\",\"traceback_ansi\":\"\"}}"
    ));
    assert_eq!(failed.unwrap().failed.len(), 1);
}

#[test]
fn a_log_that_is_cut_off_or_changed_is_refused_or_read_the_same() {
    let bytes = std::fs::read(golden_file("inspect/unscored.eval")).unwrap();
    let expected = read_bytes(&bytes).unwrap();
    for length in (0..bytes.len()).step_by(97) {
        let read = read_bytes(&bytes[..length]);
        assert!(read.is_err(), "cut off after {length} bytes");
    }
    let mut refused = 0;
    for index in (0..bytes.len()).step_by(23) {
        let mut changed = bytes.clone();
        changed[index] ^= 1 << (index % 8);
        match read_bytes(&changed) {
            // Some bytes do not matter, such as the time in the header of a member.
            Ok(read) => assert_eq!(read, expected, "byte {index}"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 100, "{refused}");
}
