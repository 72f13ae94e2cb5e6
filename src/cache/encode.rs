//! Encoded bodies. They are built once when a document is stored; `Accept-Encoding` selects one when it is served.

use std::io::Write as _;

use bytes::Bytes;
use http::HeaderValue;
use sha2::{Digest as _, Sha256};

use scoregate_base::clock::Wall;

/// Minimum size of a body that is encoded.
const WORTH_ENCODING: usize = 512;
/// Quality 5 takes a few hundred microseconds for a page of rankings. Higher qualities take milliseconds and save only
/// a few per cent.
const BROTLI_QUALITY: i32 = 5;
const GZIP_LEVEL: u32 = 6;

/// Maximum number of encodings that are parsed. Browsers send five; parsing a thousand would cost more than the
/// response.
const MAX_ELEMENTS: usize = 32;

/// The encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentCoding {
    /// Not encoded.
    Identity,
    /// gzip.
    Gzip,
    /// Brotli.
    Brotli,
    /// Not encoded; the body is the result of a tool call.
    ToolResult,
}

/// A body in one encoding, with its headers, ready to send. It is a single allocation: with many documents, one more
/// CPU cache miss would cost more than the rest of a cache hit.
#[derive(Clone, Debug)]
pub struct Representation {
    /// The bytes.
    pub body: Bytes,
    /// The strong entity tag.
    pub etag: HeaderValue,
    /// `Content-Length`.
    pub length: HeaderValue,
    /// `Last-Modified`.
    pub last_modified: HeaderValue,
    /// `Content-Encoding`, unless identity.
    pub encoding: Option<HeaderValue>,
}

/// A body in all its encodings. Encodings that would not be smaller are omitted.
#[derive(Clone, Debug)]
pub struct EncodedBodies {
    identity: Representation,
    gzip: Option<Representation>,
    brotli: Option<Representation>,
    tool_result: Option<Representation>,
}

impl EncodedBodies {
    /// Wraps a body that is not encoded.
    pub fn identity(body: &[u8], modified_at: Wall) -> Self {
        let tag = tag(body);
        let date = modified_at.http_date();
        let identity = Representation::new(body, &tag, &date, ContentCoding::Identity);
        Self {
            identity,
            gzip: None,
            brotli: None,
            tool_result: None,
        }
    }

    /// Encodes a body. Too expensive for the request path.
    pub fn new(body: &[u8], modified_at: Wall) -> Self {
        let tag = tag(body);
        let date = modified_at.http_date();
        let smaller = |encoded: &Vec<u8>| encoded.len() < body.len();
        let is_worthwhile = body.len() >= WORTH_ENCODING;
        let gzip = is_worthwhile.then(|| gzip(body)).flatten().filter(smaller);
        let brotli = is_worthwhile
            .then(|| brotli(body))
            .flatten()
            .filter(smaller);
        Self {
            gzip: gzip.map(|bytes| Representation::new(&bytes, &tag, &date, ContentCoding::Gzip)),
            brotli: brotli
                .map(|bytes| Representation::new(&bytes, &tag, &date, ContentCoding::Brotli)),
            identity: Representation::new(body, &tag, &date, ContentCoding::Identity),
            tool_result: None,
        }
    }

    /// Adds these bytes as the result of a tool call.
    pub(super) fn with_tool_result(self, body: Option<Bytes>) -> Self {
        let tool_result = body.map(|body| Representation {
            length: body.len().into(),
            body,
            ..self.identity.clone()
        });
        Self {
            tool_result,
            ..self
        }
    }

    /// The body without encoding.
    pub fn plain(&self) -> &Bytes {
        &self.identity.body
    }

    /// The representation for a client that prefers `encoding`.
    pub fn choose(&self, encoding: ContentCoding) -> &Representation {
        let encoded = match encoding {
            ContentCoding::Identity => None,
            ContentCoding::Gzip => self.gzip.as_ref(),
            ContentCoding::Brotli => self.brotli.as_ref(),
            ContentCoding::ToolResult => self.tool_result.as_ref(),
        };
        encoded.unwrap_or(&self.identity)
    }

