//! Clients whose requests follow their users: public products, fleets of phones, teams with one key, and a key that was sold.

use super::{
    random::{Popularity, Random},
    requests::{
        Client, DOCUMENTS, Hosting, HourOfUse, SimulatedHour, library, own_network, own_product,
        software,
    },
    scheduled::{CiJobs, Dashboard},
};

/// How long a product serves its own copy of a document.
#[derive(Clone, Copy, PartialEq)]
pub enum Copies {
    /// Every view is a request.
    No,
    /// Every view is a conditional request.
    Conditional,
    /// Until the next refresh.
    UntilRefresh,
    /// A day.
    OneDay,
}

/// A website that shows the pages of models that its visitors open.
pub struct PublicProduct {
    popularity: Popularity,
    /// Documents of a page.
    documents: usize,
    views_a_day: f64,
    zone: usize,
    amplitude: f64,
    copies: Copies,
    /// Most models in an hour.
    most: usize,
    hosting: Hosting,
    product: u64,
    /// For each model, the hour since the beginning in which it was requested last.
    requested: Vec<Option<usize>>,
}

/// Phones behind one network: many versions and products of software.
pub struct Fleet {
    popularity: Popularity,
    devices: Vec<u64>,
    /// The share of devices that are used in an hour.
    share: f64,
    zone: usize,
    most: usize,
    is_conditional: bool,
    network: u64,
}

/// Servers, the computers of a team and its CI jobs with one key.
pub struct TeamWithOneKey {
    server: Dashboard,
    jobs: CiJobs,
    /// Home or office, and software.
    people: Vec<(u64, u64)>,
    interests: Vec<usize>,
    zone: usize,
}

/// A key that many have.
pub struct ResoldKey(Vec<Buyer>);

struct Buyer {
    program: Dashboard,
    /// Probability that it runs in an hour.
    runs: f64,
    zone: usize,
}

impl PublicProduct {
    pub fn new(models: usize, most: usize, copies: Copies, random: &mut Random) -> Self {
        let exponent = random.within(0.6, 1.2);
        Self {
            popularity: Popularity::new(models, exponent, random),
            documents: random.between(1, 2),
            views_a_day: random.magnitude(100, 30_000) as f64,
            zone: random.below(24),
            amplitude: random.within(0.0, 0.9),
            copies,
            most,
            hosting: Hosting::any(random),
            product: software(random),
            requested: vec![None; models],
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "below 2^20"
    )]
    pub fn need(&self) -> u32 {
        let views = match self.copies {
            Copies::No => self.views_a_day,
            Copies::Conditional | Copies::UntilRefresh | Copies::OneDay => {
                self.views_a_day.min((self.most * 24) as f64)
            }
        };
        (views * self.documents as f64) as u32
    }

    fn view(&mut self, model: usize, now: usize, to: &mut HourOfUse) {
        let last = self.requested[model];
        let has_copy = match self.copies {
            Copies::No | Copies::Conditional => false,
            Copies::UntilRefresh => last == Some(now),
            Copies::OneDay => last.is_some_and(|last| now < last + 24),
        };
        if !has_copy {
            self.requested[model] = Some(now);
            to.request_model(model, self.documents, false);
        }
    }
}

impl Client for PublicProduct {
    fn hour(&mut self, at: SimulatedHour, uses: &mut [HourOfUse], random: &mut Random) {
        let now = at.day * 24 + at.hour;
        let to = &mut uses[0];
        let variation = random.within(0.6, 1.4);
        let rate = self.views_a_day / 24.0 * at.daily_wave(self.zone, self.amplitude) * variation;
        let views = random.events(rate);
        let mut viewed = vec![0_u32; self.requested.len()];
        let mut different = 0;
        for _ in 0..views {
            let model = self.popularity.draw(random);
            if viewed[model] == 0 && different == self.most {
                continue;
            }
            different += usize::from(viewed[model] == 0);
            viewed[model] += 1;
        }
        for (model, times) in viewed
            .into_iter()
            .enumerate()
            .filter(|(_, times)| *times > 0)
        {
            if matches!(self.copies, Copies::No | Copies::Conditional) {
                for document in 0..self.documents {
                    to.request(
                        model * DOCUMENTS + document,
                        times,
                        self.copies == Copies::Conditional,
                    );
                }
            } else {
                self.view(model, now, to);
            }
        }
        if !to.demands.is_empty() {
            let first = -random.within(f64::MIN_POSITIVE, 1.0).ln() * 60.0 / rate;
            to.minute = (0..59)
                .find(|minute| first < f64::from(*minute) + 1.0)
                .unwrap_or(59);
            self.hosting.appear(self.product, to, random);
        }
    }
}

