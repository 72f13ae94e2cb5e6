//! Evidence of use with two processes on one file, and with unreadable records.

use scoregate_base::evidence::HourEvidence;

use super::*;
use crate::{EvidenceQuery, HourRecord};

#[tokio::test]
async fn merges_of_two_processes_count_each_hour_once() {
    let (directory, first) = fresh();
    let second = Store::open(directory.path()).unwrap();
    conformance::concurrent_merges_count_each_hour_once([&first, &second]).await;
}

#[tokio::test]
async fn unreadable_records_are_deleted_and_what_is_recorded_later_is_merged() {
    let (directory, store) = fresh();
    let id = created(&store).await;
    let hours = TODAY.number() * 24;
    let record = async |hour| {
        let record = HourRecord {
            application: id,
            evidence: HourEvidence::of(hours + hour),
        };
        store.record_evidence(1, vec![record]).await.unwrap();
    };
    let query = EvidenceQuery {
        application: Some(id),
        first: Day::from_number(0),
        last: TODAY,
    };
    let days = async || store.evidence(query).await.unwrap().len();
    record(0).await;
    edit(&directory, "UPDATE evidence_hours SET record = x'02'");
    assert!(store.merge_evidence(hours + 1, 1, 9).await.unwrap());
    assert!(!store.merge_evidence(hours + 1, 1, 9).await.unwrap());
    assert_eq!(days().await, 0, "the day has no evidence");
    record(1).await;
    assert!(store.merge_evidence(hours + 2, 1, 9).await.unwrap());
    assert_eq!(days().await, 1);
    edit(&directory, "UPDATE evidence_days SET record = x''");
    assert_eq!(days().await, 0);
    assert!(
        store.merge_evidence(hours + 24, 1, 9).await.unwrap(),
        "the day has ended"
    );
    assert!(!store.merge_evidence(hours + 24, 1, 9).await.unwrap());
    record(2).await;
    assert!(store.merge_evidence(hours + 24, 1, 9).await.unwrap());
    assert_eq!(days().await, 1);
}
