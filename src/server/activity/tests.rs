//! Tests the next deadline of a connection after different sequences of events.

use std::{sync::Arc, time::Duration};

use crate::{
    gateway::{ConnectionApplication, TrustLevel},
    server::{
        application_connections::ApplicationConnections,
        client_limits::{ClientLimits, SENT_PER_RECEIVED, UNSOLICITED_BYTES},
        deadlines::{ActivitySnapshot, Deadlines, MissedDeadline},
        unsent::{MIN_BYTES, UnsentResponses},
    },
};
use scoregate_base::clock::{Clock, ManualClock, Wall};

use super::{connection_activity::ConnectionActivity, stream_guard::StreamGuard};

const DEADLINES: Deadlines = Deadlines {
    head: Duration::from_secs(10),
    idle: Duration::from_mins(1),
    request: Duration::from_secs(50),
    write: Duration::from_secs(20),
    age: Duration::from_hours(1),
};

/// The next deadline in seconds, and its kind.
fn next(activity: &ConnectionActivity) -> (u64, MissedDeadline) {
    let ActivitySnapshot { end, overdue, .. } = activity.snapshot(&DEADLINES);
    (end.since(activity.clock.mono()).as_secs(), overdue)
}

fn activity() -> (Arc<ConnectionActivity>, ManualClock, impl Fn(u64)) {
    let (clock, manual) = Clock::manual(Wall::from_seconds(0));
    let moving = manual.clone();
    (
        Arc::new(ConnectionActivity::new(
            clock,
            Arc::default(),
            Arc::default(),
        )),
        manual,
        move |seconds| {
            moving.advance(Duration::from_secs(seconds));
        },
    )
}

#[test]
fn first_request_has_a_fixed_deadline() {
    let (activity, _hand, pass) = activity();
    assert_eq!(next(&activity), (10, MissedDeadline::Head));
    pass(4);
    activity.received(1);
    assert_eq!(next(&activity), (6, MissedDeadline::Head));
}

#[test]
fn head_deadline_starts_at_the_first_byte() {
    let (activity, _hand, pass) = activity();
    activity.request_started();
    activity.response_complete();
    activity.flushed(0);
    pass(30);
    assert_eq!(next(&activity), (30, MissedDeadline::Idle));
    activity.received(1);
    pass(3);
    activity.received(1);
    assert_eq!(
        next(&activity),
        (7, MissedDeadline::Head),
        "a head that arrives slowly gets no more time"
    );
    activity.request_started();
    assert_eq!(next(&activity), (47, MissedDeadline::Request));
}

#[test]
fn request_lasts_until_its_response_is_sent() {
    let (activity, _hand, pass) = activity();
    pass(5);
    activity.request_started();
    activity.flushed(0);
    assert_eq!(
        next(&activity),
        (50, MissedDeadline::Request),
        "nothing was written yet"
    );
    activity.response_complete();
    pass(5);
    assert_eq!(
        next(&activity),
        (45, MissedDeadline::Request),
        "the response is not sent yet"
    );
    activity.flushed(0);
    assert_eq!(next(&activity), (60, MissedDeadline::Idle));
    pass(5);
    activity.request_started();
    assert_eq!(
        next(&activity),
        (50, MissedDeadline::Request),
        "a pipelined request begins now"
    );
}

#[test]
fn further_requests_without_reading_do_not_extend_the_deadline() {
    let (activity, _hand, pass) = activity();
    activity.request_started();
    activity.response_complete();
    activity.blocked(0);
    pass(7);
    activity.request_started();
    activity.response_complete();
    activity.blocked(0);
    assert_eq!(next(&activity), (13, MissedDeadline::Write));
    activity.blocked(MIN_BYTES - 1);
    assert_eq!(
        next(&activity),
        (13, MissedDeadline::Write),
        "too few bytes to count"
    );
    activity.blocked(1);
    assert_eq!(next(&activity), (20, MissedDeadline::Write));
    activity.flushed(0);
    assert_eq!(next(&activity), (60, MissedDeadline::Idle));
}