    pub(super) fn bytes(&self) -> usize {
        let encoded = [&self.gzip, &self.brotli, &self.tool_result];
        let sizes = encoded.into_iter().flatten().map(|one| one.body.len());
        self.identity.body.len() + sizes.sum::<usize>()
    }
}

impl Representation {
    fn new(body: &[u8], tag: &str, date: &str, encoding: ContentCoding) -> Self {
        let (suffix, name) = match encoding {
            ContentCoding::Identity | ContentCoding::ToolResult => ("", None),
            ContentCoding::Gzip => ("-gz", Some(HeaderValue::from_static("gzip"))),
            ContentCoding::Brotli => ("-br", Some(HeaderValue::from_static("br"))),
        };
        let etag = format!("\"{tag}{suffix}\"");
        let length = body.len().to_string();
        let mut rest =
            Bytes::from([etag.as_bytes(), length.as_bytes(), date.as_bytes(), body].concat());
        let mut value = |text: &str| {
            let value = HeaderValue::from_maybe_shared(rest.split_to(text.len()));
            value.expect("a tag of hexadecimal digits, a number and a date are visible ASCII")
        };
        let etag = value(&etag);
        let length = value(&length);
        let last_modified = value(date);
        Self {
            body: rest,
            etag,
            length,
            last_modified,
            encoding: name,
        }
    }
}

fn tag(body: &[u8]) -> String {
    // 96 bits are enough: two bodies of a document never have the same tag by chance.
    Sha256::digest(body)
        .iter()
        .take(12)
        .fold(String::with_capacity(24), |tag, byte| {
            tag + &format!("{byte:02x}")
        })
}

fn gzip(body: &[u8]) -> Option<Vec<u8>> {
    let mut encoder =
        flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
    encoder.write_all(body).ok()?;
    encoder.finish().ok()
}

fn brotli(body: &[u8]) -> Option<Vec<u8>> {
    // The default window of 4 MiB is zeroed for every body, which costs four times as much as encoding a page of
    // rankings. Below 17 bits the encoder uses a different algorithm, which is even slower.
    let window = i32::try_from(body.len().next_power_of_two().ilog2())
        .unwrap_or(22)
        .clamp(18, 22);
    let params = brotli::enc::BrotliEncoderParams {
        quality: BROTLI_QUALITY,
        lgwin: window,
        size_hint: body.len(),
        ..Default::default()
    };
    let mut encoded = Vec::new();
    brotli::BrotliCompress(&mut &*body, &mut encoded, &params).ok()?;
    Some(encoded)
}

/// The client's preferred encoding, with the highest q-value; if q-values are equal, Brotli, then gzip, then identity.
/// Malformed elements are ignored. Identity is the fallback, even if the client excludes it or sends too many elements: a
/// readable response is better than none.
pub fn negotiate<'h>(accept: impl Iterator<Item = &'h HeaderValue>) -> ContentCoding {
    let mut accepted = AcceptedCodings::default();
    let items = accept.flat_map(|line| line.to_str().unwrap_or("").split(','));
    for (number, item) in items.enumerate() {
        if number == MAX_ELEMENTS {
            return ContentCoding::Identity;
        }
        accepted.add(item);
    }
    accepted.best()
}

/// q-values in thousandths. `None` if the client sent none.
#[derive(Default)]
struct AcceptedCodings {
    gzip: Option<u16>,
    brotli: Option<u16>,
    identity: Option<u16>,
    any: Option<u16>,
}

