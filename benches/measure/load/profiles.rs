//! The load profiles and their figures.
//!
//! Most run a baseline phase first and report the other phase as a multiple of it: a ratio within one run is comparable
//! between machines.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use super::{
    client::Client,
    drive::{Event, Line, drive},
    fake_backend::Behaviour,
    gateway_under_test::GatewayUnderTest,
    options::Profile,
    own_gateway::made_key,
    plan::Plan,
    record::{LatencyStats, Outcome, Record, shown},
    schedule::{Phase, Schedule},
    verdict::{ProfileReport, at, ratio, wrong},
};

/// The default size of a run.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub rate: f64,
    pub seconds: f64,
    pub soak_seconds: f64,
    pub step_seconds: f64,
    pub warm_up: f64,
    pub keys: usize,
    pub most_steps: usize,
}

/// The inputs of all profiles.
pub struct ProfileRunner {
    pub size: Size,
}

/// Traffic beside the normal one, on connections of its own.
struct ConcurrentLoad {
    name: &'static str,
    plan: Arc<Plan>,
    rate: f64,
    connections: usize,
}

const WARM_UP: &str = "warm-up";
const BASELINE: &str = "baseline";
/// The abusive key's requests per second: fifty times its limit.
const ABUSE: f64 = 50.0;
/// The rate of unknown keys, as a multiple of the normal rate.
const FLOOD: f64 = 5.0;
const MADE_UP_KEYS: usize = 500;
/// Target ratio of hit latency while the backend fails or all documents are refreshed.
const GOAL: f64 = 1.2;
const CONNECTIONS: usize = 64;
/// `stepped` ends where the p99 is this multiple of the first step's and above this latency,
const BROKEN: u64 = 10;
const SLOW_MICROS: u64 = 20_000;
/// or where more than this share of requests fails.
const MAX_FAILED_SHARE: f64 = 0.01;
/// Time before the first request at which the documents are stored that become due together.
const PRIMING_TIME: Duration = Duration::from_millis(2_500);

impl ProfileRunner {
    pub fn play(&self, profile: Profile) -> ProfileReport {
        let gateway = GatewayUnderTest::start(profile, self.size.keys);
        if gateway.fake.is_none() {
            gateway.prime();
        }
        let mut report = match profile {
            Profile::Steady => self.steady(&gateway, profile, self.size.seconds),
            Profile::Soak => self.steady(&gateway, profile, self.size.soak_seconds),
            Profile::Stepped => self.stepped(&gateway),
            Profile::HourChange | Profile::Outage => self.all_due_at_once(&gateway, profile),
            Profile::AbusiveKey => self.abusive_key(&gateway),
            Profile::KeyFlood => self.key_flood(&gateway),
            Profile::Deploy => self.deploy(&gateway),
        };
        let refused = |stats: &LatencyStats| {
            stats.count(|outcome| matches!(outcome, Outcome::Answered(429, _)))
        };
        let refused: u64 = report
            .runs
            .iter()
            .flat_map(|run| &run.phases)
            .map(refused)
            .sum();
        if refused > 0 {
            let words =
                format!("{refused} requests were rate-limited: use more keys or a lower rate");
            report.verdict.push(words);
        }
        report
    }

    fn steady(&self, gateway: &GatewayUnderTest, profile: Profile, seconds: f64) -> ProfileReport {
        let word = profile.word();
        let at_first = Mutex::new(0.0);
        let phases = self.after_warm_up(vec![Phase::new(&word, self.rate(), seconds)]);
        let look = Event {
            at: Duration::from_secs_f64(self.size.warm_up),
            what: Box::new(|| {
                *at_first.lock().unwrap() = gateway.own.resident();
            }),
        };
        let (run, _) = Self::drive(gateway, phases, None, Instant::now(), vec![look]);
        let stats = run.of(&word);
        let mut verdict = vec![format!(
            "p50 {}, p99 {}, p99.9 {} of {} requests at {}/s",
            at(&stats.all, 0.5),
            at(&stats.all, 0.99),
            at(&stats.all, 0.999),
            stats.total(),
            self.rate()
        )];
        verdict.push(format!(
            "resident memory {:.1} MiB before, {:.1} MiB after",
            at_first.into_inner().unwrap(),
            gateway.own.resident()
        ));
        report(profile, vec![run], None, verdict)
    }

