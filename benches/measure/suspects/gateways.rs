//! Two gateways that limit the requests of a client and record them, and the record of a day as it is stored.

use scoregate_base::{
    clock::Wall,
    evidence::{DayEvidence, DocumentMark, HourEvidence, Origin, catalogue_size, model_position},
    plans::TierLimits,
    routes::{DocumentKey, ModelId, Period, Query, Route},
};

use super::{
    random::{Random, mixed},
    requests::{DOCUMENTS, Demand, HourOfUse, SimulatedHour},
};

const DAY_SECONDS: u64 = 86_400;
/// The first day of the simulation since the epoch.
pub const FIRST_DAY: u32 = 20_787;
/// The share of documents that differ after a refresh.
const CHANGED: f64 = 0.7;
/// Sizes of the documents of a model with a name of usual length.
const DOCUMENT_BYTES: [u32; DOCUMENTS] = [2_000, 9_000, 1_200, 16_000, 30_000, 3_000];

/// The models of the service.
pub struct SimulatedCatalogue {
    /// Marks of the documents of all models.
    marks: Vec<DocumentMark>,
    positions: u16,
    pub models: usize,
}

/// The gateways, for one application on one day.
pub struct GatewayPair<'c> {
    catalogue: &'c SimulatedCatalogue,
    seed: u64,
    /// The key of the hashes of networks and products, which is of the day.
    key: u64,
    limits: TierLimits,
    left_today: u32,
    day: DayEvidence,
}

impl SimulatedCatalogue {
    pub fn new(models: usize) -> Self {
        let ids: Vec<ModelId> = (0..models)
            .map(|model| ModelId::new(&format!("vendor-{}.model-{model}", model % 11)).unwrap())
            .collect();
        Self {
            marks: ids.iter().flat_map(marks).collect(),
            positions: catalogue_size(ids.iter().map(ModelId::as_str)),
            models,
        }
    }

    /// The most models that an honest client requests at a refresh: 30 %.
    pub const fn most_honest(&self) -> usize {
        self.models * 3 / 10
    }
}

fn marks(id: &ModelId) -> [DocumentMark; DOCUMENTS] {
    let documents: [(Route, Period); DOCUMENTS] = [
        (Route::Model, Period::Day),
        (Route::History, Period::Day),
        (Route::Drift, Period::Day),
        (Route::History, Period::Week),
        (Route::History, Period::Month),
        (Route::History, Period::Latest),
    ];
    documents.map(|(route, period)| {
        let query = Query {
            period: Some(period),
            ..Query::default()
        };
        let mark = DocumentMark::of(&DocumentKey::new(route, Some(id.clone()), query, period));
        assert_eq!(mark.model, Some(model_position(id.as_str())));
        mark
    })
}

impl<'c> GatewayPair<'c> {
    pub fn of(
        catalogue: &'c SimulatedCatalogue,
        seed: u64,
        day: usize,
        limits: TierLimits,
    ) -> Self {
        let key = mixed(seed ^ mixed(day as u64));
        Self {
            catalogue,
            seed,
            key,
            limits,
            left_today: limits.day,
            day: DayEvidence::default(),
        }
    }

    /// Records an hour of an application.
    pub fn record(&mut self, at: SimulatedHour, requests: &HourOfUse, random: &mut Random) {
        if requests.demands.is_empty() {
            return;
        }
        let begin = (u64::from(FIRST_DAY) + at.day as u64) * DAY_SECONDS + at.hour as u64 * 3_600;
        let minute = |minute: u64| Wall::from_seconds(begin + minute * 60);
        let mut seen = [0, 1].map(|_| HourEvidence::of(HourEvidence::hour_of(minute(0))));
        for window in 0..6_u8 {
            for sighting in requests
                .sightings
                .iter()
                .filter(|sighting| sighting.windows.contains(&window))
            {
                let hashed = |kind: u64, value: u64| {
                    u16::try_from(mixed(self.key ^ mixed(value << 1 | kind)) >> 48).unwrap()
                };
                let origin = Origin {
                    network: hashed(0, sighting.network),
                    agent: hashed(1, sighting.product),
                };
                let gateway = usize::from(origin.network.wrapping_add(u16::from(window)) % 2);
                seen[gateway].came_from(origin, minute(u64::from(window) * 10 + 3));
            }
        }
        let all: u64 = requests
            .demands
            .iter()
            .map(|demand| u64::from(demand.times))
            .sum();
        let share = (f64::from(self.limits.minute) * 60.0 / all as f64).min(1.0);
        for demand in &requests.demands {
            self.serve(
                demand,
                share,
                minute(u64::from(requests.minute)),
                &mut seen,
                random,
            );
        }
        let [mut merged, other] = seen;
        merged.add(&other);
        self.day.add(&merged, self.catalogue.positions);
    }

    /// Serves a document as often as the limits allow: a share of the requests by the minute, and the rest of the day.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a u32"
    )]
    fn serve(
        &mut self,
        demand: &Demand,
        share: f64,
        at: Wall,
        seen: &mut [HourEvidence; 2],
        random: &mut Random,
    ) {
        let mark = self.catalogue.marks[demand.document];
        // Sizes vary by the model, and a refresh changes the same documents for all clients.
        let varied = 90 + mixed((demand.document / DOCUMENTS) as u64) % 21;
        let bytes =
            DOCUMENT_BYTES[demand.document % DOCUMENTS] * u32::try_from(varied).unwrap() / 100;
        let refresh = mixed(self.seed ^ mixed(u64::from(HourEvidence::hour_of(at))));
        let has_changed = Random::new(refresh ^ demand.document as u64).chance(CHANGED);
        let served = (f64::from(demand.times) * share + random.uniform()).floor() as u32;
        let served = if share < 1.0 {
            served.min(demand.times)
        } else {
            demand.times
        };
        for number in 0..demand.times {
            let gateway = &mut seen[random.below(2)];
            let is_new = number == 0 && has_changed;
            if number >= served {
                gateway.limited();
            } else if demand.is_conditional && !is_new {
                gateway.unchanged(mark, at);
            } else if self.left_today == 0 {
                gateway.limited();
            } else {
                self.left_today -= 1;
                gateway.delivered(mark, bytes, demand.is_conditional, at);
            }
        }
    }

    /// The record of the day as it is read from the store after it was compacted.
    pub fn stored(mut self) -> DayEvidence {
        self.day = DayEvidence::decode(&self.day.encode()).unwrap();
        self.day.compact();
        DayEvidence::decode(&self.day.encode()).unwrap()
    }
}