impl AcceptedCodings {
    fn add(&mut self, item: &str) {
        let mut parts = item.split(';').map(str::trim);
        let name = parts.next().unwrap_or("");
        let weight = parts.next();
        let more = parts.next();
        let quality = weight
            .map_or(Some(1_000), quality)
            .filter(|_| more.is_none());
        let Some(quality) = quality else { return };
        let coding = if name.eq_ignore_ascii_case("br") {
            &mut self.brotli
        } else if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") {
            &mut self.gzip
        } else if name.eq_ignore_ascii_case("identity") {
            &mut self.identity
        } else if name == "*" {
            &mut self.any
        } else {
            return;
        };
        *coding = Some(quality);
    }

    fn best(&self) -> ContentCoding {
        let brotli = self.brotli.or(self.any).unwrap_or(0);
        let gzip = self.gzip.or(self.any).unwrap_or(0);
        // By default identity is acceptable, but any named encoding is preferred.
        let identity = self.identity.unwrap_or(0);
        if brotli > 0 && brotli >= gzip && brotli >= identity {
            ContentCoding::Brotli
        } else if gzip > 0 && gzip >= identity {
            ContentCoding::Gzip
        } else {
            ContentCoding::Identity
        }
    }
}

/// Parses `q=0.5` as thousandths, according to RFC 9110: from 0 to 1, with at most three decimals.
pub fn quality(parameter: &str) -> Option<u16> {
    let value = parameter
        .strip_prefix("q=")
        .or_else(|| parameter.strip_prefix("Q="))?;
    let (whole, decimals) = value.split_once('.').unwrap_or((value, ""));
    let well_formed = decimals.len() <= 3 && decimals.bytes().all(|digit| digit.is_ascii_digit());
    let thousandths = format!("{decimals:0<3}")
        .parse()
        .ok()
        .filter(|_| well_formed)?;
    match (whole, thousandths) {
        ("0", thousandths) => Some(thousandths),
        ("1", 0) => Some(1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn too_many_encodings_get_the_plain_body() {
        let accepted = |count: usize| HeaderValue::from_str(&vec!["br"; count].join(",")).unwrap();
        assert_eq!(
            negotiate([accepted(MAX_ELEMENTS)].iter()),
            ContentCoding::Brotli
        );
        assert_eq!(
            negotiate([accepted(MAX_ELEMENTS + 1)].iter()),
            ContentCoding::Identity
        );
        assert_eq!(
            negotiate([accepted(MAX_ELEMENTS), accepted(1)].iter()),
            ContentCoding::Identity
        );
    }

    #[test]
    fn encodings_of_a_body_have_distinct_tags() {
        let body = Bytes::from("{\"id\":\"atlas\"},".repeat(200));
        let encoded = EncodedBodies::new(&body, Wall::from_seconds(0));
        let mut gunzipped = Vec::new();
        flate2::read::GzDecoder::new(&*encoded.choose(ContentCoding::Gzip).body)
            .read_to_end(&mut gunzipped)
            .unwrap();
        let mut unbrotlied = Vec::new();
        brotli::BrotliDecompress(
            &mut &*encoded.choose(ContentCoding::Brotli).body,
            &mut unbrotlied,
        )
        .unwrap();
        assert_eq!((&gunzipped[..], &unbrotlied[..]), (&body[..], &body[..]));
        let tags = [
            ContentCoding::Identity,
            ContentCoding::Gzip,
            ContentCoding::Brotli,
        ]
        .map(|e| encoded.choose(e).etag.clone());
        assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2]);
        let plain = encoded.choose(ContentCoding::Identity);
        assert_eq!(
            (&plain.body, plain.length.to_str().unwrap()),
            (&body, &*body.len().to_string())
        );
        assert_eq!(plain.last_modified, "Thu, 01 Jan 1970 00:00:00 GMT");
    }

    #[test]
    fn small_bodies_are_not_encoded() {
        let encoded = EncodedBodies::new(b"[]", Wall::from_seconds(0));
        assert_eq!(encoded.choose(ContentCoding::Brotli).encoding, None);
    }
}
