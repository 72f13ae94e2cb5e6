//! What each profile plays, and what its figures are held against.
//!
//! Most play a calm stretch first, and tell the other one as a multiple of it: a ratio within one run is worth more than
//! a number from another machine. Not for: how anything is asked (`drive`), nor how it looks (`report`).

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::client::Client;
use super::drive::{Event, Line, drive};
use super::fake::Mood;
use super::house::House;
use super::options::{Options, Profile};
use super::own::{Own, made_key};
use super::plan::{Key, Plan};
use super::record::{Outcome, Record, Tally, shown};
use super::schedule::{Schedule, Stretch};
use super::verdict::{Seen, at, ratio, wrong};

/// How large a run is where nothing is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) rate: f64,
    pub(crate) seconds: f64,
    pub(crate) soak_seconds: f64,
    pub(crate) step_seconds: f64,
    pub(crate) warm_up: f64,
    pub(crate) keys: usize,
    pub(crate) most_steps: usize,
}

/// What all profiles play with.
pub(crate) struct Stage<'s> {
    pub(crate) runtime: &'s Runtime,
    pub(crate) options: &'s Options,
    pub(crate) size: Size,
}

/// Whoever asks beside the usual callers: their name, what they ask, how often, and over how many connections.
struct Beside {
    name: &'static str,
    plan: Arc<Plan>,
    rate: f64,
    connections: usize,
}

const WARM_UP: &str = "warm-up";
const CALM: &str = "calm";
/// A limit is overstepped so many times over.
const ABUSE: f64 = 50.0;
/// Made-up keys come so many times as often as the others.
const FLOOD: f64 = 5.0;
const MADE_UP_KEYS: usize = 500;
/// A hit may take so many times as long while the backend is away or all is refreshed.
const GOAL: f64 = 1.2;
/// Where the p99 is so many times that of the first step, and slower than this, the steps are over.
const BROKEN: u64 = 10;
const SLOW_MICROS: u64 = 20_000;
/// Or where more than this share is not answered as it should be.
const MOST_FAILED: f64 = 0.01;
/// So long before the first request the documents are stored that will be due together.
const FOR_PRIMING: Duration = Duration::from_millis(2_500);

