//! Conformance checks of evidence of use.

use futures_util::future::join_all;
use scoregate_base::evidence::{DayEvidence, DocumentMark, HourEvidence, Origin};

use super::*;

const TODAY: Day = Day::from_number(20_413); // 2025-11-21, the day of `NOON`
/// Number of catalogue positions.
const CATALOGUE: u16 = 200;

const fn start_of(day: Day) -> u32 {
    day.number() * 24
}

/// An hour of a day in which each of these models was requested once, from a network with the number of the first
/// model.
fn hour(day: Day, hour: u32, models: std::ops::Range<u16>) -> HourEvidence {
    let at = day.start().plus(hour * HOUR);
    let mut evidence = HourEvidence::of(HourEvidence::hour_of(at));
    evidence.came_from(
        Origin {
            network: models.start,
            agent: 1,
        },
        at,
    );
    for model in models {
        evidence.delivered(
            DocumentMark {
                model: Some(model),
                document: model,
            },
            1_000,
            false,
            at,
        );
    }
    evidence
}

async fn record(store: &Store, node: u64, application: ApplicationId, evidence: HourEvidence) {
    store
        .record_evidence(
            node,
            vec![HourRecord {
                application,
                evidence,
            }],
        )
        .await
        .unwrap();
}

/// Merges all hours before `until`, a few at a time.
async fn merge(store: &Store, until: u32) {
    while store.merge_evidence(until, CATALOGUE, 2).await.unwrap() {}
}

async fn days(store: &Store, application: Option<ApplicationId>, days: [Day; 2]) -> Vec<DayRecord> {
    let [first, last] = days;
    store
        .evidence(EvidenceQuery {
            application,
            first,
            last,
        })
        .await
        .unwrap()
}

async fn today(store: &Store, application: ApplicationId) -> DayEvidence {
    let [record] = &days(store, Some(application), [TODAY; 2]).await[..] else {
        panic!("one day")
    };
    assert_eq!((record.application, record.day), (application, TODAY));
    record.evidence.clone()
}

pub async fn hours_of_two_nodes_become_one_day_and_a_second_merge_changes_nothing(store: &Store) {
    let one = an_id();
    let other = an_id();
    let now = start_of(TODAY) + 5;
    store.record_evidence(1, Vec::new()).await.unwrap();
    record(store, 1, one, hour(TODAY, 3, 0..10)).await;
    record(store, 1, one, hour(TODAY, 3, 0..60)).await;
    record(store, u64::MAX, one, hour(TODAY, 3, 40..100)).await;
    record(store, 1, one, hour(TODAY, 4, 90..120)).await;
    record(store, 1, one, hour(TODAY, 5, 120..130)).await;
    record(store, 1, other, hour(TODAY, 4, 0..7)).await;
    let mut merged = hour(TODAY, 3, 0..60);
    merged.add(&hour(TODAY, 3, 40..100));
    let mut expected = DayEvidence::default();
    expected.add(&merged, CATALOGUE);
    expected.add(&hour(TODAY, 4, 90..120), CATALOGUE);
    for _ in 0..2 {
        merge(store, now).await;
        assert_eq!(today(store, one).await, expected);
        assert_eq!(today(store, other).await.models, 7);
    }
    assert_eq!(
        (
            expected.models,
            expected.counts.delivered,
            expected.networks.count()
        ),
        (120, 150, 3)
    );
    merge(store, now + 1).await;
    expected.add(&hour(TODAY, 5, 120..130), CATALOGUE);
    assert_eq!(today(store, one).await, expected);
}

pub async fn a_late_hour_is_added_and_a_day_is_compact_once_it_ended(store: &Store) {
    let one = an_id();
    let silent = an_id();
    let tomorrow = start_of(TODAY.next());
    record(store, 1, one, hour(TODAY, 3, 0..60)).await;
    record(store, 1, silent, hour(TODAY, 3, 0..60)).await;
    merge(store, tomorrow - 1).await;
    record(store, 2, one, hour(TODAY, 3, 40..100)).await;
    merge(store, tomorrow - 1).await;
    let mut expected = DayEvidence::default();
    expected.add(&hour(TODAY, 3, 0..60), CATALOGUE);
    expected.add(&hour(TODAY, 3, 40..100), CATALOGUE);
    assert_eq!(today(store, one).await, expected);
    merge(store, tomorrow).await;
    assert!(
        today(store, silent).await.is_compact(),
        "it had no later hour"
    );
    record(store, 3, one, hour(TODAY, 23, 0..150)).await;
    merge(store, tomorrow).await;
    expected.compact();
    expected.add(&hour(TODAY, 23, 0..150), CATALOGUE);
    assert_eq!(today(store, one).await, expected);
    assert_eq!((expected.models, expected.counts.delivered), (150, 270));
}

