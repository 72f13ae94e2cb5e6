//! Conformance checks of the history of the status page and of messages about incidents.

use futures_util::future::join_all;

use super::*;

const MINUTE: u64 = minute_of(NOON);

fn minute(minute: u64, is_ready: bool, is_fresh: bool) -> StatusMinute {
    StatusMinute {
        minute,
        is_ready,
        is_fresh,
    }
}

/// The first minute of a day.
fn start_of(days_ago: u64) -> u64 {
    MINUTE / DAY_MINUTES * DAY_MINUTES - days_ago * DAY_MINUTES
}

async fn record(store: &Store, minutes: &[StatusMinute]) {
    store.record_minutes(minutes.to_vec()).await.unwrap();
}

/// The number of ready and fresh minutes of each day in this range.
async fn days(store: &Store, first: u64, end: u64) -> Vec<(u64, u64)> {
    let history = store.status_history(first, end).await.unwrap();
    history
        .days
        .iter()
        .map(|day| (day.ready, day.fresh))
        .collect()
}

fn new(subject: MessageSubject, state: Option<IncidentState>, message: &str) -> NewStatusMessage {
    NewStatusMessage {
        at: NOON,
        who: "a test".into(),
        subject,
        state,
        message: message.into(),
    }
}

async fn open_incident(store: &Store, title: &str) -> StatusMessage {
    let message = "We are looking into it.\n\nMore later.";
    let post = new(MessageSubject::New(title.into()), None, message);
    store.post_status(post).await.unwrap()
}

/// Posts a message about an open incident.
async fn add(store: &Store, incident: u64, state: Option<IncidentState>) -> StatusMessage {
    let post = new(MessageSubject::Known(incident), state, "More.");
    store.post_status(post).await.unwrap()
}

pub async fn a_minute_is_ready_if_any_gateway_stored_that_and_reports_may_be_repeated(
    store: &Store,
) {
    assert_eq!(
        store.status_history(0, u64::MAX >> 1).await.unwrap(),
        StatusHistory::default()
    );
    record(store, &[]).await;
    let one = minute(MINUTE, true, false);
    let other = minute(MINUTE + 1, false, false);
    record(store, &[one, other]).await;
    let next = MINUTE + 1;
    assert_eq!(days(store, MINUTE, next).await, [(1, 0)]);
    assert_eq!(days(store, next, next + 1).await, [(0, 0)]);
    record(
        store,
        &[minute(MINUTE, false, false), minute(next, true, false)],
    )
    .await;
    record(
        store,
        &[minute(MINUTE, true, true), minute(next, false, false)],
    )
    .await;
    record(store, &[one, other, other]).await;
    assert_eq!(days(store, MINUTE, next).await, [(1, 1)]);
    assert_eq!(days(store, next, next + 1).await, [(1, 0)]);
    // One report contains the same minute twice.
    record(
        store,
        &[minute(next + 1, false, false), minute(next + 1, true, true)],
    )
    .await;
    assert_eq!(days(store, MINUTE, next + 9).await, [(3, 2)]);
}

pub async fn minutes_are_added_up_by_day_within_the_bounds(store: &Store) {
    let today = start_of(0);
    let minutes = [today - DAY_MINUTES - 1, today - 1, today, today + 1]
        .map(|at| minute(at, true, at != today));
    record(store, &minutes).await;
    let history = store.status_history(today - 1, today + 1).await.unwrap();
    assert_eq!(
        history.first_minute,
        Some(today - DAY_MINUTES - 1),
        "the first minute ever stored, not the first of this range"
    );
    let expected = [(before(1), 1), (NOON.day(), 0)];
    let expected = expected.map(|(day, fresh)| StatusDay {
        day,
        ready: 1,
        fresh,
    });
    assert_eq!(history.days, expected);
    assert_eq!(days(store, 0, today + 2).await, [(1, 1), (1, 1), (2, 1)]);
    assert_eq!(days(store, today + 2, today + 9).await, []);
}

pub async fn minutes_are_kept_for_91_days_and_the_first_one_forever(store: &Store) {
    open_day(store, before(100)).await;
    let oldest = start_of(100);
    let kept = start_of(90);
    record(
        store,
        &[oldest, oldest + 1, kept - 1, kept].map(|at| minute(at, true, true)),
    )
    .await;
    delete_outdated(store).await;
    assert_eq!(
        days(store, 0, MINUTE).await,
        [(2, 2), (1, 1), (1, 1)],
        "no minute is outdated on that day"
    );
    open_day(store, NOON.day()).await;
    delete_outdated(store).await;
    assert_eq!(days(store, 0, MINUTE).await, [(1, 1), (1, 1)]);
    assert_eq!(
        store
            .status_history(kept, MINUTE)
            .await
            .unwrap()
            .first_minute,
        Some(oldest)
    );
    record(
        store,
        &[minute(kept - 2, true, true), minute(kept + 1, true, true)],
    )
    .await;
    assert_eq!(
        days(store, 0, MINUTE).await,
        [(1, 1), (2, 2)],
        "an outdated minute is ignored"
    );
}

