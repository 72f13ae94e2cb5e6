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
fn next(pulse: &ConnectionActivity) -> (u64, MissedDeadline) {
    let Glance { end, overdue, .. } = pulse.snapshot(&DEADLINES);
    (end.since(pulse.clock.mono()).as_secs(), overdue)
}

fn pulse() -> (Arc<ConnectionActivity>, ManualClock, impl Fn(u64)) {
    let (clock, hand) = Clock::hand_driven(Wall::from_seconds(0));
    let moving = hand.clone();
    (Arc::new(ConnectionActivity::new(clock, Arc::default())), hand, move |seconds| {
        moving.advance(Duration::from_secs(seconds));
    })
}

#[test]
fn a_new_connection_has_so_long_to_its_first_request_however_it_drips() {
    let (pulse, _hand, pass) = pulse();
    assert_eq!(next(&pulse), (10, MissedDeadline::Head));
    pass(4);
    pulse.received(1);
    assert_eq!(next(&pulse), (6, MissedDeadline::Head));
}

#[test]
fn a_head_lasts_from_its_first_byte() {
    let (pulse, _hand, pass) = pulse();
    pulse.begun();
    pulse.answered();
    pulse.flushed();
    pass(30);
    assert_eq!(next(&pulse), (30, MissedDeadline::Idle));
    pulse.received(1);
    pass(3);
    pulse.received(1);
    assert_eq!(next(&pulse), (7, MissedDeadline::Head), "one that drips gets no more time");
    pulse.begun();
    assert_eq!(next(&pulse), (47, MissedDeadline::Request));
}

#[test]
fn a_request_lasts_until_its_answer_is_sent() {
    let (pulse, _hand, pass) = pulse();
    pass(5);
    pulse.begun();
    pulse.flushed();
    assert_eq!(next(&pulse), (50, MissedDeadline::Request), "nothing was written yet");
    pulse.answered();
    pass(5);
    assert_eq!(next(&pulse), (45, MissedDeadline::Request), "it is not sent yet");
    pulse.flushed();
    assert_eq!(next(&pulse), (60, MissedDeadline::Idle));
    pass(5);
    pulse.begun();
    assert_eq!(next(&pulse), (50, MissedDeadline::Request), "one that was there already begins now");
}

#[test]
fn whoever_asks_on_without_reading_is_not_younger_for_it() {
    let (pulse, _hand, pass) = pulse();
    pulse.begun();
    pulse.answered();
    pulse.blocked();
    pass(7);
    pulse.begun();
    pulse.answered();
    pulse.blocked();
    assert_eq!(next(&pulse), (13, MissedDeadline::Write));
    pulse.wrote(MIN_BYTES - 1);
    assert_eq!(next(&pulse), (13, MissedDeadline::Write), "too little to count");
    pulse.wrote(1);
    assert_eq!(next(&pulse), (20, MissedDeadline::Write));
    pulse.flushed();
    assert_eq!(next(&pulse), (60, MissedDeadline::Idle));
}

#[test]
fn on_http_2_the_oldest_request_counts_and_what_arrives_in_between_does_not() {
    let (pulse, _hand, pass) = pulse();
    pulse.switch_to_http2();
    pulse.received(1);
    assert_eq!(next(&pulse), (60, MissedDeadline::Idle));
    let first = pulse.open_stream();
    pass(5);
    let second = pulse.open_stream();
    assert_eq!(next(&pulse), (45, MissedDeadline::Request));
    drop(first);
    assert_eq!(next(&pulse), (50, MissedDeadline::Request));
    pass(1);
    drop(second);
    assert_eq!(next(&pulse), (60, MissedDeadline::Idle));
}

#[test]
fn one_that_was_idle_too_long_and_is_told_so_has_a_second_still() {
    let (pulse, _hand, pass) = pulse();
    pulse.switch_to_http2();
    pass(60);
    assert_eq!(next(&pulse), (0, MissedDeadline::Idle));
    pulse.retire();
    assert_eq!(next(&pulse), (1, MissedDeadline::Idle));
    drop(pulse.open_stream());
    pass(1);
    assert_eq!(next(&pulse), (0, MissedDeadline::Idle));
}

