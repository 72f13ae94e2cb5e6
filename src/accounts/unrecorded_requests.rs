//! Requests of one account that were counted but not yet taken by `request_counter`, and the evidence of use in these
//! requests.
//!
//! This is a list, not an array of all endpoints and outcomes, because most applications use only a few, and a million
//! applications must fit into memory. Entries include the day, so a request that was in flight at midnight counts on
//! the day on which it began.

use scoregate_base::{
    clock::{Day, Now, Wall},
    evidence::{DocumentMark, HourEvidence, Origin},
    routes::Route,
};
use scoregate_store::RequestOutcome;

use crate::accounts::usage_counts::{RequestCounts, minute_of};

/// A kind of request. Each kind is counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKind {
    /// The day on which the request began.
    pub day: Day,
    /// The endpoint; `None` for other paths.
    pub endpoint: Option<Route>,
    pub outcome: RequestOutcome,
}

/// A request for a document that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentUse {
    pub mark: DocumentMark,
    /// Size of the body.
    pub bytes: u32,
    pub is_conditional: bool,
    /// Whether the response is a 304.
    pub is_unchanged: bool,
}

/// A request to count.
#[derive(Clone, Copy, Debug)]
pub struct CountedRequest {
    pub kind: RequestKind,
    pub document: Option<DocumentUse>,
    /// Whether the request waited for the backend.
    pub waited: bool,
    /// The time when the request ended.
    pub at: Now,
}

/// Requests of one kind in a minute.
#[derive(Clone, Copy, Debug)]
pub struct KindCount {
    kind: RequestKind,
    minute: u64,
    requests: u32,
    /// Delivered documents that waited for the backend.
    waited: u32,
}

/// Requests since the last recording.
#[derive(Clone, Debug, Default)]
pub struct UnrecordedRequests {
    counts: Vec<KindCount>,
    /// Evidence by hour. There is nearly always only one hour, so the list reserves no space for more.
    evidence: Vec<HourEvidence>,
}

impl UnrecordedRequests {
    /// Counts a request.
    pub fn count(
        &mut self,
        CountedRequest {
            kind,
            document,
            waited,
            at,
        }: CountedRequest,
    ) {
        match (kind.outcome, document) {
            (
                RequestOutcome::Ok,
                Some(DocumentUse {
                    mark,
                    bytes,
                    is_conditional,
                    ..
                }),
            ) => {
                self.evidence(at.wall)
                    .delivered(mark, bytes, is_conditional, at.wall);
            }
            (RequestOutcome::NotModified, Some(DocumentUse { mark, .. })) => {
                self.evidence(at.wall).unchanged(mark, at.wall);
            }
            (RequestOutcome::RateLimited | RequestOutcome::QuotaExceeded, _) => {
                self.evidence(at.wall).limited();
            }
            (
                RequestOutcome::Ok
                | RequestOutcome::NotModified
                | RequestOutcome::ClientError
                | RequestOutcome::ServerError
                | RequestOutcome::Disconnected,
                _,
            ) => {}
        }
        let minute = minute_of(at.mono);
        let waited = u32::from(waited);
        // A linear search is enough, because an application has few kinds of requests in a minute.
        match self
            .counts
            .iter_mut()
            .find(|count| count.kind == kind && count.minute == minute)
        {
            Some(count) => {
                count.requests = count.requests.saturating_add(1);
                count.waited = count.waited.saturating_add(waited);
            }
            None => self.counts.push(KindCount {
                kind,
                minute,
                requests: 1,
                waited,
            }),
        }
    }

    /// Records the origin of a request.
    pub fn came_from(&mut self, origin: Origin, at: Wall) {
        self.evidence(at).came_from(origin, at);
    }

    /// The evidence of an hour.
    #[inline]
    fn evidence(&mut self, at: Wall) -> &mut HourEvidence {
        let hour = HourEvidence::hour_of(at);
        let known = self.evidence.iter().rposition(|known| known.hour() == hour);
        let index = known.unwrap_or_else(|| {
            self.evidence.reserve_exact(1);
            self.evidence.push(HourEvidence::of(hour));
            self.evidence.len() - 1
        });
        self.evidence
            .get_mut(index)
            .expect("the index was found or is the last index")
    }

    /// Whether no request was counted.
    pub const fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Whether the value can be dropped.
    pub const fn is_unused(&self) -> bool {
        self.counts.is_empty() && self.evidence.is_empty()
    }

    /// The requests by kind and minute, and the evidence by hour.
    pub fn into_parts(self) -> (Vec<KindCount>, Vec<HourEvidence>) {
        (self.counts, self.evidence)
    }
}

impl KindCount {
    pub const fn kind(&self) -> RequestKind {
        self.kind
    }

    pub const fn day(&self) -> Day {
        self.kind.day
    }

    pub fn requests(&self) -> u64 {
        u64::from(self.requests)
    }

    /// The counts that operators see, and the minute of the requests.
    pub fn requests_of_minute(&self) -> (RequestCounts, u64) {
        let mut counts = RequestCounts::with_outcome(self.kind.outcome, self.requests());
        if self.kind.endpoint == Some(Route::Me) {
            // `/me` delivers no document.
            counts.delivered = 0;
        }
        if counts.delivered > 0 {
            counts.waited = u64::from(self.waited);
        }
        (counts, self.minute)
    }
}

#[cfg(test)]
mod tests {
    use scoregate_base::clock::Mono;

    use crate::accounts::unrecorded_requests::*;

    #[test]
    fn requests_that_end_around_a_full_hour_add_up_to_two_hours_of_evidence() {
        let mut requests = UnrecordedRequests::default();
        for seconds in [3_599, 3_601, 3_598, 3_602, 3_599] {
            let at = Now {
                wall: Wall::from_seconds(seconds),
                mono: Mono::default(),
            };
            let kind = RequestKind {
                day: at.wall.day(),
                endpoint: None,
                outcome: RequestOutcome::Ok,
            };
            let mark = DocumentMark {
                model: None,
                document: 1,
            };
            let document = Some(DocumentUse {
                mark,
                bytes: 10,
                is_conditional: false,
                is_unchanged: false,
            });
            requests.count(CountedRequest {
                kind,
                document,
                waited: false,
                at,
            });
        }
        let (_, evidence) = requests.into_parts();
        let hours: Vec<_> = evidence
            .iter()
            .map(|hour| (hour.hour(), hour.counts().delivered))
            .collect();
        assert_eq!(hours, [(0, 3), (1, 2)]);
    }
}
