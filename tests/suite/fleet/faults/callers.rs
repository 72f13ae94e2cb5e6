//! The clients of a run. Each one records its requests.

use std::time::Duration;

use scoregate_base::clock::Wall;

use super::{
    gateways::{CurrentProcess, FaultyFleet, GATEWAYS},
    population::{ApplicationRole, FleetApplication},
    trace::{
        DayLimit, KnownRevocation, RequestNumber, SeenOutcome, SeenRequest, SeenRevocation, UsedUp,
    },
};
use crate::{fleet::*, load_clients::Reply};

/// How long a client waits for a response.
const TIMEOUT: Duration = Duration::from_secs(15);
const REVOKED_PAUSE: Duration = Duration::from_millis(40);
/// Requests after the faults have numbers from here on.
const LAST_REQUESTS: u32 = 1_000_000;
/// Passes over all gateways that may be refused while other gateways return units.
const MAX_REFUSED_PASSES: u32 = 2;

/// A client of one gateway and one application.
struct RecordedClient<'f> {
    fleet: &'f FaultyFleet,
    gateway: usize,
    connection: Option<(u32, Wire)>,
    number: u32,
}

impl<'f> RecordedClient<'f> {
    fn new(fleet: &'f FaultyFleet, gateway: usize, number: u32) -> Self {
        Self {
            fleet,
            gateway,
            connection: None,
            number,
        }
    }

    /// Sends a request and returns its record; `None` if the gateway does not run.
    fn request(&mut self, application: usize, key: &str) -> Option<SeenRequest> {
        let CurrentProcess {
            number: process,
            public,
        } = self.fleet.slots[self.gateway].current();
        let public = public?;
        if self
            .connection
            .as_ref()
            .is_none_or(|(open, _)| *open != process)
        {
            self.connection = Some((process, Wire::open_with_timeout(public, TIMEOUT)?));
        }
        let (_, wire) = self.connection.as_mut()?;
        self.number += 1;
        let id = RequestNumber {
            application,
            gateway: self.gateway,
            number: self.number,
        };
        let sent = self.fleet.now();
        let reply = wire.send(
            TARGET,
            &format!("X-API-Key: {key}\r\nX-Request-Id: {}\r\n", id.text()),
        );
        let done = self.fleet.now();
        let outcome = match &reply {
            Reply::Response { status: 200, .. } => SeenOutcome::Served,
            Reply::Response { .. } => {
                let (status, code) = reply.status_and_code();
                SeenOutcome::Refused(status, code)
            }
            Reply::NoResponse | Reply::Partial => {
                self.connection = None;
                SeenOutcome::Unanswered
            }
        };
        Some(SeenRequest {
            id,
            process,
            sent,
            done,
            outcome,
            limit: day_limit(&reply),
        })
    }
}

/// The daily limit that refused a request, if one did.
fn day_limit(reply: &Reply) -> Option<DayLimit> {
    let Reply::Response {
        status: 429, body, ..
    } = reply
    else {
        return None;
    };
    let body: serde_json::Value = serde_json::from_str(body).ok()?;
    let limit = &body["limit"];
    if limit["name"] != "day" {
        return None;
    }
    let end = Wall::parse_rfc3339(limit["reset_at"].as_str()?)?;
    let last = end.minus(Duration::from_secs(1));
    Some(DayLimit {
        day: last.day().to_string(),
        quota: u32::try_from(limit["quota"].as_u64()?).ok()?,
    })
}

/// Sends requests of an application to one gateway until the run is over.
pub fn call(fleet: &FaultyFleet, application: usize, gateway: usize) {
    let FleetApplication { key, pause, .. } = &fleet.applications[application];
    let mut client = RecordedClient::new(fleet, gateway, 0);
    let mut seen = Vec::new();
    while !fleet.is_over() {
        seen.extend(client.request(application, key));
        std::thread::sleep(Duration::from_millis(*pause));
    }
    fleet.record.lock().unwrap().requests.append(&mut seen);
}

/// Sends requests to one gateway with keys that are revoked during the run, and with keys created after each
/// revocation.
pub fn call_revoked(fleet: &FaultyFleet, gateway: usize) {
    let mut client = RecordedClient::new(fleet, gateway, 0);
    let mut seen = Vec::new();
    let mut known = Vec::<KnownRevocation>::new();
    while !fleet.is_over() {
        let revocable = fleet.applications.iter().enumerate();
        for (number, application) in
            revocable.filter(|(_, one)| one.role == ApplicationRole::Revoked)
        {
            seen.extend(client.request(number, &application.key));
            std::thread::sleep(REVOKED_PAUSE);
        }
        let revocations = fleet.record.lock().unwrap().revocations.clone();
        for SeenRevocation {
            application,
            marker,
            ..
        } in revocations
        {
            let process = fleet.slots[gateway].current().number;
            if known
                .iter()
                .any(|known| (known.application, known.process) == (application, process))
            {
                continue;
            }
            let Some(asked) = client.request(application, &marker) else {
                continue;
            };
            let is_known = match asked.outcome {
                SeenOutcome::Served => true,
                SeenOutcome::Refused(status, _) => status != 401,
                SeenOutcome::Unanswered => false,
            };
            if is_known {
                known.push(KnownRevocation {
                    application,
                    gateway,
                    process: asked.process,
                    since: asked.done,
                });
            }
        }
    }
    let mut record = fleet.record.lock().unwrap();
    record.requests.append(&mut seen);
    record.known.append(&mut known);
}

/// Uses up the daily quota of an application at all gateways, one request after another.
pub fn use_up_day(fleet: &FaultyFleet, application: usize, quota: u32) {
    let key = &fleet.applications[application].key;
    let mut seen = Vec::new();
    let mut refused_at = None;
    let mut refused_passes = 0;
    let mut clients: Vec<_> = (0..GATEWAYS)
        .map(|gateway| RecordedClient::new(fleet, gateway, LAST_REQUESTS))
        .collect();
    let deadline = fleet.now() + 90.0;
    while refused_passes < MAX_REFUSED_PASSES {
        assert!(
            fleet.now() < deadline,
            "application {application} is not used up"
        );
        refused_passes += 1;
        for client in &mut clients {
            loop {
                let request = client.request(application, key).expect("all gateways run");
                let outcome = request.outcome.clone();
                let done = request.done;
                seen.push(request);
                match outcome {
                    SeenOutcome::Served => refused_passes = 0,
                    SeenOutcome::Refused(429, code) if code == "quota_exceeded" => {
                        refused_at.get_or_insert(done);
                        break;
                    }
                    SeenOutcome::Refused(..) | SeenOutcome::Unanswered => {
                        refused_passes = 0;
                        std::thread::sleep(Duration::from_millis(100));
                        break;
                    }
                }
            }
        }
    }
    let mut record = fleet.record.lock().unwrap();
    record.requests.append(&mut seen);
    record.used_up.push(UsedUp {
        application,
        quota,
        refused_at: refused_at.unwrap_or(deadline),
    });
}