pub async fn messages_of_an_incident_keep_its_title_and_are_listed_newest_first(store: &Store) {
    assert_eq!(store.status_messages(10).await.unwrap(), []);
    let first = open_incident(store, "Scores \"ö\" are late").await;
    assert_eq!(
        (first.incident, first.state),
        (first.id, IncidentState::Investigating)
    );
    assert_eq!(
        (first.at, first.title.as_str()),
        (NOON, "Scores \"ö\" are late")
    );
    let identified = add(store, first.id, Some(IncidentState::Identified)).await;
    let more = add(store, first.id, None).await;
    assert_eq!(
        (more.state, &more.title),
        (IncidentState::Identified, &first.title)
    );
    let other = open_incident(store, "Another").await;
    let end = add(store, first.id, Some(IncidentState::Resolved)).await;
    assert!(
        [first.id, identified.id, more.id, other.id, end.id].is_sorted_by(|one, next| one < next)
    );
    let listed = store.status_messages(10).await.unwrap();
    assert_eq!(listed, [end, other, more, identified, first]);
}

pub async fn messages_of_open_incidents_are_listed_above_the_limit(store: &Store) {
    let open = open_incident(store, "Open").await;
    for _ in 0..3 {
        let over = open_incident(store, "Over").await;
        add(store, over.id, Some(IncidentState::Resolved)).await;
    }
    let listed = store.status_messages(2).await.unwrap();
    assert_eq!(listed.len(), 3);
    assert_eq!(listed.last(), Some(&open));
}

pub async fn an_incident_that_is_unknown_or_resolved_takes_no_message(store: &Store) {
    let refused =
        |subject| store.post_status(new(subject, Some(IncidentState::Monitoring), "More."));
    let unknown = refused(MessageSubject::Known(7)).await.unwrap_err();
    assert!(
        matches!(unknown, StoreError::UnknownIncident(7)) && !unknown.is_failure(),
        "{unknown}"
    );
    let first = open_incident(store, "Open").await;
    let more = add(store, first.id, None).await;
    let no_incident = refused(MessageSubject::Known(more.id)).await.unwrap_err();
    assert!(
        matches!(no_incident, StoreError::UnknownIncident(_)),
        "{no_incident}"
    );
    add(store, first.id, Some(IncidentState::Resolved)).await;
    let subject = MessageSubject::Known(first.id);
    let resolved = refused(subject).await.unwrap_err();
    assert!(
        matches!(resolved, StoreError::IncidentResolved(of) if of == first.id),
        "{resolved}"
    );
    assert_eq!(store.status_messages(10).await.unwrap().len(), 3);
    assert_eq!(trail(store).await.len(), 3);
}

pub async fn every_message_has_an_audit_record_without_an_application(store: &Store) {
    let before = store.position().await.unwrap();
    let first = open_incident(store, "Late scores").await;
    let end = add(store, first.id, Some(IncidentState::Resolved)).await;
    let records = trail(store).await;
    let seen: Vec<_> = records
        .iter()
        .map(|record| {
            [
                &record.who,
                &record.what,
                &record.application,
                &record.detail,
            ]
            .map(String::as_str)
        })
        .collect();
    let id = first.id;
    let detail =
        |message, state| format!("message {message} of incident {id}, {state}: Late scores");
    let resolved = detail(end.id, "resolved");
    let posted = detail(id, "investigating");
    let expected = [
        ["a test", "resolve_status", "", &resolved],
        ["a test", "post_status", "", &posted],
    ];
    assert_eq!(seen, expected);
    // Readers of the change feed skip these records.
    let changed = store.changed_after(before, 10).await.unwrap();
    assert_eq!(
        (changed.applications, changed.reached.number),
        (Vec::new(), changed.newest)
    );
}

pub async fn messages_posted_at_once_get_numbers_of_their_own(store: &Store) {
    let posted = join_all((0..8).map(|_| open_incident(store, "At once"))).await;
    let mut ids: Vec<u64> = posted.iter().map(|message| message.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 8);
    assert!(posted.iter().all(|message| message.incident == message.id));
}