impl Stage<'_> {
    pub(crate) fn play(&self, profile: Profile) -> Result<Seen, String> {
        let house = House::open(self.runtime, self.options, profile, self.size.keys)?;
        if house.own.is_some() && house.fake.is_none() {
            house.prime(self.runtime)?;
        }
        let mut seen = match profile {
            Profile::Steady => self.steady(&house, profile, self.size.seconds),
            Profile::Soak => self.steady(&house, profile, self.size.soak_seconds),
            Profile::Stepped => self.stepped(&house),
            Profile::HourChange | Profile::Outage => self.all_due_at_once(&house, profile),
            Profile::AbusiveKey => self.abusive_key(&house),
            Profile::KeyFlood => self.key_flood(&house),
            Profile::Deploy => self.deploy(&house),
        }?;
        seen.of_whom = house.destination.shown();
        let refused = |tally: &Tally| tally.count(|outcome| matches!(outcome, Outcome::Answered(429, _)));
        let refused: u64 = seen.runs.iter().flat_map(|run| &run.stretches).map(refused).sum();
        if refused > 0 {
            let words = format!(
                "{refused} requests were beyond the limits of their keys: more keys, or a lower rate"
            );
            seen.verdict.push(words);
        }
        Ok(seen)
    }

    fn steady(&self, house: &House, profile: Profile, seconds: f64) -> Result<Seen, String> {
        let word = profile.word();
        let at_first = Mutex::new(None);
        let stretches = self.after_warm_up(vec![Stretch::new(&word, self.rate(), seconds)]);
        let look = Event {
            at: Duration::from_secs_f64(self.size.warm_up),
            what: Box::new(|| *at_first.lock().unwrap() = house.own.as_ref().map(Own::resident)),
        };
        let (run, _) = self.drive(house, house.keys.clone(), stretches, None, Instant::now(), vec![look])?;
        let tally = run.of(&word);
        let mut verdict = vec![format!(
            "p50 {}, p99 {}, p99.9 {} of {} requests at {} a second",
            at(&tally.all, 0.5),
            at(&tally.all, 0.99),
            at(&tally.all, 0.999),
            tally.total(),
            self.rate()
        )];
        let (before, after) = (at_first.into_inner().unwrap(), house.own.as_ref().map(Own::resident));
        if let (Some(before), Some(after)) = (before, after) {
            verdict
                .push(format!("resident memory {before:.1} MiB at the beginning, {after:.1} MiB at the end"));
        }
        Ok(self.seen(profile, vec![run], None, verdict))
    }

    fn stepped(&self, house: &House) -> Result<Seen, String> {
        let given = &self.options.rates;
        let doubling =
            (0..self.size.most_steps).map(|step| self.rate() * 2_f64.powi(i32::try_from(step).unwrap_or(0)));
        let rates: Vec<f64> = if given.is_empty() { doubling.collect() } else { given.clone() };
        let (mut runs, mut verdict): (Vec<Record>, Vec<String>) = (Vec::new(), Vec::new());
        let mut held = None;
        for rate in &rates {
            let stretches = vec![Stretch::new(&format!("{rate}/s"), *rate, self.step_seconds())];
            let stretches = if runs.is_empty() { self.after_warm_up(stretches) } else { stretches };
            let (run, _) =
                self.drive(house, house.keys.clone(), stretches, None, Instant::now(), Vec::new())?;
            let broken = breaks(runs.first().unwrap_or(&run), &run);
            let p99 = p99_at_last(&run);
            runs.push(run);
            if let Some(how) = broken {
                verdict.push(format!("breaks at {rate} a second: {how}"));
                break;
            }
            held = Some((*rate, p99));
        }
        if let Some((rate, p99)) = held {
            verdict.insert(0, format!("held {rate} a second with a p99 of {}", shown(p99)));
        }
        Ok(self.seen(Profile::Stepped, runs, None, verdict))
    }

    /// Every document is due for its refresh in the same second; in an outage the backend is away just then.
    fn all_due_at_once(&self, house: &House, profile: Profile) -> Result<Seen, String> {
        let fake = house.fake.as_ref().ok_or("it takes a backend of ours")?;
        let is_outage = profile == Profile::Outage;
        let (word, parts) = if is_outage { ("outage", 3.0) } else { ("refresh", 2.0) };
        let mut stretches = vec![self.stretch(CALM, parts), self.stretch(word, parts)];
        if is_outage {
            stretches.push(self.stretch("after", parts));
        }
        let stretches = self.after_warm_up(stretches);
        let schedule = Schedule::new(stretches.clone());
        let (begun, at_due) = (Instant::now() + FOR_PRIMING, schedule.begins(word));
        fake.refreshes_at(begun + at_due);
        house.prime(self.runtime)?;
        let (asked, is_late) = (fake.answered(), Instant::now() > begun);
        let part = Duration::from_secs_f64(self.size.seconds / parts);
        let turn = |at: Duration, mood: Mood| Event { at, what: Box::new(move || fake.is(mood)) };
        let events = if is_outage {
            vec![
                turn(at_due, Mood::Hangs),
                turn(at_due + part / 2, Mood::Fails),
                turn(at_due + part, Mood::Works),
            ]
        } else {
            Vec::new()
        };
        let begun = begun.max(Instant::now());
        let (run, _) = self.drive(house, house.keys.clone(), stretches, None, begun, events)?;
        let stale = run.of(word).count(|outcome| matches!(outcome, Outcome::Answered(_, "stale")));
        let mut verdict = vec![ratio("hits", &run.of(CALM).hits, word, &run.of(word).hits, Some(GOAL))];
        if is_outage {
            verdict.push(ratio("hits", &run.of(CALM).hits, "after", &run.of("after").hits, Some(GOAL)));
        }
        verdict.push(format!(
            "{stale} answers were stale and marked so, of {}; the backend gave {} answers meanwhile",
            run.of(word).total(),
            fake.answered() - asked
        ));
        if is_late {
            verdict.push(
                "it took too long to store the documents: they were due before the calm stretch was over"
                    .into(),
            );
        }
        Ok(self.seen(profile, vec![run], None, verdict))
    }

    fn abusive_key(&self, house: &House) -> Result<Seen, String> {
        let mut others = house.keys.clone();
        let abusive = match &house.own {
            Some(own) => own.limited.clone(),
            None => others.remove(0),
        };
        let rate = ABUSE * house.minute_of(self.runtime, &abusive)? / 60.0;
        let plan = house.plan_beside(self.options, vec![abusive], self.options.conditional)?;
        self.beside(house, Profile::AbusiveKey, others, Beside { name: "abuse", plan, rate, connections: 8 })
    }

    fn key_flood(&self, house: &House) -> Result<Seen, String> {
        let made_up = |number: usize| {
            let mut key = made_key("any");
            if number.is_multiple_of(2) {
                key.text.push('x');
            }
            key
        };
        let keys = (0..MADE_UP_KEYS).map(made_up).collect();
        let plan = house.plan_beside(self.options, keys, 0.0)?;
        let beside = Beside { name: "flood", plan, rate: FLOOD * self.rate(), connections: 32 };
        self.beside(house, Profile::KeyFlood, house.keys.clone(), beside)
    }

    /// A calm stretch, and one with somebody beside the usual callers, who are what is looked at.
    fn beside(
        &self,
        house: &House,
        profile: Profile,
        keys: Vec<Key>,
        beside: Beside,
    ) -> Result<Seen, String> {
        let (name, rate) = (beside.name, beside.rate);
        let stretches = self.after_warm_up(vec![self.stretch(CALM, 2.0), self.stretch(name, 2.0)]);
        let (run, other) = self.drive(house, keys, stretches, Some(beside), Instant::now(), Vec::new())?;
        let verdict = vec![
            format!("{name} at {rate:.0} requests a second beside {:.0} of the others", self.rate()),
            ratio("the others", &run.of(CALM).all, name, &run.of(name).all, None),
        ];
        Ok(self.seen(profile, vec![run], other.map(|other| (name, other)), verdict))
    }

    fn deploy(&self, house: &House) -> Result<Seen, String> {
        let own = house.own.as_ref().ok_or("it takes a gateway of ours")?;
        let stretches = self.after_warm_up(vec![self.stretch(CALM, 2.0), self.stretch("hand-over", 2.0)]);
        let took = Mutex::new(Duration::ZERO);
        let at_change = Schedule::new(stretches.clone()).begins("hand-over");
        let change = Event { at: at_change, what: Box::new(|| *took.lock().unwrap() = own.takes_over()) };
        let (run, _) =
            self.drive(house, house.keys.clone(), stretches, None, Instant::now(), vec![change])?;
        let tally = run.of("hand-over");
        let verdict = vec![
            format!(
                "the hand-over took {:.1?}; of {} requests meanwhile {} failed, and the one that waited longest waited {}",
                took.into_inner().unwrap(),
                tally.total(),
                tally.count(|outcome| !outcome.is_delivered()),
                at(&tally.all, 1.0)
            ),
            ratio("all", &run.of(CALM).all, "hand-over", &tally.all, None),
        ];
        Ok(self.seen(Profile::Deploy, vec![run], None, verdict))
    }

    fn drive(
        &self,
        house: &House,
        keys: Vec<Key>,
        stretches: Vec<Stretch>,
        beside: Option<Beside>,
        begun: Instant,
        events: Vec<Event<'_>>,
    ) -> Result<(Record, Option<Record>), String> {
        let schedule = Schedule::new(stretches);
        let client = |connections: usize| {
            let patience = Duration::from_secs_f64(self.options.patience);
            Client::new(house.destination.clone(), connections, usize::from(self.options.streams), patience)
        };
        let plan = house.plan(self.options, keys)?;
        let connections =
            usize::from(self.options.connections.unwrap_or(if self.options.h2 { 4 } else { 64 }));
        let mut lines = vec![Line::new(plan, schedule.clone(), client(connections))];
        if let Some(Beside { name, plan, rate, connections }) = beside {
            // It has a schedule of its own, of the same length: nobody of that kind before.
            let begins = schedule.begins(name);
            let lasts = schedule.lasts().saturating_sub(begins).as_secs_f64();
            let before = Stretch::new("nobody", 0.0, begins.as_secs_f64());
            let other = Schedule::new(vec![before, Stretch::new(name, rate, lasts)]);
            lines.push(Line::new(plan, other, client(connections)));
        }
        let mut records = drive(self.runtime, &lines, begun, events).into_iter();
        Ok((records.next().expect("there is one for each line"), records.next()))
    }

    fn rate(&self) -> f64 {
        self.size.rate
    }

    fn step_seconds(&self) -> f64 {
        self.size.step_seconds
    }

    fn stretch(&self, name: &str, parts: f64) -> Stretch {
        Stretch::new(name, self.rate(), self.size.seconds / parts)
    }

    fn after_warm_up(&self, stretches: Vec<Stretch>) -> Vec<Stretch> {
        let mut all = vec![Stretch::new(WARM_UP, self.rate(), self.size.warm_up)];
        all.extend(stretches);
        all
    }

    fn seen(
        &self,
        profile: Profile,
        runs: Vec<Record>,
        beside: Option<(&'static str, Record)>,
        verdict: Vec<String>,
    ) -> Seen {
        let wrong = wrong(profile, self.options, &runs, beside.as_ref());
        Seen { name: profile.word(), of_whom: String::new(), runs, beside, verdict, wrong }
    }
}

fn p99_at_last(run: &Record) -> u64 {
    run.stretches.last().map_or(0, |tally| tally.all.value_at_quantile(0.99))
}

/// How a step has broken, held against the first one.
fn breaks(first: &Record, run: &Record) -> Option<String> {
    let (first, now) = (p99_at_last(first), p99_at_last(run));
    let failed = run.stretches.last().map_or(0.0, Tally::failed);
    let is_broken = failed > MOST_FAILED || (now > SLOW_MICROS && now > first * BROKEN);
    // So that the server is not blamed for it.
    let late =
        run.complaint().map_or("", |_| "; the client was late too, so it may be the client that broke");
    let how = format!(
        "p99 {}, and {} at first, {:.1} % not answered{late}",
        shown(now),
        shown(first),
        failed * 100.0
    );
    is_broken.then_some(how)
}
