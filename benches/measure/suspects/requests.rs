//! The requests of an application in an hour, as a client makes them: not yet limited and not yet recorded.

use std::ops::RangeInclusive;

use super::random::Random;

/// Documents about a model that a client may request: the model, its drift, and histories.
pub const DOCUMENTS: usize = 6;
/// Windows of ten minutes in an hour.
const WINDOWS: u8 = 6;
/// Kinds of software that many clients have in common, the most frequent first.
const LIBRARIES: usize = 14;
/// Platforms whose customers leave through the same networks.
const PLATFORMS: usize = 8;
/// Networks of a provider of cloud functions.
const FUNCTION_NETWORKS: usize = 300;

/// An hour of the simulated month, which begins on a Monday.
#[derive(Clone, Copy)]
pub struct SimulatedHour {
    pub day: usize,
    pub hour: usize,
}

/// A document that is requested several times.
pub struct Demand {
    /// The model times [`DOCUMENTS`], and the document of the model.
    pub document: usize,
    pub times: u32,
    /// Whether the client sends `If-None-Match`.
    pub is_conditional: bool,
}

/// A network and a product that were used in some windows.
#[derive(Clone)]
pub struct Sighting {
    pub network: u64,
    pub product: u64,
    pub windows: RangeInclusive<u8>,
}

/// The requests of an application in an hour.
#[derive(Default)]
pub struct HourOfUse {
    pub demands: Vec<Demand>,
    pub sightings: Vec<Sighting>,
    /// The minute of the first request.
    pub minute: u8,
}

/// The networks from which a program makes its requests.
#[derive(Clone)]
pub enum Hosting {
    /// Servers or an office: always these.
    Fixed(Vec<u64>),
    /// Cloud functions: this many of the provider's networks in an hour.
    Functions(usize),
}

/// What one or more applications of a client do.
pub trait Client {
    /// Adds the requests of an hour, for each application to its own.
    fn hour(&mut self, at: SimulatedHour, uses: &mut [HourOfUse], random: &mut Random);
}

impl SimulatedHour {
    pub const fn is_weekend(self) -> bool {
        self.day % 7 >= 5
    }

    /// The hour of the day in a time zone.
    pub const fn local(self, zone: usize) -> usize {
        (self.hour + zone) % 24
    }

    /// Whether it is a working hour in a time zone.
    pub const fn is_worked(self, zone: usize) -> bool {
        let hour = self.local(zone);
        !self.is_weekend() && hour >= 9 && hour < 18
    }

    /// The use of a product for people in a time zone, as a factor with the mean 1.
    pub fn daily_wave(self, zone: usize, amplitude: f64) -> f64 {
        let angle = (self.local(zone) as f64 - 15.0) / 24.0 * std::f64::consts::TAU;
        1.0 + amplitude * angle.cos()
    }
}

impl HourOfUse {
    pub fn request(&mut self, document: usize, times: u32, is_conditional: bool) {
        if times > 0 {
            self.demands.push(Demand {
                document,
                times,
                is_conditional,
            });
        }
    }

    /// Requests the first documents of a model once.
    pub fn request_model(&mut self, model: usize, documents: usize, is_conditional: bool) {
        for document in 0..documents {
            self.request(model * DOCUMENTS + document, 1, is_conditional);
        }
    }

    pub fn came_from(&mut self, network: u64, product: u64, windows: RangeInclusive<u8>) {
        self.sightings.push(Sighting {
            network,
            product,
            windows,
        });
    }

    /// A short visit at a random time.
    pub fn visited_from(&mut self, network: u64, product: u64, random: &mut Random) {
        let window = u8::try_from(random.below(usize::from(WINDOWS))).unwrap();
        self.came_from(network, product, window..=window);
    }

    /// Requests during the whole hour.
    pub fn stayed_at(&mut self, network: u64, product: u64) {
        self.came_from(network, product, 0..=WINDOWS - 1);
    }
}

impl Hosting {
    /// The hosting of a program that runs by itself.
    pub fn any(random: &mut Random) -> Self {
        match random.below(20) {
            0..=11 => Self::Fixed(vec![own_network(random)]),
            12 | 13 => Self::Fixed(
                (0..random.between(2, 4))
                    .map(|_| own_network(random))
                    .collect(),
            ),
            14..=16 => Self::platform(random),
            _ => Self::Functions(random.between(1, 4)),
        }
    }

    /// A platform, which has one to three networks for all of its customers.
    pub fn platform(random: &mut Random) -> Self {
        let platform = random.below(PLATFORMS) as u64;
        Self::Fixed(
            (0..=platform % 3)
                .map(|number| 100 + platform * 10 + number)
                .collect(),
        )
    }

    /// Adds the sightings of an hour.
    pub fn appear(&self, product: u64, to: &mut HourOfUse, random: &mut Random) {
        match self {
            Self::Fixed(networks) => networks
                .iter()
                .for_each(|network| to.stayed_at(*network, product)),
            Self::Functions(count) => {
                for _ in 0..*count {
                    to.visited_from(function_network(random), product, random);
                }
            }
        }
    }
}

/// A network that no other client has.
pub fn own_network(random: &mut Random) -> u64 {
    1_000_000 + random.next() % (1 << 40)
}

fn function_network(random: &mut Random) -> u64 {
    10_000 + random.below(FUNCTION_NETWORKS) as u64
}

/// A product of a user agent: mostly a common library, else a name of its own.
pub fn software(random: &mut Random) -> u64 {
    if random.chance(0.25) {
        own_product(random)
    } else {
        library(random)
    }
}

/// A common library: each is used by half as many as the one before, down to a few per cent.
pub fn library(random: &mut Random) -> u64 {
    let rank = (0..4).find(|_| random.chance(0.4)).unwrap_or(4);
    if rank < 4 {
        rank
    } else {
        4 + random.below(LIBRARIES - 4) as u64
    }
}

pub fn own_product(random: &mut Random) -> u64 {
    1_000 + random.next() % (1 << 40)
}