#[test]
fn http2_deadline_follows_the_oldest_request() {
    let (activity, _hand, pass) = activity();
    activity.switch_to_http2();
    activity.received(1);
    assert_eq!(next(&activity), (60, MissedDeadline::Idle));
    let first = activity.open_stream().unwrap();
    pass(5);
    let second = activity.open_stream().unwrap();
    assert_eq!(next(&activity), (45, MissedDeadline::Request));
    drop(first);
    assert_eq!(next(&activity), (50, MissedDeadline::Request));
    pass(1);
    drop(second);
    assert_eq!(next(&activity), (60, MissedDeadline::Idle));
}

#[test]
fn after_the_idle_timeout_a_connection_has_one_more_second() {
    let (activity, _hand, pass) = activity();
    activity.switch_to_http2();
    pass(60);
    assert_eq!(next(&activity), (0, MissedDeadline::Idle));
    activity.retire();
    assert_eq!(next(&activity), (1, MissedDeadline::Idle));
    drop(activity.open_stream().unwrap());
    pass(1);
    assert_eq!(next(&activity), (0, MissedDeadline::Idle));
}

#[test]
fn on_http_2_bytes_without_a_request_are_limited() {
    let (activity, _hand, _pass) = activity();
    assert!(
        activity.received(10 * UNSOLICITED_BYTES),
        "before the protocol is known, other limits apply"
    );
    activity.switch_to_http2();
    assert!(activity.received(UNSOLICITED_BYTES) && !activity.received(1));
    let guard = activity.open_stream().unwrap();
    assert!(activity.received(UNSOLICITED_BYTES) && !activity.received(1));
    activity.flushed(SENT_PER_RECEIVED);
    assert!(activity.received(0) && !activity.received(1));
    drop(guard);
    assert!(activity.received(UNSOLICITED_BYTES) && !activity.received(1));
}

#[test]
fn retiring_connection_waits_one_second_for_a_request_in_transit() {
    let (activity, _hand, pass) = activity();
    activity.request_started();
    activity.retire();
    assert_eq!(next(&activity), (50, MissedDeadline::Request));
    activity.response_complete();
    activity.flushed(0);
    assert_eq!(next(&activity), (1, MissedDeadline::Idle));
    pass(1);
    activity.received(1);
    assert_eq!(
        next(&activity),
        (10, MissedDeadline::Head),
        "a head that has begun is read to its end"
    );
    assert!(activity.is_retiring());
}

#[test]
fn http2_response_waits_for_flow_control_windows() {
    let (activity, _hand, pass) = activity();
    activity.switch_to_http2();
    let mut first = activity.open_stream().unwrap();
    assert!(!activity.may_read_head());
    first.response_complete(true);
    assert!(activity.may_read_head());
    assert_eq!(next(&activity), (20, MissedDeadline::Write));
    pass(15);
    let mut second = activity.open_stream().unwrap();
    second.response_complete(true);
    activity.flushed(MIN_BYTES);
    first.sent(MIN_BYTES - 1);
    assert_eq!(
        next(&activity),
        (5, MissedDeadline::Write),
        "a later request does not extend the deadline"
    );
    second.sent(1);
    assert_eq!(next(&activity), (20, MissedDeadline::Write));
    drop((first, second));
    assert_eq!(next(&activity), (60, MissedDeadline::Idle));
}

/// Opens a stream and completes its response. Returns `None` if the stream is refused.
fn respond(activity: &Arc<ConnectionActivity>, has_body: bool) -> Option<StreamGuard> {
    let mut guard = activity.open_stream().ok()?;
    guard.response_complete(has_body);
    Some(guard)
}

fn application(requests_per_minute: u32) -> ConnectionApplication {
    ConnectionApplication {
        id: "app_0000000000A".parse().unwrap(),
        requests_per_minute,
    }
}

#[test]
fn http2_responses_without_body_are_limited_while_the_socket_accepts_no_bytes() {
    let (activity, _hand, _pass) = activity();
    for _ in 0..100 {
        assert!(respond(&activity, false).is_some());
    }
    activity.blocked(0);
    let answered = (0..100)
        .filter(|_| respond(&activity, false).is_some())
        .count();
    assert_eq!(answered, 8);
    activity.flushed(0);
    assert!(respond(&activity, false).is_some());
}

