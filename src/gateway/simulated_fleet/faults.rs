//! The load and the faults of a run.

use std::time::Duration;

use super::{
    applications::APPLICATIONS,
    fleet::{FleetEvent, LoadSession, SimulatedFleet},
    network::GATEWAYS,
    process::{RequestPlan, SimulatedEnd},
};

/// The length of a session.
const SESSION: Duration = Duration::from_mins(2);

impl SimulatedFleet {
    /// Begins a period with load, and with faults.
    pub(super) fn begin_session(&mut self) {
        let left = self.size.requests;
        let mean = u64::try_from(SESSION.as_micros()).unwrap() / left;
        let usual = self.numbers.index(APPLICATIONS.len());
        let session = LoadSession { usual, left, mean };
        self.at(self.now(), FleetEvent::Request(session));
        for _ in 0..self.numbers.below(4) {
            let after = self.numbers.millis(0, 120_000);
            self.at(self.now() + after, FleetEvent::Fault);
        }
    }

    /// Makes a request at one of the gateways that run, and plans the next one.
    pub(super) fn request(&mut self, session: LoadSession) {
        let numbers = &mut self.numbers;
        let application = match numbers.below(10) {
            0 => numbers.index(APPLICATIONS.len()),
            1..5 => APPLICATIONS.len() - 1,
            _ => session.usual,
        };
        let plan = RequestPlan {
            application,
            is_ready: !numbers.is_one_in(4),
            fetch: numbers.millis(5, 3_000),
            end: match numbers.below(16) {
                0 => SimulatedEnd::NotModified,
                1 => SimulatedEnd::Failure,
                2 => SimulatedEnd::Overload,
                _ => SimulatedEnd::Data,
            },
        };
        let micros = numbers.below(session.mean * 2);
        let gateway = numbers.index(GATEWAYS);
        let chosen = &self.gateways[gateway];
        if let Some(process) = chosen.process.clone()
            && !chosen.is_stopping
        {
            let time = &self.executor.time;
            time.spawn(process.node, process.request(plan));
        }
        let left = session.left - 1;
        if left > 0 {
            let next = LoadSession { left, ..session };
            let at = self.now() + Duration::from_micros(micros);
            self.at(at, FleetEvent::Request(next));
        }
    }

    /// Begins a fault.
    pub(super) fn fault(&mut self) {
        self.observer.lock().count("faults");
        let gateway = self.numbers.index(GATEWAYS);
        let now = self.now();
        let seconds = now + self.numbers.millis(1_000, 90_000);
        match self.numbers.below(8) {
            0 | 1 => self.gateways[gateway].polls_left = Some(1 + self.numbers.below(30)),
            2 | 3 => self.stop(gateway),
            4 => {
                let is_long = self.numbers.is_one_in(4);
                let most = if is_long { 900_000 } else { 60_000 };
                let long = self.numbers.millis(1_000, most);
                self.network
                    .change_faults(|faults| faults.away = now + long);
            }
            5 => self
                .network
                .change_faults(|faults| faults.cut[gateway] = seconds),
            6 => {
                self.network.change_faults(|faults| faults.lossy = seconds);
                self.at(seconds, FleetEvent::Stop(gateway));
            }
            _ if self.numbers.is_one_in(2) => {
                let pause = self.numbers.millis(100, 30_000);
                self.pause(gateway, pause);
            }
            _ => {
                let offset = i64::try_from(self.numbers.below(101)).unwrap() - 50;
                if let Some(process) = &self.gateways[gateway].process {
                    process.step_clock(offset);
                }
            }
        }
    }
}