    fn stepped(&self, gateway: &GatewayUnderTest) -> ProfileReport {
        let rates: Vec<f64> = (0..self.size.most_steps)
            .map(|step| self.rate() * 2_f64.powi(i32::try_from(step).unwrap_or(0)))
            .collect();
        let (mut runs, mut verdict): (Vec<Record>, Vec<String>) = (Vec::new(), Vec::new());
        let mut held = None;
        for rate in &rates {
            let phases = vec![Phase::new(&format!("{rate}/s"), *rate, self.step_seconds())];
            let phases = if runs.is_empty() {
                self.after_warm_up(phases)
            } else {
                phases
            };
            let (run, _) = Self::drive(gateway, phases, None, Instant::now(), Vec::new());
            let broken = breaks(runs.first().unwrap_or(&run), &run);
            let p99 = p99_at_last(&run);
            runs.push(run);
            if let Some(how) = broken {
                verdict.push(format!("degrades at {rate}/s: {how}"));
                break;
            }
            held = Some((*rate, p99));
        }
        if let Some((rate, p99)) = held {
            verdict.insert(
                0,
                format!("sustained {rate}/s with a p99 of {}", shown(p99)),
            );
        }
        report(Profile::Stepped, runs, None, verdict)
    }

    /// All documents become due for a refresh in the same second; in an outage the backend fails then.
    fn all_due_at_once(&self, gateway: &GatewayUnderTest, profile: Profile) -> ProfileReport {
        let fake = gateway.fake.as_ref().expect("the profile has a backend");
        let is_outage = profile == Profile::Outage;
        let (word, parts) = if is_outage {
            ("outage", 3.0)
        } else {
            ("refresh", 2.0)
        };
        let mut phases = vec![self.phase(BASELINE, parts), self.phase(word, parts)];
        if is_outage {
            phases.push(self.phase("after", parts));
        }
        let phases = self.after_warm_up(phases);
        let schedule = Schedule::new(phases.clone());
        let begun = Instant::now() + PRIMING_TIME;
        let at_due = schedule.begins(word);
        fake.refreshes_at(begun + at_due);
        gateway.prime();
        let asked = fake.answered();
        let is_late = Instant::now() > begun;
        let part = Duration::from_secs_f64(self.size.seconds / parts);
        let turn = |at: Duration, behaviour: Behaviour| Event {
            at,
            what: Box::new(move || fake.is(behaviour)),
        };
        let events = if is_outage {
            vec![
                turn(at_due, Behaviour::Hangs),
                turn(at_due + part / 2, Behaviour::Fails),
                turn(at_due + part, Behaviour::Works),
            ]
        } else {
            Vec::new()
        };
        let begun = begun.max(Instant::now());
        let (run, _) = Self::drive(gateway, phases, None, begun, events);
        let stale = run
            .of(word)
            .count(|outcome| matches!(outcome, Outcome::Answered(_, "stale")));
        let mut verdict = vec![ratio(
            "hits",
            &run.of(BASELINE).hits,
            word,
            &run.of(word).hits,
            Some(GOAL),
        )];
        if is_outage {
            verdict.push(ratio(
                "hits",
                &run.of(BASELINE).hits,
                "after",
                &run.of("after").hits,
                Some(GOAL),
            ));
        }
        verdict.push(format!(
            "{stale} of {} responses were stale and marked stale; the backend sent {} responses meanwhile",
            run.of(word).total(),
            fake.answered() - asked
        ));
        if is_late {
            verdict.push(
                "storing the documents took too long: they became due during the baseline phase"
                    .into(),
            );
        }
        report(profile, vec![run], None, verdict)
    }

    fn abusive_key(&self, gateway: &GatewayUnderTest) -> ProfileReport {
        let plan = gateway.plan_of(vec![gateway.own.limited.clone()], 0.0);
        let abuse = ConcurrentLoad {
            name: "abuse",
            plan,
            rate: ABUSE,
            connections: 8,
        };
        self.beside(gateway, Profile::AbusiveKey, abuse)
    }

    fn key_flood(&self, gateway: &GatewayUnderTest) -> ProfileReport {
        let made_up = |number: usize| {
            let mut key = made_key("any");
            if number.is_multiple_of(2) {
                key.text.push('x');
            }
            key
        };
        let keys = (0..MADE_UP_KEYS).map(made_up).collect();
        let plan = gateway.plan_of(keys, 0.0);
        let beside = ConcurrentLoad {
            name: "flood",
            plan,
            rate: FLOOD * self.rate(),
            connections: 32,
        };
        self.beside(gateway, Profile::KeyFlood, beside)
    }