impl Fleet {
    pub fn new(models: usize, most: usize, random: &mut Random) -> Self {
        let products: Vec<u64> = (0..random.between(6, 30))
            .map(|_| own_product(random))
            .collect();
        let devices = random.magnitude(8, 80);
        Self {
            popularity: Popularity::new(models, random.within(0.8, 1.2), random),
            devices: (0..devices).map(|_| random.choose(&products)).collect(),
            share: random.within(0.05, 0.4),
            zone: random.below(24),
            most,
            is_conditional: random.chance(0.5),
            network: own_network(random),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a few thousand"
    )]
    pub fn need(&self) -> u32 {
        (self.devices.len() as f64 * self.share * 24.0 * 5.0) as u32
    }
}

impl Client for Fleet {
    fn hour(&mut self, at: SimulatedHour, uses: &mut [HourOfUse], random: &mut Random) {
        let mut seen: Vec<usize> = Vec::new();
        for product in &self.devices {
            if !random.chance(self.share * at.daily_wave(self.zone, 0.8)) {
                continue;
            }
            for _ in 0..random.between(1, 5) {
                let model = self.popularity.draw(random);
                if !seen.contains(&model) {
                    if seen.len() == self.most {
                        continue;
                    }
                    seen.push(model);
                }
                uses[0].request_model(model, 1, self.is_conditional);
            }
            uses[0].visited_from(self.network, *product, random);
        }
    }
}

impl TeamWithOneKey {
    pub fn new(models: usize, most: usize, random: &mut Random) -> Self {
        let people = random.between(3, 8);
        Self {
            server: Dashboard::new(models, most / 3, random),
            jobs: CiJobs::new(models, random),
            people: (0..people)
                .map(|_| (own_network(random), library(random)))
                .collect(),
            interests: random.sample(models, most / 3),
            zone: random.below(24),
        }
    }

    pub fn need(&self) -> u32 {
        self.server.need() + self.jobs.need() + 500
    }
}

impl Client for TeamWithOneKey {
    fn hour(&mut self, at: SimulatedHour, uses: &mut [HourOfUse], random: &mut Random) {
        self.server.run(at, &mut uses[0], random);
        self.jobs.hour(at, uses, random);
        for (network, product) in &self.people {
            if at.is_worked(self.zone) && random.chance(0.4) {
                for _ in 0..random.between(1, 6) {
                    let model = random.choose(&self.interests);
                    uses[0].request_model(model, 1, false);
                }
                uses[0].visited_from(*network, *product, random);
            }
        }
    }
}

impl ResoldKey {
    /// A key that is used from 50 networks.
    pub fn new(models: usize, most: usize, random: &mut Random) -> Self {
        let buyer = |_| {
            let is_server = random.chance(0.4);
            let program = Dashboard {
                hosting: Hosting::Fixed(vec![own_network(random)]),
                times: 1,
                worked: None,
                ..Dashboard::new(models, most / 2, random)
            };
            let runs = if is_server {
                0.97
            } else {
                random.within(0.05, 0.35)
            };
            Buyer {
                program,
                runs,
                zone: random.below(24),
            }
        };
        Self((0..50).map(buyer).collect())
    }
}

impl Client for ResoldKey {
    fn hour(&mut self, at: SimulatedHour, uses: &mut [HourOfUse], random: &mut Random) {
        for buyer in &self.0 {
            if random.chance(buyer.runs * at.daily_wave(buyer.zone, 0.6).min(1.0)) {
                buyer.program.run(at, &mut uses[0], random);
            }
        }
    }
}
