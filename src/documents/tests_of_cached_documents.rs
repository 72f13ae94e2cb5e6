//! Tests that expired documents are removed.

use super::*;
use crate::{
    cache::{DocumentContent, StaleWindows, Validators},
    documents::Lifetime,
};
use scoregate_base::plans::FieldSets;

const HOUR: Duration = Duration::from_hours(1);

fn outdated_document(clock: &Clock) -> (Documents, DocumentKey) {
    let windows = StaleWindows {
        while_revalidate: Duration::ZERO,
        if_error: HOUR,
    };
    let retention = Retention {
        lifetime: Lifetime { windows, ttl: None },
        by_endpoint: Vec::new(),
        endpoints: EndpointTable::default(),
        cadence: HOUR,
        fetch_timeout: HOUR,
        probing: true,
        polls_when_idle: false,
        license: String::new(),
        field_sets: FieldSets::default(),
        tool_result: None,
    };
    let documents = Documents::new(
        1 << 20,
        retention,
        Arc::new(ChangedKeys::new(false)),
        clock.clone(),
    );
    let key = DocumentKey::list_of_models();
    let now = clock.now();
    let content = DocumentContent {
        data: "[]".into(),
        count: 0,
        generated_at: now.wall,
        stated_at: None,
        source: Validators::default(),
    };
    let label = documents.retention();
    let document = Document::with_dates(content, &label.label(&key), [now.wall; 4], None).unwrap();
    let due = now.mono.plus(10 * HOUR);
    documents.put(
        key.clone(),
        Arc::new(StoredDocument::restored(document, [due, due, now.mono], 0)),
    );
    documents
        .schedule()
        .record_refresh(now.mono.plus(Duration::from_secs(1)));
    (documents, key)
}

#[test]
fn a_document_that_can_no_longer_be_served_is_removed() {
    let (clock, manual) = Clock::manual(Wall::from_seconds(1_000_000));
    let (documents, key) = outdated_document(&clock);
    assert_eq!(documents.count(), 1);
    manual.advance(2 * HOUR);
    assert_eq!(
        documents.find(&key, clock.mono()).unwrap().verdict,
        Freshness::Expired
    );
    assert_eq!(documents.count(), 0);
}
