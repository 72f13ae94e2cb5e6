//! Handles requests to the leaked-key receiver.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{
    Method, Response, StatusCode, Version,
    header::{
        ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue,
        RETRY_AFTER,
    },
    request::Parts,
};
use http_body_util::Full;
use serde_json::json;
use tokio_util::task::TaskTracker;

use crate::{
    bodies::{BodyFailure, Holder, RequestBody},
    gateway::{Gateway, Peer},
    instruments::LeakOutcome,
    registry::{LeakedKey, LeakedKeys},
};
use scoregate_base::keys::{Digest, KeyForm, shown_prefix};

use super::{
    published_keys::{PublishedKeys, has_form},
    report_slots::ReportSlots,
    scan_report::{ReportedToken, TokenLabel},
};

const PATH: &str = "/secret-scanning";
const IDENTIFIER: HeaderName = HeaderName::from_static("github-public-key-identifier");
const SIGNATURE: HeaderName = HeaderName::from_static("github-public-key-signature");
/// Receives reports of leaked keys.
pub struct LeakReceiver {
    /// The public keys that verify reports.
    pub signers: Arc<PublishedKeys>,
    leaked: LeakedKeys,
    slots: Arc<ReportSlots>,
    /// The tasks that process reports. A shutdown waits for them.
    tasks: TaskTracker,
}

