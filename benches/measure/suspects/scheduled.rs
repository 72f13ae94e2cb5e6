//! Programs that run by a schedule: dashboards, bad pollers, research scripts, CI jobs.

use super::{
    random::Random,
    requests::{
        Client, DOCUMENTS, Hosting, HourOfUse, SimulatedHour, library, own_network, own_product,
        software,
    },
};

/// Networks of the runners of CI services.
const RUNNER_NETWORKS: usize = 3_000;
/// Universities, each with two networks.
const UNIVERSITIES: usize = 12;

/// Fixed documents, requested at each refresh or more often.
#[derive(Clone)]
pub struct Dashboard {
    pub documents: Vec<usize>,
    /// Requests for each document in an hour.
    pub times: u32,
    pub is_conditional: bool,
    /// The time zone, if it runs only in working hours.
    pub worked: Option<usize>,
    pub hosting: Hosting,
    pub product: u64,
    pub minute: u8,
}

/// One program for each application.
pub struct Programs(pub Vec<Dashboard>);

/// A sample of models on some days.
pub struct Research {
    /// The share of days.
    days: f64,
    hours: Vec<usize>,
    sampling: Sampling,
    size: usize,
    models: usize,
    documents: usize,
    is_conditional: bool,
    network: u64,
    product: u64,
    is_active: bool,
    sample: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Sampling {
    Once,
    EachDay,
    EachRun,
}

/// Jobs that a repository starts on runners of a cloud.
pub struct CiJobs {
    documents: Vec<usize>,
    jobs_a_day: f64,
    zone: usize,
    products: Vec<u64>,
}

/// The first documents of random models.
pub fn documents_of(models: &[usize], documents: usize) -> Vec<usize> {
    models
        .iter()
        .flat_map(|model| (0..documents).map(move |document| model * DOCUMENTS + document))
        .collect()
}

impl Dashboard {
    /// A dashboard of at most this many models of all.
    pub fn new(models: usize, most: usize, random: &mut Random) -> Self {
        let size = random.magnitude(2, most);
        let is_good = random.chance(0.6);
        Self {
            documents: documents_of(&random.sample(models, size), random.between(1, 3)),
            times: if is_good {
                1
            } else {
                random.choose(&[1, 1, 2, 4, 12])
            },
            is_conditional: is_good,
            worked: random.chance(0.3).then(|| random.below(24)),
            hosting: Hosting::any(random),
            product: software(random),
            minute: u8::try_from(random.below(10)).unwrap(),
        }
    }

    /// A program that requests a few models every few seconds.
    pub fn bad_poller(models: usize, random: &mut Random) -> Self {
        let size = random.between(1, 5);
        Self {
            documents: documents_of(&random.sample(models, size), random.between(1, 2)),
            times: 3_600 / u32::try_from(random.between(2, 30)).unwrap(),
            is_conditional: false,
            worked: random.chance(0.2).then(|| random.below(24)),
            ..Self::new(models, 2, random)
        }
    }

    /// Documents that are delivered in a day without limits.
    pub fn need(&self) -> u32 {
        let hours = if self.worked.is_some() { 9 } else { 24 };
        let times = if self.is_conditional { 1 } else { self.times };
        u32::try_from(self.documents.len()).unwrap() * times * hours
    }

    pub fn run(&self, at: SimulatedHour, to: &mut HourOfUse, random: &mut Random) {
        if self.worked.is_some_and(|zone| !at.is_worked(zone)) || random.chance(0.005) {
            return;
        }
        to.minute = self.minute;
        for document in &self.documents {
            to.request(*document, self.times, self.is_conditional);
        }
        self.hosting.appear(self.product, to, random);
    }
}

impl Client for Programs {
    fn hour(&mut self, at: SimulatedHour, uses: &mut [HourOfUse], random: &mut Random) {
        for (program, to) in self.0.iter().zip(uses) {
            program.run(at, to, random);
        }
    }
}

impl Research {
    pub fn new(models: usize, most: usize, random: &mut Random) -> Self {
        let runs = random.between(1, 3);
        let size = random.magnitude(most.div_ceil(10), most);
        let is_of_university = random.chance(0.4);
        let network = 500 + random.below(UNIVERSITIES * 2) as u64;
        Self {
            days: random.within(0.1, 1.0),
            hours: random.sample(24, runs),
            sampling: random.choose(&[
                Sampling::EachRun,
                Sampling::EachRun,
                Sampling::EachDay,
                Sampling::Once,
            ]),
            size,
            models,
            documents: random.between(1, 4),
            is_conditional: random.chance(0.2),
            network: if is_of_university {
                network
            } else {
                own_network(random)
            },
            product: software(random),
            is_active: false,
            sample: random.sample(models, size),
        }
    }

    pub fn need(&self) -> u32 {
        u32::try_from(self.size * self.documents * self.hours.len()).unwrap()
    }
}

impl Client for Research {
    fn hour(&mut self, at: SimulatedHour, uses: &mut [HourOfUse], random: &mut Random) {
        if at.hour == 0 {
            self.is_active = random.chance(self.days);
            if self.sampling == Sampling::EachDay {
                self.sample = random.sample(self.models, self.size);
            }
        }
        if !self.is_active || !self.hours.contains(&at.hour) {
            return;
        }
        if self.sampling == Sampling::EachRun {
            self.sample = random.sample(self.models, self.size);
        }
        uses[0].minute = u8::try_from(random.below(60)).unwrap();
        for model in &self.sample {
            uses[0].request_model(*model, self.documents, self.is_conditional);
        }
        uses[0].visited_from(self.network, self.product, random);
    }
}

impl CiJobs {
    pub fn new(models: usize, random: &mut Random) -> Self {
        let size = random.between(1, 4);
        let products = random.between(1, 2);
        Self {
            documents: documents_of(&random.sample(models, size), random.between(1, 2)),
            jobs_a_day: random.magnitude(4, 300) as f64,
            zone: random.below(24),
            products: (0..products)
                .map(|_| {
                    if random.chance(0.2) {
                        own_product(random)
                    } else {
                        library(random)
                    }
                })
                .collect(),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a few thousand"
    )]
    pub fn need(&self) -> u32 {
        (self.jobs_a_day * self.documents.len() as f64) as u32
    }
}

impl Client for CiJobs {
    fn hour(&mut self, at: SimulatedHour, uses: &mut [HourOfUse], random: &mut Random) {
        let rate = self.jobs_a_day / 24.0 * if at.is_weekend() { 0.3 } else { 1.0 };
        for _ in 0..random.events(rate * at.daily_wave(self.zone, 0.9)) {
            for document in &self.documents {
                uses[0].request(*document, 1, false);
            }
            let network = 20_000 + random.below(RUNNER_NETWORKS) as u64;
            let product = random.choose(&self.products);
            uses[0].visited_from(network, product, random);
        }
    }
}
