//! Counts and logs steps of the wall clock. `clock` applies them.

use scoregate_base::clock::{Clock, ClockEvent, StepDirection, Wall};
use scoregate_observe::telemetry::metrics::{Counter, MetricFamily, MetricsRegistry};

/// From now on, counts and logs the steps of this clock.
pub fn begin(clock: &Clock, registry: &MetricsRegistry) {
    let steps: MetricFamily<Counter, StepDirection> =
        registry.counters("scoregate_clock_steps_total");
    clock.report_steps_to(move |event| {
        if let ClockEvent::Stepped { direction, .. } = event {
            steps.count(direction);
        }
        log(event);
    });
}

fn log(event: ClockEvent) {
    match event {
        ClockEvent::Stepped {
            direction: StepDirection::Forward,
            from,
            to,
            applies,
        } => {
            let ahead = to.since(from);
            let from = from.rfc3339();
            let to = to.rfc3339();
            tracing::error!(
                ?ahead, from, to, day = %applies.day(),
                "the wall clock was set ahead; the new time applies once it has lasted for a minute, and the current UTC \
                 day continues until then"
            );
        }
        ClockEvent::Stepped {
            direction: StepDirection::Backward,
            from,
            to,
            applies,
        } => {
            let back = from.since(to);
            let from = from.rfc3339();
            let to = to.rfc3339();
            tracing::error!(
                ?back, from, to, day = %applies.day(),
                "the wall clock was set back; a UTC day that was opened stays open. `scoregate store check` reports \
                 whether that day is in the future, and how to close it"
            );
        }
        ClockEvent::Followed { from, to } => {
            let before: Wall = from;
            let day = to.day();
            let from = before.rfc3339();
            let to = to.rfc3339();
            tracing::error!(
                from, to, %day,
                "wall clock accepted after it was ahead for a minute{}",
                if day > before.day() { "; a new UTC day has begun" } else { "" }
            );
        }
    }
}
