//! Tests of each rule at, above and below its threshold.

use std::{collections::BTreeMap, ops::Range};

use super::*;
use crate::{
    clock::{Day, Wall},
    evidence::{
        day::DayEvidence,
        hour::{HourEvidence, Origin},
        mark::DocumentMark,
    },
};

const DAY_SECONDS: u64 = 86_400;
const CATALOGUE: u16 = 100;

/// The requests of an hour.
#[derive(Clone)]
struct Traffic {
    hour: u16,
    minute: u16,
    models: Range<u16>,
    times: u32,
    networks: Range<u16>,
    products: Range<u16>,
    bytes: u32,
}

fn traffic(hour: u16, models: Range<u16>) -> Traffic {
    Traffic {
        hour,
        minute: 3,
        models,
        times: 1,
        networks: 7..8,
        products: 5..6,
        bytes: 3_000,
    }
}

fn day_of(traffic: &[Traffic], catalogue: u16) -> DayEvidence {
    let mut hours: BTreeMap<u32, HourEvidence> = BTreeMap::new();
    for traffic in traffic {
        let begin = 20_000 * DAY_SECONDS + u64::from(traffic.hour) * 3_600;
        let at = Wall::from_seconds(begin + u64::from(traffic.minute) * 60);
        let number = HourEvidence::hour_of(at);
        let hour = hours
            .entry(number)
            .or_insert_with(|| HourEvidence::of(number));
        for model in traffic.models.clone() {
            // Positions 5 apart, modulo 512, belong to different documents.
            let mark = DocumentMark {
                model: Some(model),
                document: model * 5,
            };
            for _ in 0..traffic.times {
                hour.delivered(mark, traffic.bytes, false, at);
            }
        }
        for network in traffic.networks.clone() {
            for agent in traffic.products.clone() {
                hour.came_from(Origin { network, agent }, at);
            }
        }
    }
    let mut day = DayEvidence::default();
    for hour in hours.values() {
        day.add(hour, catalogue);
    }
    day.compact();
    DayEvidence::decode(&day.encode()).unwrap()
}

/// A caller with these days, one after the other.
fn caller(number: u16, owner: Option<u16>, days: &[DayEvidence]) -> CallerDays {
    CallerDays {
        application: format!("app_{number:011}").parse().unwrap(),
        owner: owner.map(|owner| format!("own_{owner:011}").parse().unwrap()),
        tier: "pro".into(),
        days: (20_000..)
            .map(Day::from_number)
            .zip(days.iter().cloned())
            .collect(),
    }
}

fn steady(number: u16, owner: Option<u16>, hours: &[Traffic]) -> CallerDays {
    caller(number, owner, &vec![day_of(hours, CATALOGUE); 7])
}

/// The findings with the default rules.
fn findings(callers: &[CallerDays]) -> Vec<Finding> {
    judge(callers, &SuspectRules::default())
}

/// Asserts that the same requests on every day of a week raise no suspicion.
fn assert_no_suspicion(hours: &[Traffic]) {
    assert_eq!(findings(&[steady(1, None, hours)]), []);
}

/// The same requests in each hour of a day.
fn hourly(hour: impl Fn(u16) -> Traffic) -> Vec<Traffic> {
    (0..24).map(hour).collect()
}

/// Asserts that the application meets a rule at and above the threshold that `set` sets, but not below it.
fn assert_edge(
    days: &[DayEvidence],
    rule: FiredRule,
    kind: FigureKind,
    set: impl Fn(&mut SuspectRules, f64),
) {
    let callers = [caller(1, None, days)];
    let fired = |finding: &Finding| finding.rule == rule;
    let findings = judge(&callers, &SuspectRules::default());
    let finding = findings.into_iter().find(fired).unwrap();
    let mut figures = finding.figures.iter();
    let value = figures.find(|figure| figure.kind == kind).unwrap().value;
    for (threshold, fires) in [(value, true), (value * 0.99, true), (value * 1.01, false)] {
        let mut rules = SuspectRules::default();
        set(&mut rules, threshold);
        assert_eq!(
            judge(&callers, &rules).iter().any(fired),
            fires,
            "{rule:?} {kind:?}: {value}, threshold {threshold}"
        );
    }
    let few = SuspectRules::default().days - 1;
    let callers = [caller(1, None, &days[..few])];
    assert!(!judge(&callers, &SuspectRules::default()).iter().any(fired));
}

fn whole(number: f64) -> u32 {
    format!("{:.0}", number.ceil()).parse().unwrap()
}

#[test]
fn a_mirror_requests_much_of_the_catalogue_in_several_hours_of_several_days() {
    let hours = [traffic(3, 0..45), traffic(17, 0..60)];
    let days = vec![day_of(&hours, CATALOGUE); 3];
    assert_edge(
        &days,
        FiredRule::EachRefresh,
        FigureKind::HourShare,
        |rules, share| {
            rules.hour_share = share;
        },
    );
    assert_no_suspicion(&hours[..1]);
    let three_tenths = hourly(|hour| traffic(hour, 0..30));
    assert_no_suspicion(&three_tenths);
}

