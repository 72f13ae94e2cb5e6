//! Clients that copy the catalogue, with one key or with several.

use super::{
    random::Random,
    requests::{Client, Hosting, HourOfUse, SimulatedHour, own_network, software},
};

/// Requests of each hour that fail before they reach a gateway.
const FAILED: f64 = 0.005;

/// When a mirror requests its models.
#[derive(Clone, Copy)]
pub enum SweepSchedule {
    /// At each refresh.
    EachRefresh,
    /// At each refresh, but this share of hours is skipped, and the others begin at a random minute and last up to 40 minutes.
    Jittered(f64),
    /// Each model once in this many hours, which divide a day.
    Spread(usize),
    /// Each model once a day, in these hours.
    Night { first: usize, hours: usize },
}

/// How a mirror uses its keys.
#[derive(Clone, Copy)]
pub enum KeyUse {
    /// The first key only.
    One,
    /// One key after the other through the day.
    InTurn,
    /// The next key after this many requests.
    ByQuota(usize),
    /// The next key for each request.
    RoundRobin,
    /// A random key for each request.
    AtRandom,
    /// Each key has its own part of the catalogue.
    ByPart,
}

/// A copy of the catalogue, or of a part of it.
pub struct CatalogueMirror {
    models: Vec<usize>,
    documents: usize,
    is_conditional: bool,
    schedule: SweepSchedule,
    key_use: KeyUse,
    /// The network and the software of each key.
    origins: Vec<(Hosting, u64)>,
    /// Whether these differ.
    is_apart: bool,
    /// Models of a sweep that began in the hour before.
    rest: Vec<usize>,
    /// Requests since the beginning of the day.
    requests: usize,
    /// The minute of each sweep, if it is always the same.
    minute: Option<u8>,
}

impl CatalogueMirror {
    /// A mirror of this share of the models, with one key.
    pub fn new(models: usize, share: f64, schedule: SweepSchedule, random: &mut Random) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a small number"
        )]
        let size = (models as f64 * share).round() as usize;
        Self {
            models: random.sample(models, size),
            documents: random.choose(&[1, 1, 1, 2, 3]),
            is_conditional: random.chance(0.3),
            schedule,
            key_use: KeyUse::One,
            origins: vec![(Hosting::any(random), software(random))],
            is_apart: false,
            rest: Vec::new(),
            requests: 0,
            minute: None,
        }
    }

    /// The same with several keys of one program.
    pub fn with_keys(mut self, key_use: KeyUse, keys: usize) -> Self {
        self.key_use = key_use;
        self.origins = vec![self.origins[0].clone(); keys];
        self
    }

    /// One document of each model, as a free key would have to be used.
    pub fn with_one_document(mut self) -> Self {
        self.documents = 1;
        self
    }

    /// Sweeps that begin in the same minute of each hour.
    pub fn at_minute(mut self, minute: u8) -> Self {
        self.minute = Some(minute);
        self
    }

    /// Each key with a network and software of its own.
    pub fn with_origins_apart(mut self, random: &mut Random) -> Self {
        self.is_apart = true;
        for origin in &mut self.origins {
            *origin = (Hosting::Fixed(vec![own_network(random)]), software(random));
        }
        self
    }

    /// Documents of a day, of all keys.
    pub fn need(&self) -> u32 {
        let sweeps = match self.schedule {
            SweepSchedule::EachRefresh | SweepSchedule::Jittered(_) => 24,
            SweepSchedule::Spread(hours) => 24 / hours,
            SweepSchedule::Night { .. } => 1,
        };
        u32::try_from(self.models.len() * self.documents * sweeps).unwrap()
    }

    pub fn keys(&self) -> usize {
        self.origins.len()
    }

    /// The models of an hour.
    fn swept(&mut self, at: SimulatedHour, random: &mut Random) -> Vec<usize> {
        let part = |number: usize, of: usize| {
            let size = self.models.len();
            self.models[number * size / of..(number + 1) * size / of].to_vec()
        };
        match self.schedule {
            SweepSchedule::EachRefresh => self.models.clone(),
            SweepSchedule::Jittered(skipped) => {
                let mut swept = std::mem::take(&mut self.rest);
                if !random.chance(skipped) {
                    let begin = random.below(60);
                    let length = random.between(2, 40);
                    let within = self.models.len() * (60 - begin).min(length) / length;
                    swept.extend(&self.models[..within]);
                    self.rest = self.models[within..].to_vec();
                }
                swept.sort_unstable();
                swept.dedup();
                swept
            }
            SweepSchedule::Spread(hours) => part(at.hour % hours, hours),
            SweepSchedule::Night { first, hours } => {
                let since = (at.hour + 24 - first) % 24;
                if since < hours {
                    part(since, hours)
                } else {
                    Vec::new()
                }
            }
        }
    }

    fn key(&self, at: SimulatedHour, model: usize, random: &mut Random) -> usize {
        let keys = self.keys();
        match self.key_use {
            KeyUse::One => 0,
            KeyUse::InTurn => at.hour * keys / 24,
            KeyUse::ByQuota(quota) => (self.requests / quota) % keys,
            KeyUse::RoundRobin => self.requests % keys,
            KeyUse::AtRandom => random.below(keys),
            KeyUse::ByPart => model % keys,
        }
    }
}

impl Client for CatalogueMirror {
    fn hour(&mut self, at: SimulatedHour, uses: &mut [HourOfUse], random: &mut Random) {
        if at.hour == 0 {
            self.requests = 0;
            if matches!(self.schedule, SweepSchedule::Spread(24)) && random.chance(0.5) {
                self.models.reverse();
            }
        }
        if random.chance(FAILED) {
            return;
        }
        let minute = u8::try_from(random.below(8)).unwrap();
        let minute = self.minute.unwrap_or(minute);
        for model in self.swept(at, random) {
            if random.chance(FAILED) {
                continue;
            }
            let key = self.key(at, model, random);
            self.requests += 1;
            uses[key].minute = minute;
            uses[key].request_model(model, self.documents, self.is_conditional);
        }
        // The keys of one program share its networks of the hour.
        let mut of_program = HourOfUse::default();
        let (hosting, product) = &self.origins[0];
        hosting.appear(*product, &mut of_program, random);
        for ((hosting, product), to) in self.origins.iter().zip(uses) {
            if to.demands.is_empty() {
                continue;
            }
            if self.is_apart {
                hosting.appear(*product, to, random);
            } else {
                to.sightings.clone_from(&of_program.sightings);
            }
        }
    }
}
