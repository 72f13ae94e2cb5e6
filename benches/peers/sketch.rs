//! The whole job in a minimal form, on the libraries of the gateway: accounts found by the SHA-256 of the key, a bucket for
//! the minute, a counter for the day, a document from the cache, and the header fields of the gateway's response. It has
//! none of the gateway's guarantees: the difference to it is what they cost, and how they are made.

use std::{
    fmt::Write as _,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use bytes::Bytes;
use dashmap::DashMap;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use moka::sync::Cache;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::job::{DAY, MINUTE, TARGET};

const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const LIMITS: HeaderName = HeaderName::from_static("ratelimit");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The state that all connections share.
pub struct Sketch {
    accounts: DashMap<[u8; 32], Account>,
    documents: Cache<String, (HeaderMap, Bytes)>,
    requests: AtomicU64,
}

struct Account {
    minute: Mutex<Bucket>,
    /// Units spent today.
    day: AtomicU64,
}

struct Bucket {
    units: f64,
    filled_at: Instant,
}

impl Sketch {
    /// With the keys of a directory, and one document.
    pub fn new(directory: &Path, fields: HeaderMap, body: Bytes) -> Self {
        let keys = std::fs::read_to_string(directory.join("keys.txt")).unwrap();
        let digests = keys
            .lines()
            .map(|line| Sha256::digest(line.split(' ').next().unwrap()).into());
        let documents = Cache::new(1_000);
        documents.insert(TARGET.to_owned(), (fields, body));
        Self {
            accounts: digests.map(|digest| (digest, Account::new())).collect(),
            documents,
            requests: AtomicU64::new(0),
        }
    }

    /// Answers a request.
    pub fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let Some(key) = request.headers().get("x-api-key") else {
            return refuse(StatusCode::UNAUTHORIZED);
        };
        let digest: [u8; 32] = Sha256::digest(key.as_bytes()).into();
        let Some(account) = self.accounts.get(&digest) else {
            return refuse(StatusCode::UNAUTHORIZED);
        };
        let Some((minute, day)) = account.spend(Instant::now()) else {
            return refuse(StatusCode::TOO_MANY_REQUESTS);
        };
        drop(account);
        let target = request
            .uri()
            .path_and_query()
            .map_or("", |target| target.as_str());
        let Some((mut fields, body)) = self.documents.get(target) else {
            return refuse(StatusCode::NOT_FOUND);
        };
        let mut text = String::with_capacity(64);
        write!(text, "\"minute\";r={minute};t=1, \"day\";r={day};t=43200").unwrap();
        fields.insert(LIMITS, HeaderValue::try_from(text).unwrap());
        fields.insert(REMAINING, HeaderValue::from(day));
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        fields.insert(
            REQUEST_ID,
            HeaderValue::try_from(format!("{request:032x}")).unwrap(),
        );
        let mut response = Response::new(Full::new(body));
        *response.headers_mut() = fields;
        response
    }
}

impl Account {
    fn new() -> Self {
        let bucket = Bucket {
            units: f64::from(MINUTE),
            filled_at: Instant::now(),
        };
        Self {
            minute: Mutex::new(bucket),
            day: AtomicU64::new(0),
        }
    }

    /// Takes a unit of both limits; returns what is left of them.
    fn spend(&self, now: Instant) -> Option<(u64, u64)> {
        let minute = {
            let mut bucket = self.minute.lock();
            let gained =
                now.duration_since(bucket.filled_at).as_secs_f64() * f64::from(MINUTE) / 60.0;
            bucket.units = (bucket.units + gained).min(f64::from(MINUTE));
            bucket.filled_at = now;
            bucket.units = (bucket.units >= 1.0).then(|| bucket.units - 1.0)?;
            bucket.units as u64
        };
        let spent = self.day.fetch_add(1, Ordering::Relaxed) + 1;
        Some((minute, u64::from(DAY).checked_sub(spent)?))
    }
}

fn refuse(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