#[test]
fn of_a_small_catalogue_any_client_requests_most() {
    let hours = hourly(|hour| traffic(hour, 0..10));
    let rules = SuspectRules {
        hour_share: 0.1,
        ..SuspectRules::default()
    };
    for (catalogue, is_mirror) in [(10, false), (49, false), (50, true)] {
        let days = vec![day_of(&hours, catalogue); 7];
        let found = judge(&[caller(1, None, &days)], &rules);
        assert_eq!(found.len(), usize::from(is_mirror), "{catalogue}");
        assert!(
            found
                .iter()
                .all(|finding| finding.suspicion == Suspicion::Mirror)
        );
    }
}

#[test]
fn a_slow_mirror_requests_most_of_the_catalogue_in_a_day_and_hardly_a_model_twice() {
    let once: Vec<Traffic> = (0..18)
        .map(|hour| traffic(hour, 5 * hour..5 * hour + 5))
        .collect();
    let days = vec![day_of(&once, CATALOGUE); 3];
    assert_edge(
        &days,
        FiredRule::OverTheDay,
        FigureKind::DayShare,
        |rules, share| rules.day_share = share,
    );
    assert_edge(
        &days,
        FiredRule::OverTheDay,
        FigureKind::Economy,
        |rules, times| rules.economy = times,
    );
    // 90 and 250 views of random models.
    let mut state = 1_u64;
    for views in [90, 250] {
        let viewed = (0..views).map(|view| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let model = u16::try_from((state >> 33) % 100).unwrap();
            traffic(view % 24, model..model + 1)
        });
        assert_no_suspicion(&viewed.collect::<Vec<Traffic>>());
    }
}

#[test]
fn a_shared_key_is_used_from_many_networks_by_many_products_in_one_hour() {
    let shared = Traffic {
        networks: 0..20,
        products: 0..13,
        ..traffic(9, 0..5)
    };
    let days = vec![day_of(std::slice::from_ref(&shared), CATALOGUE); 3];
    let set = |rules: &mut SuspectRules, networks| {
        rules.networks = u8::try_from(whole(networks)).unwrap();
    };
    assert_edge(&days, FiredRule::ManyOrigins, FigureKind::Networks, set);
    let set = |rules: &mut SuspectRules, products| {
        rules.products = u8::try_from(whole(products)).unwrap();
    };
    assert_edge(&days, FiredRule::ManyOrigins, FigureKind::Products, set);
    let jobs = Traffic {
        products: 0..2,
        ..shared.clone()
    };
    let phones = Traffic {
        networks: 0..1,
        hour: 10,
        ..shared
    };
    assert_no_suspicion(&[jobs, phones]);
}

#[test]
fn an_inefficient_poller_receives_the_same_documents_all_the_time() {
    let polls = Traffic {
        times: 600,
        ..traffic(9, 0..2)
    };
    let days = vec![day_of(&[polls], CATALOGUE); 3];
    let set = |rules: &mut SuspectRules, documents| rules.documents = whole(documents);
    assert_edge(&days, FiredRule::Repeats, FigureKind::Documents, set);
    assert_edge(
        &days,
        FiredRule::Repeats,
        FigureKind::Repeated,
        |rules, share| rules.repeated = share,
    );
    let each_five_minutes = hourly(|hour| Traffic {
        times: 12,
        ..traffic(hour, 0..20)
    });
    assert_no_suspicion(&each_five_minutes);
}

/// Hourly requests for one of four parts of the catalogue. The size of the documents differs from part to part.
fn part(number: u16, size: u16) -> Vec<Traffic> {
    let models = number * size..(number + 1) * size;
    let bytes = 3_000 + 100 * u32::from(number);
    hourly(|hour| Traffic {
        bytes,
        ..traffic(hour, models.clone())
    })
}

/// Four applications that each request an equal part of the catalogue, with these owners.
fn parts(size: u16, owner: fn(u16) -> Option<u16>) -> Vec<CallerDays> {
    (0..4)
        .map(|number| steady(number, owner(number), &part(number, size)))
        .collect()
}

#[test]
fn parts_of_the_catalogue_add_up_to_a_mirror_of_several_accounts() {
    for owner in [|_| None, |_| Some(9), |number| Some(number)] {
        let callers = parts(20, owner);
        let findings = findings(&callers);
        let rules = findings.iter().map(|found| (found.suspicion, found.rule));
        assert!(rules.eq([(Suspicion::SeveralAccounts, FiredRule::Together); 4]));
        let others: Vec<_> = callers[1..].iter().map(|other| other.application).collect();
        assert_eq!(
            (&findings[0].application, &findings[0].others),
            (&callers[0].application, &others)
        );
        let share = findings[0].figures[0].value;
        for (threshold, found) in [(share, 4), (share * 0.99, 4), (share * 1.01, 0)] {
            let rules = SuspectRules {
                group_share: threshold,
                ..SuspectRules::default()
            };
            assert_eq!(judge(&callers, &rules).len(), found, "{threshold}");
        }
        let mut callers = callers;
        for caller in &mut callers {
            caller.days.truncate(2);
        }
        assert_eq!(judge(&callers, &SuspectRules::default()), []);
    }
    assert_eq!(findings(&parts(15, |_| Some(9))), []);
}

