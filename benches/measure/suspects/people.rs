//! People at their computers: offices, hobbyists, courses.

use super::{
    random::Random,
    requests::{Client, Hosting, HourOfUse, SimulatedHour, library, own_network, software},
    scheduled::{Dashboard, documents_of},
};

/// Developers with a key each in one office.
pub struct Office {
    developers: Vec<Developer>,
    /// The networks of a day: one, or some that follow each other.
    network: OfficeNetwork,
    today: Vec<(usize, u64)>,
    zone: usize,
}

#[derive(Clone, Copy, PartialEq)]
pub enum OfficeNetwork {
    Constant(u64),
    Changing,
}

struct Developer {
    product: u64,
    work: Work,
}

enum Work {
    /// Tries some models, now and then.
    Interactive { interests: Vec<usize>, share: f64 },
    /// Has a script that runs each hour.
    Scheduled(Dashboard),
    /// Operates something in these hours of each day.
    InShifts {
        interests: Vec<usize>,
        first: usize,
        hours: usize,
    },
}

/// One person at weekends.
pub struct Hobbyist {
    interests: Vec<usize>,
    repeats: usize,
    product: u64,
    network: u64,
    hours: Vec<usize>,
}

/// Students with a key each who run the same notebook.
pub struct Course {
    notebook: Vec<usize>,
    weekdays: Vec<usize>,
    first_hour: usize,
    campus: u64,
    homes: Vec<u64>,
    product: u64,
}

impl Office {
    pub fn new(
        models: usize,
        most: usize,
        people: usize,
        is_changing: bool,
        random: &mut Random,
    ) -> Self {
        let network = own_network(random);
        let network = if is_changing {
            OfficeNetwork::Changing
        } else {
            OfficeNetwork::Constant(network)
        };
        let libraries: Vec<u64> = (0..random.between(1, 2)).map(|_| library(random)).collect();
        // A script that colleagues copy from each other.
        let example = Dashboard::new(models, most, random);
        let developers = (0..people).map(|_| {
            let product = random.choose(&libraries);
            let size = random.between(3, most.min(40));
            let interests = random.sample(models, size);
            let work = match random.below(10) {
                0..=4 => Work::Interactive {
                    interests,
                    share: random.within(0.1, 0.8),
                },
                5 | 6 => Work::Scheduled(example.clone()),
                7 => Work::Scheduled(Dashboard::new(models, most, random)),
                _ => Work::InShifts {
                    interests,
                    first: random.choose(&[0, 6, 8, 12, 16]),
                    hours: 8,
                },
            };
            Developer { product, work }
        });
        Self {
            developers: developers.collect(),
            network,
            today: Vec::new(),
            zone: random.below(24),
        }
    }

    /// Documents of each developer in a day.
    pub fn needs(&self) -> impl Iterator<Item = u32> {
        self.developers
            .iter()
            .map(|developer| match &developer.work {
                Work::Scheduled(program) => program.need(),
                Work::Interactive { .. } | Work::InShifts { .. } => 200,
            })
    }

    /// The networks of the day, each with its first hour.
    fn networks_of_day(&self, random: &mut Random) -> Vec<(usize, u64)> {
        match self.network {
            OfficeNetwork::Constant(network) => vec![(0, network)],
            OfficeNetwork::Changing => {
                let changes = random.between(1, 3);
                let first = (0, own_network(random));
                let more = (0..changes).map(|_| (random.between(1, 23), own_network(random)));
                let mut networks: Vec<(usize, u64)> = std::iter::once(first).chain(more).collect();
                networks.sort_unstable();
                networks
            }
        }
    }
}

impl Client for Office {
    fn hour(&mut self, at: SimulatedHour, uses: &mut [HourOfUse], random: &mut Random) {
        if at.hour == 0 {
            self.today = self.networks_of_day(random);
        }
        let network = self
            .today
            .iter()
            .rev()
            .find(|(first, _)| *first <= at.hour)
            .unwrap()
            .1;
        for (developer, to) in self.developers.iter().zip(uses) {
            match &developer.work {
                Work::Interactive { interests, share } => {
                    if at.is_worked(self.zone) && random.chance(*share) {
                        tries(interests, to, random);
                    }
                }
                Work::Scheduled(program) => {
                    let program = Dashboard {
                        hosting: Hosting::Fixed(Vec::new()),
                        ..program.clone()
                    };
                    program.run(at, to, random);
                }
                Work::InShifts {
                    interests,
                    first,
                    hours,
                } => {
                    let since = (at.local(self.zone) + 24 - first) % 24;
                    if since < *hours && random.chance(0.9) {
                        tries(interests, to, random);
                    }
                }
            }
            if !to.demands.is_empty() {
                to.stayed_at(network, developer.product);
            }
        }
    }
}

/// A person requests some models, some of them several times.
fn tries(interests: &[usize], to: &mut HourOfUse, random: &mut Random) {
    to.minute = u8::try_from(random.below(60)).unwrap();
    for _ in 0..random.between(1, 10) {
        let model = random.choose(interests);
        for _ in 0..random.between(1, 4) {
            to.request_model(model, 1, false);
        }
    }
}

impl Hobbyist {
    pub fn new(models: usize, random: &mut Random) -> Self {
        let size = random.between(1, 20);
        let hours = random.between(2, 8);
        Self {
            interests: random.sample(models, size),
            repeats: random.between(1, 10),
            product: software(random),
            network: 0,
            hours: random.sample(24, hours),
        }
    }

    pub fn need(&self) -> u32 {
        u32::try_from(self.interests.len() * self.repeats * self.hours.len()).unwrap()
    }
}

impl Client for Hobbyist {
    fn hour(&mut self, at: SimulatedHour, uses: &mut [HourOfUse], random: &mut Random) {
        if at.hour == 0 {
            self.network = own_network(random);
        }
        if at.is_weekend() && self.hours.contains(&at.hour) && random.chance(0.8) {
            for document in documents_of(&self.interests, 1) {
                uses[0].request(document, u32::try_from(self.repeats).unwrap(), false);
            }
            uses[0].stayed_at(self.network, self.product);
        }
    }
}

impl Course {
    pub fn new(models: usize, students: usize, random: &mut Random) -> Self {
        let days = random.between(1, 5);
        Self {
            notebook: {
                let size = random.between(5, 10);
                random.sample(models, size)
            },
            weekdays: random.sample(5, days),
            first_hour: random.between(7, 16),
            campus: own_network(random),
            homes: (0..students).map(|_| own_network(random)).collect(),
            product: library(random),
        }
    }
}

impl Client for Course {
    fn hour(&mut self, at: SimulatedHour, uses: &mut [HourOfUse], random: &mut Random) {
        let is_taught = self.weekdays.contains(&(at.day % 7))
            && (0..2).contains(&at.hour.wrapping_sub(self.first_hour));
        for (home, to) in self.homes.iter().zip(uses) {
            let is_at_home = at.hour >= 18 && random.chance(0.04);
            if (is_taught && random.chance(0.9)) || is_at_home {
                for document in documents_of(&self.notebook, 1) {
                    to.request(document, 1, false);
                }
                to.visited_from(
                    if is_at_home { *home } else { self.campus },
                    self.product,
                    random,
                );
            }
        }
    }
}