    /// A baseline phase, then a phase with other traffic beside the normal one; normal traffic is measured.
    fn beside(
        &self,
        gateway: &GatewayUnderTest,
        profile: Profile,
        beside: ConcurrentLoad,
    ) -> ProfileReport {
        let name = beside.name;
        let rate = beside.rate;
        let phases = self.after_warm_up(vec![self.phase(BASELINE, 2.0), self.phase(name, 2.0)]);
        let (run, other) = Self::drive(gateway, phases, Some(beside), Instant::now(), Vec::new());
        let verdict = vec![
            format!(
                "{name} at {rate:.0}/s beside {:.0}/s of normal traffic",
                self.rate()
            ),
            ratio(
                "normal traffic",
                &run.of(BASELINE).all,
                name,
                &run.of(name).all,
                None,
            ),
        ];
        report(
            profile,
            vec![run],
            other.map(|other| (name, other)),
            verdict,
        )
    }

    fn deploy(&self, gateway: &GatewayUnderTest) -> ProfileReport {
        let phases = self.after_warm_up(vec![
            self.phase(BASELINE, 2.0),
            self.phase("hand-over", 2.0),
        ]);
        let took = Mutex::new(Duration::ZERO);
        let at_change = Schedule::new(phases.clone()).begins("hand-over");
        let change = Event {
            at: at_change,
            what: Box::new(|| *took.lock().unwrap() = gateway.own.takes_over()),
        };
        let (run, _) = Self::drive(gateway, phases, None, Instant::now(), vec![change]);
        let stats = run.of("hand-over");
        let verdict = vec![
            format!(
                "hand-over in {:.1?}; {} requests meanwhile, {} failed, maximum latency {}",
                took.into_inner().unwrap(),
                stats.total(),
                stats.count(|outcome| !outcome.is_delivered()),
                at(&stats.all, 1.0)
            ),
            ratio("all", &run.of(BASELINE).all, "hand-over", &stats.all, None),
        ];
        report(Profile::Deploy, vec![run], None, verdict)
    }

    fn drive(
        gateway: &GatewayUnderTest,
        phases: Vec<Phase>,
        beside: Option<ConcurrentLoad>,
        begun: Instant,
        events: Vec<Event<'_>>,
    ) -> (Record, Option<Record>) {
        let schedule = Schedule::new(phases);
        let client = Client::new(gateway.own.address());
        let mut lines = vec![Line::new(
            gateway.plan(),
            schedule.clone(),
            client.clone(),
            CONNECTIONS,
        )];
        if let Some(ConcurrentLoad {
            name,
            plan,
            rate,
            connections,
        }) = beside
        {
            // A schedule of the same length, without requests in the baseline phase.
            let begins = schedule.begins(name);
            let lasts = schedule.lasts().saturating_sub(begins).as_secs_f64();
            let before = Phase::new("nobody", 0.0, begins.as_secs_f64());
            let other = Schedule::new(vec![before, Phase::new(name, rate, lasts)]);
            lines.push(Line::new(plan, other, client, connections));
        }
        let mut records = drive(lines, begun, events).into_iter();
        (
            records.next().expect("there is one for each line"),
            records.next(),
        )
    }

    fn rate(&self) -> f64 {
        self.size.rate
    }

    fn step_seconds(&self) -> f64 {
        self.size.step_seconds
    }

    fn phase(&self, name: &str, parts: f64) -> Phase {
        Phase::new(name, self.rate(), self.size.seconds / parts)
    }

    fn after_warm_up(&self, phases: Vec<Phase>) -> Vec<Phase> {
        let mut all = vec![Phase::new(WARM_UP, self.rate(), self.size.warm_up)];
        all.extend(phases);
        all
    }
}

fn report(
    profile: Profile,
    runs: Vec<Record>,
    beside: Option<(&'static str, Record)>,
    verdict: Vec<String>,
) -> ProfileReport {
    let wrong = wrong(profile, &runs, beside.as_ref());
    ProfileReport {
        name: profile.word(),
        runs,
        beside,
        verdict,
        wrong,
    }
}

fn p99_at_last(run: &Record) -> u64 {
    run.phases
        .last()
        .map_or(0, |stats| stats.all.value_at_quantile(0.99))
}

/// The reason why a step counts as degraded, compared with the first one.
fn breaks(first: &Record, run: &Record) -> Option<String> {
    let first = p99_at_last(first);
    let now = p99_at_last(run);
    let failed = run.phases.last().map_or(0.0, LatencyStats::failed);
    let is_broken = failed > MAX_FAILED_SHARE || (now > SLOW_MICROS && now > first * BROKEN);
    // The client's own delay is not the server's.
    let late = run.warning().map_or(
        "",
        |_| "; the client was late as well and may be the bottleneck",
    );
    let how = format!(
        "p99 {} ({} in the first step), {:.1} % failed{late}",
        shown(now),
        shown(first),
        failed * 100.0
    );
    is_broken.then_some(how)
}
