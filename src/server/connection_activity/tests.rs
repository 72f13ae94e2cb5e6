//! The next deadline of a connection after each sequence of events.

use std::time::Duration;

use super::*;
use crate::clock::{ManualClock, Wall};
use crate::server::unsent::MIN_BYTES;

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
    (Arc::new(ConnectionActivity::new(clock, Arc::default())), manual, move |seconds| {
        moving.advance(Duration::from_secs(seconds));
    })
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
    activity.flushed();
    pass(30);
    assert_eq!(next(&activity), (30, MissedDeadline::Idle));
    activity.received(1);
    pass(3);
    activity.received(1);
    assert_eq!(next(&activity), (7, MissedDeadline::Head), "one that drips gets no more time");
    activity.request_started();
    assert_eq!(next(&activity), (47, MissedDeadline::Request));
}

#[test]
fn request_lasts_until_its_response_is_sent() {
    let (activity, _hand, pass) = activity();
    pass(5);
    activity.request_started();
    activity.flushed();
    assert_eq!(next(&activity), (50, MissedDeadline::Request), "nothing was written yet");
    activity.response_complete();
    pass(5);
    assert_eq!(next(&activity), (45, MissedDeadline::Request), "it is not sent yet");
    activity.flushed();
    assert_eq!(next(&activity), (60, MissedDeadline::Idle));
    pass(5);
    activity.request_started();
    assert_eq!(next(&activity), (50, MissedDeadline::Request), "one that was there already begins now");
}

#[test]
fn further_requests_without_reading_do_not_extend_the_deadline() {
    let (activity, _hand, pass) = activity();
    activity.request_started();
    activity.response_complete();
    activity.blocked();
    pass(7);
    activity.request_started();
    activity.response_complete();
    activity.blocked();
    assert_eq!(next(&activity), (13, MissedDeadline::Write));
    activity.wrote(MIN_BYTES - 1);
    assert_eq!(next(&activity), (13, MissedDeadline::Write), "too little to count");
    activity.wrote(1);
    assert_eq!(next(&activity), (20, MissedDeadline::Write));
    activity.flushed();
    assert_eq!(next(&activity), (60, MissedDeadline::Idle));
}

#[test]
fn http2_deadline_follows_the_oldest_request() {
    let (activity, _hand, pass) = activity();
    activity.switch_to_http2();
    activity.received(1);
    assert_eq!(next(&activity), (60, MissedDeadline::Idle));
    let first = activity.open_stream();
    pass(5);
    let second = activity.open_stream();
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
    drop(activity.open_stream());
    pass(1);
    assert_eq!(next(&activity), (0, MissedDeadline::Idle));
}

#[test]
fn on_http_2_bytes_without_a_request_are_limited() {
    let (activity, _hand, _pass) = activity();
    assert!(activity.received(10 * UNSOLICITED_BYTES), "before it is known what is spoken others watch");
    activity.switch_to_http2();
    assert!(activity.received(UNSOLICITED_BYTES) && !activity.received(1));
    let guard = activity.open_stream();
    assert!(activity.received(UNSOLICITED_BYTES) && !activity.received(1));
    activity.wrote(SENT_PER_RECEIVED);
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
    activity.flushed();
    assert_eq!(next(&activity), (1, MissedDeadline::Idle));
    pass(1);
    activity.received(1);
    assert_eq!(next(&activity), (10, MissedDeadline::Head), "what begins to come is heard to its end");
    assert!(activity.is_retiring());
}

#[test]
fn http2_response_waits_for_flow_control_windows() {
    let (activity, _hand, pass) = activity();
    activity.switch_to_http2();
    let mut first = activity.open_stream();
    assert!(!activity.may_read_head() && first.response_complete(true) && activity.may_read_head());
    assert_eq!(next(&activity), (20, MissedDeadline::Write));
    pass(15);
    let mut second = activity.open_stream();
    assert!(second.response_complete(true));
    activity.wrote(MIN_BYTES);
    first.sent(MIN_BYTES - 1);
    assert_eq!(next(&activity), (5, MissedDeadline::Write), "what is asked for later gains no time");
    second.sent(1);
    assert_eq!(next(&activity), (20, MissedDeadline::Write));
    drop((first, second));
    assert_eq!(next(&activity), (60, MissedDeadline::Idle));
}

#[test]
fn http2_unsent_responses_are_limited_without_a_key() {
    let (activity, _hand, _pass) = activity();
    let response_complete = |has_body: bool| {
        let mut guard = activity.open_stream();
        guard.response_complete(has_body).then_some(guard)
    };
    let mut waiting: Vec<_> = (0..8).map(|_| response_complete(true).unwrap()).collect();
    assert!(response_complete(true).is_none() && response_complete(false).is_some());
    waiting.pop();
    waiting.push(response_complete(true).unwrap());
    assert!(response_complete(true).is_none());
    let guard = activity.open_stream();
    assert!(!activity.may_read_head());
    activity.authenticated().set();
    assert!(activity.may_read_head());
    drop(guard);
    waiting.extend((0..92).map(|_| response_complete(true).unwrap()));
}

#[test]
fn write_timeout_without_a_key_is_one_second_under_pressure() {
    let (clock, _hand) = Clock::manual(Wall::from_seconds(0));
    let unsent = Arc::new(UnsentResponses::default());
    let activity = Arc::new(ConnectionActivity::new(clock, Arc::clone(&unsent)));
    let mut guard = activity.open_stream();
    assert!(guard.response_complete(true));
    assert_eq!(next(&activity), (20, MissedDeadline::Write));
    let mut others = Vec::new();
    while !unsent.is_over_limit() {
        others.push(unsent.count());
    }
    assert_eq!(next(&activity), (1, MissedDeadline::Write));
    activity.authenticated().set();
    assert_eq!(next(&activity), (20, MissedDeadline::Write));
    drop(others);
}
