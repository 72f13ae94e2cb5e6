//! The content of each request: which document, which key, and whether it is conditional.
//!
//! Pure: determined by the number of the request, so two runs send the same requests.

/// A key and its tier. Without `Debug`: a key is never printed.
#[derive(Clone)]
pub struct Key {
    pub text: String,
    pub tier: String,
}

/// The plan of requests.
pub struct Plan {
    pub targets: Vec<String>,
    pub keys: Vec<Key>,
    /// The share of conditional requests.
    pub conditional: f64,
}

/// One request, by indexes into the plan's lists.
#[derive(Clone, Copy, Debug)]
pub struct PlannedRequest {
    pub target: usize,
    pub key: usize,
    pub is_conditional: bool,
}

impl Plan {
    /// The first documents and keys are the most frequent ones, by Zipf's law.
    pub fn request(&self, number: u64) -> PlannedRequest {
        PlannedRequest {
            target: popular(self.targets.len(), chance(number, 0)),
            key: popular(self.keys.len(), chance(number, 1)),
            is_conditional: chance(number, 2) < self.conditional,
        }
    }
}

/// A number below `count` for a chance from 0 to 1. The weight of rank `r` is close to `1/r`: its logarithm is uniform.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index, rounded down"
)]
fn popular(count: usize, chance: f64) -> usize {
    let rank = (count as f64 + 1.0).powf(chance) as usize;
    rank.saturating_sub(1).min(count - 1)
}

/// A number from 0 to 1, determined by the arguments: the finalizer of splitmix64 separates even neighbours.
fn chance(number: u64, die: u64) -> f64 {
    let mut bits = (number * 4 + die + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}