#[test]
fn keys_in_turn_are_a_group() {
    let of_key = |number: u16| {
        let hours: Vec<Traffic> = (number * 6..number * 6 + 6)
            .map(|hour| traffic(hour, 0..90))
            .collect();
        steady(number, None, &hours)
    };
    let callers: Vec<CallerDays> = (0..4).map(of_key).collect();
    let findings = findings(&callers);
    let together = findings
        .iter()
        .filter(|finding| finding.rule == FiredRule::Together);
    assert_eq!((findings.len(), together.count()), (8, 4));
}

#[test]
fn likeness_alone_is_no_suspicion() {
    let group = |of: &dyn Fn(u16) -> CallerDays| findings(&(0..4).map(of).collect::<Vec<_>>());
    let copy = |number| steady(number, None, &part(0, 29));
    assert_eq!(group(&copy), [], "copies of a dashboard");
    let sizes = [29_u16, 23, 18, 14];
    let customer = |number: u16| {
        let size = sizes[usize::from(number)];
        steady(number, Some(9), &part(number, size))
    };
    assert_eq!(group(&customer), [], "customers of an agency");
    let elsewhere = |number: u16| {
        let mut hours = part(number, 20);
        for hour in &mut hours {
            hour.networks = number..number + 1;
        }
        steady(number, None, &hours)
    };
    assert_eq!(group(&elsewhere), [], "other networks");
}

#[test]
fn customers_of_a_platform_are_a_group_only_if_they_begin_together() {
    let neighbours = (10..12).map(|number| steady(number, None, &[traffic(number, 0..3)]));
    let mut callers = parts(20, |_| None);
    callers.extend(neighbours);
    assert_eq!(findings(&callers), []);
    // Busy clients also begin in the first minutes of each hour, so a match in these minutes proves nothing.
    for (minute, found) in [
        ((|hour| hour % 3) as fn(u16) -> u16, 0),
        (|hour| hour * 7 % 50, 4),
    ] {
        for (number, caller) in (0..).zip(callers.iter_mut().take(4)) {
            let mut hours = part(number, 20);
            for hour in &mut hours {
                hour.minute = minute(hour.hour);
            }
            *caller = steady(number, None, &hours);
        }
        assert_eq!(findings(&callers).len(), found);
    }
}

#[test]
fn a_sentence_has_the_number_the_threshold_and_the_median_of_the_tier() {
    let full = hourly(|hour| traffic(hour, 0..100));
    let mut callers: Vec<CallerDays> = (1..4)
        .map(|number| steady(number, None, &part(0, 5)))
        .collect();
    callers.push(steady(4, None, &full));
    let findings = findings(&callers);
    let sentences: Vec<String> = findings.iter().map(Finding::sentence).collect();
    assert_eq!(
        sentences,
        [
            "The share of the models that it requested in each of several hours was 100 %; the threshold is 40 %; the \
          median pro caller has 4 %. The rule fired on 7 of 7 days; the threshold is 3 days."
        ]
    );
    assert_eq!(
        Suspicion::parse(findings[0].suspicion.word()),
        Some(Suspicion::Mirror)
    );
    for callers in [&[][..], &[caller(1, None, &[DayEvidence::default()])]] {
        assert_eq!(judge(callers, &SuspectRules::default()), []);
    }
}

#[test]
fn advice_needs_enough_requests_and_names_what_they_show() {
    let polls = |times| {
        let hour = traffic(9, 0..2);
        day_of(&[Traffic { times, ..hour }], CATALOGUE)
    };
    assert_eq!(advice(&[polls(499)]), []);
    let repeated = advice(&[polls(600)]);
    assert!(
        matches!(repeated[..], [Advice::SendIfNoneMatch(share)] if share > 0.99),
        "{repeated:?}"
    );
    assert_eq!(
        repeated[0].sentence(),
        "You already had 99 % of the documents that you requested. Send If-None-Match."
    );
    let mut sweep = day_of(&hourly(|hour| traffic(hour, 0..95)), CATALOGUE);
    // The share of refused requests is zero or just below a twentieth.
    for limited in [0, 119] {
        sweep.counts.limited = limited;
        assert_eq!(advice(std::slice::from_ref(&sweep)), []);
    }
    sweep.counts.limited = 200;
    let advised = advice(&[sweep.clone(), sweep]);
    assert_eq!(
        advised,
        [Advice::HeedLimits(400, 2), Advice::SpreadRequests(1.0)]
    );
    let sentences: Vec<String> = advised.into_iter().map(Advice::sentence).collect();
    assert!(
        sentences[0].starts_with("400 requests on 2 days were refused because of a limit."),
        "{sentences:?}"
    );
    assert!(
        sentences[1].starts_with("In 100 % of the hours"),
        "{sentences:?}"
    );
}