/// A refusal of a request: status and remedy.
type LeakRefusal = (StatusCode, &'static str);
const METHOD: LeakRefusal = (StatusCode::METHOD_NOT_ALLOWED, "Send a report with POST.");
const NOT_SIGNED: LeakRefusal = (
    StatusCode::UNAUTHORIZED,
    "Sign the body with a published key.",
);
const NOT_A_REPORT: LeakRefusal = (StatusCode::BAD_REQUEST, "Send a JSON array of tokens.");
const TOO_LARGE: LeakRefusal = (StatusCode::PAYLOAD_TOO_LARGE, "Send at most 1 MiB.");
const SLOW: LeakRefusal = (StatusCode::REQUEST_TIMEOUT, "Send the body within 5 s.");
const TOO_MANY_REFUSALS: LeakRefusal = (StatusCode::TOO_MANY_REQUESTS, "Wait a minute.");
const BUSY: LeakRefusal = (
    StatusCode::SERVICE_UNAVAILABLE,
    "Too many reports are being received. Send the report again.",
);
const FAILED: LeakRefusal = (
    StatusCode::SERVICE_UNAVAILABLE,
    "The report was not processed. Send it again.",
);

impl LeakReceiver {
    /// Maximum size of a report in bytes.
    pub const MAX_BODY: usize = 1 << 20;

    /// A receiver that passes the keys of reports to `leaked`. It has no public keys yet.
    pub fn new(leaked: LeakedKeys, tasks: TaskTracker) -> Self {
        Self {
            signers: Arc::default(),
            leaked,
            slots: Arc::default(),
            tasks,
        }
    }

    /// Whether this path belongs to the receiver.
    pub fn serves(path: &str) -> bool {
        path == PATH
    }

    /// Answers a request. A token from the guard is taken before anything is read, so that an address without tokens
    /// cannot occupy a slot.
    pub async fn handle(
        self: &Arc<Self>,
        gateway: &ArcSwap<Gateway>,
        head: &Parts,
        body: &mut RequestBody<'_>,
        peer: Peer,
    ) -> Response<Full<Bytes>> {
        let gateway = gateway.load_full();
        // On HTTP/1.1 the connection is closed after a request with a body, because leftover bytes could be parsed as the next request.
        let closes = head.version < Version::HTTP_2 && !body.is_at_end();
        let client = gateway.proxies.client(peer.address, &head.headers);
        let answered = if gateway.guard.take(client, gateway.clock.now()) {
            let answered = self.answer(&gateway, head, body, client).await;
            if !matches!(answered, Err((status, _)) if status.is_client_error()) {
                gateway.guard.give_back(client);
            }
            answered
        } else {
            Err(TOO_MANY_REFUSALS)
        };
        if let Err((status, remedy)) = answered {
            tracing::debug!(%status, remedy, "report of leaked keys refused");
        }
        response(&answered, head.method == Method::HEAD, closes)
    }

    async fn answer(
        self: &Arc<Self>,
        gateway: &Gateway,
        head: &Parts,
        body: &mut RequestBody<'_>,
        client: IpAddr,
    ) -> Result<Bytes, LeakRefusal> {
        if head.method != Method::POST {
            return Err(METHOD);
        }
        let field = |name: HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok());
        let (identifier, signature) = field(IDENTIFIER).zip(field(SIGNATURE)).ok_or(NOT_SIGNED)?;
        // A body is read only if the identifier is known and the signature is well-formed.
        if !self.signers.has(identifier) || !has_form(signature) {
            return Err(NOT_SIGNED);
        }
        let body = body
            .read(Self::MAX_BODY, Holder::Client(client))
            .await
            .map_err(unread)?;
        if !self.signers.verify(identifier, signature, &body) {
            return Err(NOT_SIGNED);
        }
        // Only signed reports occupy slots.
        let slot = self.slots.take(client).ok_or(BUSY)?;
        let receiver = Arc::clone(self);
        let form = gateway.form.clone();
        // The task does not end with the connection, because a stored change must also take effect in this process.
        let task = self.tasks.spawn(async move {
            let answer = receiver.process(&form, &body).await;
            drop(slot);
            answer
        });
        task.await.unwrap_or(Err(FAILED))
    }

    /// Acts on the keys of a report. Tokens that do not have the form of a key are not looked up.
    async fn process(&self, form: &KeyForm, body: &[u8]) -> Result<Bytes, LeakRefusal> {
        let report: Vec<ReportedToken> = serde_json::from_slice(body).map_err(|_| NOT_A_REPORT)?;
        let mut keys = BTreeMap::new();
        for reported in &report {
            if !form.fits(&reported.token) {
                self.leaked.count(LeakOutcome::Foreign);
                continue;
            }
            let digest = Digest::of(&reported.token);
            let shown = shown_prefix(&reported.token);
            keys.entry(digest)
                .or_insert_with(|| LeakedKey {
                    digest,
                    shown: shown.to_owned(),
                    places: BTreeSet::new(),
                })
                .places
                .insert(reported.place(form));
        }
        let keys: Vec<LeakedKey> = keys.into_values().collect();
        let outcomes = self.leaked.act_on(&keys).await.map_err(|error| {
            tracing::error!(%error, "leaked keys could not be looked up or changed");
            FAILED
        })?;
        let labels = report.iter().map(|reported| {
            let outcome = outcomes.get(&Digest::of(&reported.token));
            reported.label(matches!(
                outcome,
                Some(LeakOutcome::Changed | LeakOutcome::Repeated)
            ))
        });
        let labels: Vec<TokenLabel<'_>> = labels.collect();
        serde_json::to_vec(&labels)
            .map(Bytes::from)
            .map_err(|_| FAILED)
    }
}

/// The refusal of a report that could not be read.
const fn unread(failure: BodyFailure) -> LeakRefusal {
    match failure {
        BodyFailure::Broken | BodyFailure::Trailers => NOT_A_REPORT,
        BodyFailure::TooLarge => TOO_LARGE,
        BodyFailure::Slow => SLOW,
        BodyFailure::Busy => BUSY,
    }
}

fn response(
    answered: &Result<Bytes, LeakRefusal>,
    is_head: bool,
    closes: bool,
) -> Response<Full<Bytes>> {
    let (status, body) = match answered {
        Ok(labels) => (StatusCode::OK, labels.clone()),
        Err((status, remedy)) => (*status, json!({"error": remedy}).to_string().into()),
    };
    let mut response = Response::new(Full::new(if is_head { Bytes::new() } else { body.clone() }));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_LENGTH, body.len().into());
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    if matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    ) {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("60"));
    }
    if closes {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
