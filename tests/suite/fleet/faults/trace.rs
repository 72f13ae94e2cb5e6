//! The record of a run under faults: requests of clients, charged units of access logs, faults and changes.
//!
//! Times are seconds since the start of the run.

use std::collections::{BTreeMap, HashMap};

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenOutcome {
    /// A complete 200.
    Served,
    /// Another complete response, with its status and code.
    Refused(u16, String),
    /// No complete response: it may have been charged.
    Unanswered,
}

/// A request of a client. It was admitted or refused between `sent` and `done`.
#[derive(Clone, Debug)]
pub struct SeenRequest {
    pub id: RequestNumber,
    /// The process of the gateway, counted from its first start.
    pub process: u32,
    pub sent: f64,
    pub done: f64,
    pub outcome: SeenOutcome,
    /// The daily limit that refused the request.
    pub limit: Option<DayLimit>,
}

/// A day and its limit, as stated by a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayLimit {
    pub day: String,
    pub quota: u32,
}

/// The id of a request, which the access log repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestNumber {
    pub application: usize,
    pub gateway: usize,
    pub number: u32,
}

/// The limits of an application: the largest ones of the run.
#[derive(Clone, Copy, Debug)]
pub struct AllowedUse {
    pub minute: u32,
    pub day: u32,
    pub is_paid: bool,
}

/// A fault and its duration.
#[derive(Clone, Debug)]
pub struct FaultWindow {
    /// The affected gateway; `None` for all.
    pub gateway: Option<usize>,
    pub from: f64,
    pub until: f64,
    /// Whether the fault can make the database unreachable.
    pub hides_database: bool,
    pub what: String,
}

/// The keys of an application were revoked at some time before `at`.
#[derive(Clone, Debug)]
pub struct SeenRevocation {
    pub application: usize,
    pub at: f64,
    /// A key that was created after the revocation.
    pub marker: String,
}

/// A gateway process knew a revocation's marker, and therefore the revocation.
#[derive(Clone, Copy, Debug)]
pub struct KnownRevocation {
    pub application: usize,
    pub gateway: usize,
    pub process: u32,
    pub since: f64,
}

/// A gateway was stopped within this time and could not return its leased units.
#[derive(Clone, Copy, Debug)]
pub struct KeptUnits {
    pub gateway: usize,
    pub from: f64,
    pub until: f64,
}

/// A change to a quota, which took effect between these times.
#[derive(Clone, Copy, Debug)]
pub struct QuotaChange {
    pub application: usize,
    pub quota: u32,
    pub from: f64,
    pub until: f64,
}

/// The end of a daily quota that was used up after all faults.
#[derive(Clone, Copy, Debug)]
pub struct UsedUp {
    pub application: usize,
    /// The quota in force.
    pub quota: u32,
    /// Time of the first refusal.
    pub refused_at: f64,
}

#[derive(Debug, Default)]
pub struct Trace {
    pub applications: Vec<AllowedUse>,
    pub requests: Vec<SeenRequest>,
    /// The charged day of each request in an access log.
    pub days: HashMap<RequestNumber, String>,
    pub faults: Vec<FaultWindow>,
    /// Kills of gateways.
    pub kills: u32,
    pub kept_units: Vec<KeptUnits>,
    /// Times at which the database's clock was set ahead.
    pub set_ahead: Vec<f64>,
    pub revocations: Vec<SeenRevocation>,
    pub known: Vec<KnownRevocation>,
    pub used_up: Vec<UsedUp>,
    /// Changes in order, beginning with the first quota of each application whose quota changes.
    pub quota_changes: Vec<QuotaChange>,
    /// The last day.
    pub today: String,
}

impl RequestNumber {
    pub fn text(self) -> String {
        format!(
            "fault-{}-{}-{}",
            self.application, self.gateway, self.number
        )
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix("fault-")?.split('-');
        let application = parts.next()?.parse().ok()?;
        let gateway = parts.next()?.parse().ok()?;
        Some(Self {
            application,
            gateway,
            number: parts.next()?.parse().ok()?,
        })
    }
}

impl Trace {
    /// Reads the charged units of an access log.
    pub fn read_log(&mut self, log: &str) {
        for line in log.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
            let request = line["request_id"].as_str().and_then(RequestNumber::parse);
            if let (Some(request), Some(day)) = (request, line["day"].as_str()) {
                self.days.insert(request, day.to_owned());
            }
        }
    }

    /// Charged units of each application and day, from access logs and from 200s whose line was lost with a killed
    /// gateway. The second value is the number of 200s around midnight whose day is unknown.
    pub fn charged(&self) -> (BTreeMap<(usize, &str), u32>, u32) {
        let mut units = BTreeMap::new();
        for (request, day) in &self.days {
            *units
                .entry((request.application, day.as_str()))
                .or_insert(0) += 1;
        }
        let mut unknown = 0;
        for lost in self.requests.iter().filter(|request| self.is_lost(request)) {
            match self.day_around(lost) {
                Some(day) => *units.entry((lost.id.application, day)).or_insert(0) += 1,
                None => unknown += 1,
            }
        }
        (units, unknown)
    }

    /// Whether a 200 is in no access log.
    fn is_lost(&self, request: &SeenRequest) -> bool {
        request.outcome == SeenOutcome::Served && !self.days.contains_key(&request.id)
    }

    /// The day to which a request was charged, or whose quota refused it. For a 200 that is in no access log, the day
    /// is a guess.
    pub fn day_of<'t>(&'t self, request: &'t SeenRequest) -> Option<&'t str> {
        if let Some(DayLimit { day, .. }) = &request.limit {
            return Some(day);
        }
        let logged = self.days.get(&request.id).map(String::as_str);
        let around = || self.day_around(request);
        logged.or_else(|| self.is_lost(request).then(around).flatten())
    }

    /// The day of all logged requests at about the same time.
    fn day_around(&self, request: &SeenRequest) -> Option<&str> {
        let is_near = |other: &&SeenRequest| {
            other.sent < request.done + 10.0 && other.done > request.sent - 10.0
        };
        let mut days = self
            .requests
            .iter()
            .filter(is_near)
            .filter_map(|other| self.days.get(&other.id));
        let first = days.next()?;
        days.all(|day| day == first).then_some(first)
    }

    /// Number of requests that may have been charged and are not counted.
    pub fn unconfirmed(&self, application: usize) -> u32 {
        let is_unconfirmed = |request: &&SeenRequest| {
            request.id.application == application
                && request.outcome == SeenOutcome::Unanswered
                && !self.days.contains_key(&request.id)
        };
        u32::try_from(self.requests.iter().filter(is_unconfirmed).count()).unwrap()
    }
}
