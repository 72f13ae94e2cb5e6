//! The time of each request, fixed by the rates in advance, whatever the server does.
//!
//! Pure. This makes the loop an open one: a latency counts from the scheduled time, so a stalled server is charged
//! for all requests that were due meanwhile.

use std::time::Duration;

/// A phase with a constant rate.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Its name in the report.
    pub name: String,
    /// Requests per second.
    pub rate: f64,
    /// Its duration.
    pub lasts: Duration,
}

impl Phase {
    pub fn new(name: &str, rate: f64, seconds: f64) -> Self {
        Self {
            name: name.to_owned(),
            rate,
            lasts: Duration::from_secs_f64(seconds),
        }
    }

    fn requests(&self) -> u64 {
        whole(self.rate * self.lasts.as_secs_f64())
    }
}

/// Consecutive phases.
#[derive(Clone, Debug)]
pub struct Schedule {
    placed: Vec<Placed>,
}

#[derive(Clone, Debug)]
struct Placed {
    phase: Phase,
    begins: Duration,
    first: u64,
}

impl Schedule {
    pub fn new(phases: Vec<Phase>) -> Self {
        let mut begins = Duration::ZERO;
        let mut first = 0;
        let mut placed = Vec::new();
        for phase in phases {
            let lasts = phase.lasts;
            let requests = phase.requests();
            placed.push(Placed {
                phase,
                begins,
                first,
            });
            begins += lasts;
            first += requests;
        }
        Self { placed }
    }

    /// When a request is due, from the start of the run, and its phase; `None` after the last.
    pub fn due(&self, number: u64) -> Option<(Duration, usize)> {
        let after = self.placed.partition_point(|placed| placed.first <= number);
        // A phase too short for a request has the same first number as its successor, and is skipped.
        let at = after.checked_sub(1)?;
        let placed = self.placed.get(at)?;
        let within = number - placed.first;
        if within >= placed.phase.requests() {
            return None;
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "exact for more requests than any run has"
        )]
        let offset = Duration::from_secs_f64(within as f64 / placed.phase.rate);
        Some((placed.begins + offset, at))
    }

    /// The end of the last phase.
    pub fn lasts(&self) -> Duration {
        self.placed
            .last()
            .map_or(Duration::ZERO, |placed| placed.begins + placed.phase.lasts)
    }

    /// The start of the phase with this name.
    pub fn begins(&self, name: &str) -> Duration {
        let of_name = self.placed.iter().find(|placed| placed.phase.name == name);
        of_name.map_or(Duration::ZERO, |placed| placed.begins)
    }

    pub fn phases(&self) -> impl Iterator<Item = &Phase> {
        self.placed.iter().map(|placed| &placed.phase)
    }
}

fn whole(number: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count, rounded down"
    )]
    let whole = (number + 1e-6).max(0.0) as u64;
    whole
}
