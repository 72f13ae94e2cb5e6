//! A seeded generator, and the distributions of simulated clients.

/// `splitmix64`: small, and the same on every machine.
pub struct Random(u64);

/// Views of models by popularity: the model of rank `r` has weight `r^-exponent`.
pub struct Popularity {
    /// Sums of weights, up to 1.
    sums: Vec<f64>,
    /// The models by rank.
    models: Vec<usize>,
}

pub fn mixed(state: u64) -> u64 {
    let mut z = state.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(mixed(seed ^ 0x5EED))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mixed(self.0)
    }

    /// From 0 to below 1.
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    pub fn within(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// A number below `count`, which is not 0.
    pub fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count as u64).unwrap()
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// From `low` to `high`, where small numbers are as frequent as large ones by their order of magnitude.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between two small numbers"
    )]
    pub fn magnitude(&mut self, low: usize, high: usize) -> usize {
        let exponent = self.within((low as f64).ln(), (high as f64 + 1.0).ln());
        (exponent.exp() as usize).clamp(low, high)
    }

    pub fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Different numbers below `count`, in random order.
    pub fn sample(&mut self, count: usize, size: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..count).collect();
        let size = size.min(count);
        for place in 0..size {
            let other = self.between(place, count - 1);
            numbers.swap(place, other);
        }
        numbers.truncate(size);
        numbers
    }

    /// The number of independent events with this mean: Poisson, by its normal approximation above 30.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and below 2^20"
    )]
    pub fn events(&mut self, mean: f64) -> usize {
        if mean > 30.0 {
            let normal: f64 = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
            return (mean + mean.sqrt() * normal).round().max(0.0) as usize;
        }
        let limit = (-mean).exp();
        let mut product = self.uniform();
        let mut events = 0;
        while product > limit {
            product *= self.uniform();
            events += 1;
        }
        events
    }
}

impl Popularity {
    pub fn new(models: usize, exponent: f64, random: &mut Random) -> Self {
        let weights: Vec<f64> = (1..=models)
            .map(|rank| (rank as f64).powf(-exponent))
            .collect();
        let all: f64 = weights.iter().sum();
        let sums = weights.iter().scan(0.0, |sum, weight| {
            *sum += weight / all;
            Some(*sum)
        });
        Self {
            sums: sums.collect(),
            models: random.sample(models, models),
        }
    }

    pub fn draw(&self, random: &mut Random) -> usize {
        let at = random.uniform();
        let rank = self.sums.partition_point(|sum| *sum < at);
        self.models[rank.min(self.models.len() - 1)]
    }
}