#[test]
fn on_http_2_only_so_much_may_arrive_in_which_nothing_is_asked() {
    let (pulse, _hand, _pass) = pulse();
    assert!(pulse.received(10 * UNSOLICITED_BYTES), "before it is known what is spoken others watch");
    pulse.switch_to_http2();
    assert!(pulse.received(UNSOLICITED_BYTES) && !pulse.received(1));
    let ticket = pulse.open_stream();
    assert!(pulse.received(UNSOLICITED_BYTES) && !pulse.received(1));
    pulse.wrote(SENT_PER_RECEIVED);
    assert!(pulse.received(0) && !pulse.received(1));
    drop(ticket);
    assert!(pulse.received(UNSOLICITED_BYTES) && !pulse.received(1));
}

#[test]
fn one_that_is_to_end_waits_a_second_for_a_request_that_is_under_way() {
    let (pulse, _hand, pass) = pulse();
    pulse.begun();
    pulse.retire();
    assert_eq!(next(&pulse), (50, MissedDeadline::Request));
    pulse.answered();
    pulse.flushed();
    assert_eq!(next(&pulse), (1, MissedDeadline::Idle));
    pass(1);
    pulse.received(1);
    assert_eq!(next(&pulse), (10, MissedDeadline::Head), "what begins to come is heard to its end");
    assert!(pulse.is_retiring());
}

#[test]
fn on_http_2_a_response_waits_for_the_windows_of_its_client_and_not_for_the_socket() {
    let (pulse, _hand, pass) = pulse();
    pulse.switch_to_http2();
    let mut first = pulse.open_stream();
    assert!(!pulse.may_read_a_head() && first.answered(true) && pulse.may_read_a_head());
    assert_eq!(next(&pulse), (20, MissedDeadline::Write));
    pass(15);
    let mut second = pulse.open_stream();
    assert!(second.answered(true));
    pulse.wrote(MIN_BYTES);
    first.sent(MIN_BYTES - 1);
    assert_eq!(next(&pulse), (5, MissedDeadline::Write), "what is asked for later gains no time");
    second.sent(1);
    assert_eq!(next(&pulse), (20, MissedDeadline::Write));
    drop((first, second));
    assert_eq!(next(&pulse), (60, MissedDeadline::Idle));
}

#[test]
fn on_http_2_eight_responses_wait_without_a_key_and_with_one_any_number() {
    let (pulse, _hand, _pass) = pulse();
    let answered = |has_body: bool| {
        let mut ticket = pulse.open_stream();
        ticket.answered(has_body).then_some(ticket)
    };
    let mut waiting: Vec<_> = (0..8).map(|_| answered(true).unwrap()).collect();
    assert!(answered(true).is_none() && answered(false).is_some());
    waiting.pop();
    waiting.push(answered(true).unwrap());
    assert!(answered(true).is_none());
    let ticket = pulse.open_stream();
    assert!(!pulse.may_read_a_head());
    pulse.authenticated().set();
    assert!(pulse.may_read_a_head());
    drop(ticket);
    waiting.extend((0..92).map(|_| answered(true).unwrap()));
}

#[test]
fn while_too_many_responses_wait_in_the_process_clients_without_a_key_have_a_second() {
    let (clock, _hand) = Clock::hand_driven(Wall::from_seconds(0));
    let unsent = Arc::new(UnsentResponses::default());
    let pulse = Arc::new(ConnectionActivity::new(clock, Arc::clone(&unsent)));
    let mut ticket = pulse.open_stream();
    assert!(ticket.answered(true));
    assert_eq!(next(&pulse), (20, MissedDeadline::Write));
    let mut others = Vec::new();
    while !unsent.are_too_many() {
        others.push(unsent.count());
    }
    assert_eq!(next(&pulse), (1, MissedDeadline::Write));
    pulse.authenticated().set();
    assert_eq!(next(&pulse), (20, MissedDeadline::Write));
    drop(others);
}
