//! The content of each request: which document, which key, and whether it is conditional.
//!
//! Pure: determined by the seed and the number of the request, so two runs send the same requests.

use std::collections::BTreeMap;

/// A key and its tier. Without `Debug`: a key is never printed.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) tier: String,
}

/// The Zipf distribution: the n-th number has a probability proportional to 1/n to the power of the exponent.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    up_to: Vec<f64>,
}

/// The distribution of requests.
#[derive(Clone, Debug)]
pub(crate) struct Spread {
    /// Zipf exponent over documents; 0 for uniform.
    pub(crate) documents: f64,
    /// Zipf exponent over the keys of a tier.
    pub(crate) keys: f64,
    /// The share of each tier; by number of keys if empty.
    pub(crate) tiers: BTreeMap<String, f64>,
    /// The share of conditional requests.
    pub(crate) conditional: f64,
}

/// The plan of requests.
pub(crate) struct Plan {
    pub(crate) targets: Vec<String>,
    pub(crate) keys: Vec<Key>,
    seed: u64,
    documents: Zipf,
    /// For each tier its cumulative share, and its keys by their index in `keys`.
    tiers: Vec<(f64, Vec<usize>, Zipf)>,
    conditional: f64,
}

/// One request, by indexes into the plan's lists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlannedRequest {
    pub(crate) target: usize,
    pub(crate) key: usize,
    pub(crate) is_conditional: bool,
}

impl Zipf {
    pub(crate) fn new(count: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let weights = (1..=count).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        let mut up_to: Vec<f64> = weights.collect();
        for weight in &mut up_to {
            *weight /= sum;
        }
        Self { up_to }
    }

    /// For a number from 0 to 1.
    pub(crate) fn pick(&self, chance: f64) -> usize {
        self.up_to
            .partition_point(|up_to| *up_to <= chance)
            .min(self.up_to.len().saturating_sub(1))
    }
}

impl Plan {
    /// Fails if no request is possible: no document, no key, or no key of a tier with a share.
    pub(crate) fn new(
        targets: Vec<String>,
        keys: Vec<Key>,
        spread: &Spread,
        seed: u64,
    ) -> Result<Self, String> {
        let mut of_tier: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, key) in keys.iter().enumerate() {
            of_tier.entry(key.tier.clone()).or_default().push(at);
        }
        if let Some(tier) = spread
            .tiers
            .keys()
            .find(|tier| !of_tier.contains_key(*tier))
        {
            return Err(format!(
                "there is no key of the tier {tier}, which is to have a share"
            ));
        }
        let share = |tier: &String, keys: &Vec<usize>| {
            let of_all = if spread.tiers.is_empty() {
                keys.len() as f64
            } else {
                0.0
            };
            spread.tiers.get(tier).copied().unwrap_or(of_all)
        };
        let all: f64 = of_tier.iter().map(|(tier, keys)| share(tier, keys)).sum();
        if targets.is_empty() || all <= 0.0 {
            return Err(
                "there is nothing to request: a document and a key with a share are required"
                    .into(),
            );
        }
        let mut up_to = 0.0;
        let mut tiers = Vec::new();
        for (tier, keys) in of_tier {
            up_to += share(&tier, &keys) / all;
            let within = Zipf::new(keys.len(), spread.keys);
            tiers.push((up_to, keys, within));
        }
        let documents = Zipf::new(targets.len(), spread.documents);
        Ok(Self {
            targets,
            keys,
            seed,
            documents,
            tiers,
            conditional: spread.conditional,
        })
    }

    pub(crate) fn request(&self, number: u64) -> PlannedRequest {
        let chance = |die: u64| chance(self.seed, number, die);
        let tier = chance(0);
        let at = self
            .tiers
            .partition_point(|(up_to, ..)| *up_to <= tier)
            .min(self.tiers.len() - 1);
        let (_, keys, within) = &self.tiers[at];
        PlannedRequest {
            target: self.documents.pick(chance(1)),
            key: keys[within.pick(chance(2))],
            is_conditional: chance(3) < self.conditional,
        }
    }
}

/// A number from 0 to 1, determined by the three arguments: the finalizer of splitmix64 separates even neighbours.
fn chance(seed: u64, number: u64, die: u64) -> f64 {
    let mut bits = seed ^ (number * 4 + die + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}
