//! The models of the simulator: invented names and providers, and a behaviour for each.

/// How a simulated model changes over time. Every behaviour is periodic, so that a demo shows the same variety at any
/// time: there is always one model that has broken, which causes an alert and an incident, and another whose level has
/// fallen within the last two days, which is a degradation. Times are in hours. A cycle of 115 hours has no common
/// factor with a week, so that the falls do not look like hour or weekday effects.
#[derive(Clone, Copy, Debug)]
pub enum SimulatedHabit {
    /// The model does not change.
    Steady,
    /// The model loses points evenly over the cycle, and regains them at its end.
    Drifts { cycle: u64, phase: u64, loss: f64 },
    /// The model loses points abruptly for some hours.
    Breaks {
        cycle: u64,
        phase: u64,
        hours: u64,
        loss: f64,
    },
    /// All runs of the model fail for some hours.
    Fails { cycle: u64, phase: u64, hours: u64 },
    /// The model has runs only for some hours of the cycle.
    Visits { cycle: u64, phase: u64, hours: u64 },
}

/// A model of the simulator.
#[derive(Clone, Copy, Debug)]
pub struct CatalogueModel {
    /// The id of the model.
    pub id: &'static str,
    /// The name of the model.
    pub name: &'static str,
    /// The provider of the model.
    pub provider: &'static str,
    /// Price in dollars per million tokens of input and output.
    pub prices: (f64, f64),
    /// The typical latency in milliseconds.
    pub latency_ms: f64,
    /// Tokens per response.
    pub tokens: f64,
    /// The typical score in each suite, from 0 to 1.
    pub level: [f64; 3],
    /// The behaviour of the model.
    pub habit: SimulatedHabit,
}

/// All models. At most one of the two preview models is present at any time, so that there is always a model without
/// data.
#[rustfmt::skip]
pub const CATALOGUE: [CatalogueModel; 14] = [
    CatalogueModel { id: "atlas-4-large", name: "Atlas 4 Large", provider: "meridian", prices: (5.0, 20.0), latency_ms: 4_200.0, tokens: 1_900.0,
        level: [0.86, 0.85, 0.80], habit: SimulatedHabit::Steady },
    CatalogueModel { id: "atlas-4-small", name: "Atlas 4 Small", provider: "meridian", prices: (0.5, 2.0), latency_ms: 1_300.0, tokens: 1_100.0,
        level: [0.72, 0.69, 0.70], habit: SimulatedHabit::Breaks { cycle: 18 * 24, phase: 0, hours: 168, loss: 0.11 } },
    CatalogueModel { id: "atlas-3-large", name: "Atlas 3 Large", provider: "meridian", prices: (4.0, 16.0), latency_ms: 3_900.0, tokens: 1_500.0,
        level: [0.77, 0.75, 0.71], habit: SimulatedHabit::Drifts { cycle: 26 * 24, phase: 100, loss: 0.06 } },
    CatalogueModel { id: "lantern-2-pro", name: "Lantern 2 Pro", provider: "halcyon", prices: (3.0, 15.0), latency_ms: 5_100.0, tokens: 2_600.0,
        level: [0.84, 0.88, 0.77], habit: SimulatedHabit::Steady },
    CatalogueModel { id: "lantern-2-flash", name: "Lantern 2 Flash", provider: "halcyon", prices: (0.3, 1.2), latency_ms: 700.0, tokens: 900.0,
        level: [0.66, 0.65, 0.63], habit: SimulatedHabit::Fails { cycle: 9 * 24, phase: 40, hours: 7 } },
    CatalogueModel { id: "lantern-1", name: "Lantern 1", provider: "halcyon", prices: (2.0, 8.0), latency_ms: 3_000.0, tokens: 1_400.0,
        level: [0.58, 0.63, 0.54], habit: SimulatedHabit::Breaks { cycle: 115, phase: 0, hours: 54, loss: 0.12 } },
    CatalogueModel { id: "kestrel-70b", name: "Kestrel 70B", provider: "borealis", prices: (0.9, 0.9), latency_ms: 2_100.0, tokens: 1_200.0,
        level: [0.70, 0.71, 0.62], habit: SimulatedHabit::Breaks { cycle: 18 * 24, phase: 6 * 24, hours: 168, loss: 0.07 } },
    CatalogueModel { id: "kestrel-12b", name: "Kestrel 12B", provider: "borealis", prices: (0.15, 0.15), latency_ms: 900.0, tokens: 1_000.0,
        level: [0.52, 0.50, 0.44], habit: SimulatedHabit::Breaks { cycle: 115, phase: 28, hours: 54, loss: 0.12 } },
    CatalogueModel { id: "kestrel-code", name: "Kestrel Code", provider: "borealis", prices: (1.1, 1.1), latency_ms: 1_800.0, tokens: 1_300.0,
        level: [0.81, 0.60, 0.68], habit: SimulatedHabit::Breaks { cycle: 115, phase: 86, hours: 54, loss: 0.12 } },
    CatalogueModel { id: "basalt-3", name: "Basalt 3", provider: "quarry", prices: (1.5, 6.0), latency_ms: 2_500.0, tokens: 1_350.0,
        level: [0.74, 0.73, 0.78], habit: SimulatedHabit::Breaks { cycle: 18 * 24, phase: 12 * 24, hours: 168, loss: 0.09 } },
    CatalogueModel { id: "basalt-3-mini", name: "Basalt 3 Mini", provider: "quarry", prices: (0.2, 0.8), latency_ms: 800.0, tokens: 950.0,
        level: [0.60, 0.57, 0.64], habit: SimulatedHabit::Breaks { cycle: 115, phase: 57, hours: 54, loss: 0.12 } },
    CatalogueModel { id: "estuary-1", name: "Estuary 1", provider: "tidewater", prices: (2.5, 10.0), latency_ms: 2_900.0, tokens: 1_700.0,
        level: [0.69, 0.76, 0.66], habit: SimulatedHabit::Fails { cycle: 9 * 24, phase: 150, hours: 4 } },
    CatalogueModel { id: "estuary-2-preview", name: "Estuary 2 (preview)", provider: "tidewater", prices: (3.5, 14.0), latency_ms: 3_600.0, tokens: 2_000.0,
        level: [0.79, 0.81, 0.73], habit: SimulatedHabit::Visits { cycle: 28 * 24, phase: 0, hours: 13 * 24 } },
    CatalogueModel { id: "estuary-lite-preview", name: "Estuary Lite (preview)", provider: "tidewater", prices: (0.4, 1.6), latency_ms: 1_000.0, tokens: 900.0,
        level: [0.56, 0.59, 0.55], habit: SimulatedHabit::Visits { cycle: 28 * 24, phase: 14 * 24, hours: 13 * 24 } },
];