pub async fn the_key_of_a_day_is_that_of_the_first_gateway(store: &Store) {
    let keys = join_all((1..=8).map(|proposed| store.sketch_key(TODAY, u64::MAX - proposed))).await;
    let keys: Vec<u64> = keys.into_iter().collect::<Result<_, _>>().unwrap();
    assert!(
        keys.iter().all(|key| *key == keys[0]) && keys[0] >= u64::MAX - 8,
        "{keys:?}"
    );
    assert_eq!(store.sketch_key(TODAY.next(), 7).await.unwrap(), 7);
    assert_eq!(store.sketch_key(TODAY, 7).await.unwrap(), keys[0]);
}

pub async fn days_are_read_by_application_and_range_oldest_first(store: &Store) {
    let mut ids = [an_id(), an_id()];
    ids.sort();
    for (id, ago) in [
        (ids[1], 0),
        (ids[0], 0),
        (ids[0], 2),
        (ids[1], 3),
        (ids[0], 40),
        (ids[0], 41),
    ] {
        record(store, 1, id, hour(before(ago), 3, 0..5)).await;
    }
    merge(store, u32::MAX).await;
    let found = async |application, range| -> Vec<(u32, usize)> {
        let place = |record: DayRecord| {
            let ago = TODAY.number() - record.day.number();
            (
                ago,
                ids.iter().position(|id| *id == record.application).unwrap(),
            )
        };
        days(store, application, range)
            .await
            .into_iter()
            .map(place)
            .collect()
    };
    assert_eq!(
        found(None, [before(3), TODAY]).await,
        [(3, 1), (2, 0), (0, 0), (0, 1)]
    );
    assert_eq!(found(None, [before(2), before(1)]).await, [(2, 0)]);
    assert_eq!(
        found(Some(ids[0]), [before(3), TODAY]).await,
        [(2, 0), (0, 0)]
    );
    assert_eq!(found(Some(ids[1]), [before(2), before(1)]).await, []);
    assert_eq!(
        found(Some(ids[0]), [TODAY, before(1)]).await,
        [],
        "the last day is before"
    );
    let since_1970 = [Day::from_number(0), TODAY];
    assert_eq!(
        found(Some(ids[0]), since_1970).await,
        [(40, 0), (2, 0), (0, 0)],
        "more is never kept"
    );
    assert_eq!(found(Some(an_id()), since_1970).await, []);
}

pub async fn evidence_is_kept_for_40_days_its_keys_for_two_and_unmerged_hours_for_three(
    store: &Store,
) {
    let id = an_id();
    for ago in [41, 40] {
        record(store, 1, id, hour(before(ago), 3, 0..5)).await;
    }
    merge(store, u32::MAX).await;
    for (ago, from) in [(4, 23), (3, 0)] {
        record(store, 1, id, hour(before(ago), from, 0..5)).await;
    }
    for ago in [3, 2] {
        store.sketch_key(before(ago), 1).await.unwrap();
    }
    open_day(store, TODAY).await;
    delete_outdated(store).await;
    merge(store, u32::MAX).await;
    let kept = days(store, None, [Day::from_number(0), TODAY]).await;
    assert_eq!(
        kept.iter().map(|record| record.day).collect::<Vec<_>>(),
        [before(40), before(3)]
    );
    assert_eq!(
        store.sketch_key(before(3), 2).await.unwrap(),
        2,
        "the key was deleted"
    );
    assert_eq!(store.sketch_key(before(2), 2).await.unwrap(), 1);
}

/// While one gateway merges, the other one records and merges an earlier hour.
pub async fn concurrent_merges_count_each_hour_once(stores: [&Store; 2]) {
    let ids: Vec<ApplicationId> = (0..300).map(|_| an_id()).collect();
    let few = &ids[..5];
    let start = start_of(TODAY);
    let both = tokio::sync::Barrier::new(2);
    let record = async |node: usize, of: u32, ids: &[ApplicationId]| {
        let record = |id: &ApplicationId| HourRecord {
            application: *id,
            evidence: hour(TODAY, of, 0..3),
        };
        stores[node]
            .record_evidence(node as u64, ids.iter().map(record).collect())
            .await
            .unwrap();
    };
    let merge_before = async |node: usize, until: u32| {
        stores[node]
            .merge_evidence(start + until, CATALOGUE, 400)
            .await
            .unwrap();
    };
    for round in 0..12 {
        let usual = async {
            record(0, 2 * round + 1, &ids).await;
            both.wait().await;
            merge_before(0, 2 * round + 2).await;
        };
        let late = async {
            both.wait().await;
            record(1, 2 * round, few).await;
            merge_before(1, 2 * round + 1).await;
        };
        tokio::join!(usual, late);
    }
    merge(stores[0], start + 24).await;
    let found = days(stores[0], None, [TODAY; 2]).await;
    assert_eq!(found.len(), ids.len());
    for DayRecord {
        application,
        evidence,
        ..
    } in found
    {
        let models = if few.contains(&application) {
            [3, 3]
        } else {
            [0, 3]
        };
        let counted = evidence.hours.map(|hour| hour.models);
        let expected = models.repeat(12);
        let delivered = u32::from(expected.iter().sum::<u16>());
        assert_eq!(
            (&counted[..], evidence.counts.delivered),
            (&expected[..], delivered),
            "{application}"
        );
    }
}