#[test]
fn http2_with_a_key_eight_heads_are_read_before_a_response_and_all_after_an_admission() {
    let (activity, _hand, _pass) = activity();
    let mut open = vec![activity.open_stream().unwrap()];
    assert!(!activity.may_read_head());
    activity.trust().record_key(application(60));
    while activity.may_read_head() {
        open.push(activity.open_stream().unwrap());
    }
    assert_eq!(open.len(), 8);
    for guard in &mut open {
        guard.response_complete(true);
    }
    assert!(
        activity.may_read_head(),
        "the frame that opens a window may follow the head"
    );
    assert!(activity.open_stream().is_err());
    activity.trust().record_admission();
    assert!(activity.reads_freely() && activity.open_stream().is_ok());
}

#[test]
fn a_connection_above_the_limit_of_its_application_ends_after_a_response() {
    let (clock, _hand) = Clock::manual(Wall::from_seconds(0));
    let applications = Arc::new(ApplicationConnections::default());
    applications.allow(1);
    let connect = || {
        let activity =
            ConnectionActivity::new(clock.clone(), Arc::default(), Arc::clone(&applications));
        Arc::new(activity)
    };
    let first = connect();
    let second = connect();
    let of_a_proxy = connect();
    of_a_proxy.belongs_to_no_application();
    for activity in [&first, &second, &of_a_proxy] {
        activity.trust().record_key(application(1));
    }
    let kept = respond(&first, true);
    assert!(kept.is_some() && !first.is_retiring());
    let mut unread = second.open_stream().unwrap();
    unread.response_complete(true);
    assert!(second.is_retiring() && second.is_surplus() && second.open_stream().is_err());
    assert_eq!(
        next(&second),
        (1, MissedDeadline::Write),
        "the response must be read soon"
    );
    of_a_proxy.request_started();
    assert!(!of_a_proxy.response_complete());
    drop((first, kept));
    let third = connect();
    third.trust().record_key(application(1));
    third.request_started();
    assert!(!third.response_complete(), "the first connection has ended");
}

#[test]
fn write_timeout_without_a_key_is_one_second_under_pressure() {
    let (clock, _hand) = Clock::manual(Wall::from_seconds(0));
    let unsent = Arc::new(UnsentResponses::default());
    let activity = Arc::new(ConnectionActivity::new(
        clock,
        Arc::clone(&unsent),
        Arc::default(),
    ));
    let mut guard = activity.open_stream().unwrap();
    guard.response_complete(true);
    assert_eq!(next(&activity), (20, MissedDeadline::Write));
    let limits = ClientLimits::of(TrustLevel::Anonymous, false);
    let others: Vec<_> = (0..limits.hurried_from).map(|_| unsent.count()).collect();
    assert_eq!(next(&activity), (1, MissedDeadline::Write));
    activity.trust().record_key(application(1));
    assert_eq!(next(&activity), (20, MissedDeadline::Write));
    drop(others);
}

#[test]
fn http2_the_first_request_of_a_connection_is_taken_however_many_responses_wait_in_the_process() {
    let (clock, _hand) = Clock::manual(Wall::from_seconds(0));
    let unsent = Arc::new(UnsentResponses::default());
    let connect = || {
        Arc::new(ConnectionActivity::new(
            clock.clone(),
            Arc::clone(&unsent),
            Arc::default(),
        ))
    };
    let limits = ClientLimits::of(TrustLevel::Anonymous, false);
    let flood: Vec<_> = (0..limits.pending_in_process)
        .map(|_| unsent.count())
        .collect();
    let anonymous = connect();
    let with_key = connect();
    let first = respond(&anonymous, true).unwrap();
    assert!(respond(&anonymous, true).is_none());
    let of_a_key = respond(&with_key, true).unwrap();
    with_key.trust().record_key(application(60));
    assert!(
        respond(&with_key, true).is_some(),
        "clients without a key leave room for clients with a key"
    );
    drop((flood, first, of_a_key));
}

#[test]
fn http2_a_trusted_proxy_may_hold_as_much_as_a_paid_caller() {
    let (activity, _hand, _pass) = activity();
    activity.belongs_to_no_application();
    assert!(activity.reads_freely());
    let waiting: Vec<_> = (0..100).map_while(|_| respond(&activity, true)).collect();
    assert_eq!(waiting.len(), 100);
}
