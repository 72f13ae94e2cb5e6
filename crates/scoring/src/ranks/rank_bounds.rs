//! How certain the ranks of models are, determined once for a whole snapshot from the differences between their scores.

use std::cmp::Reverse;

use scoregate_base::routes::Period;

use super::{
    differences::{ComparedScore, NoiseOfPair, Separation, UsualNoise},
    joint_tail::joint_tail,
    parallel,
};
use crate::{
    measure::Measure,
    method,
    model_state::{ModelState, RankBounds},
    student::TailQuantiles,
};

/// Number of models whose deviations stay in the CPU cache while they are compared with all others.
const TILE: usize = 16;

/// The models that a measure can compare over a period.
struct Ranking<'a> {
    /// The score of each model; `None` if its rank is unknown.
    scores: Vec<Option<RankedScore<'a>>>,
    /// The indexes of the known scores, best first.
    order: Vec<usize>,
    /// The number of models with a score.
    listed: usize,
    /// The quantiles for all comparisons together and for a single comparison.
    quantiles: [TailQuantiles; 2],
    usual: Option<UsualNoise>,
    open: Vec<OpenPair>,
}

/// A score in a ranking, and the numbers of scores that are certainly above and below it.
struct RankedScore<'a> {
    published: f64,
    score: ComparedScore<'a>,
    above: usize,
    below: usize,
}

/// Two scores whose order is not certain yet.
struct OpenPair {
    better: usize,
    worse: usize,
    errors: f64,
    df: f64,
}

/// Determines the possible ranks of every model.
pub fn determine(model_states: &mut [ModelState]) {
    let ranks = parallel::map(&Measure::ALL, |measure| rank_bounds(model_states, *measure));
    for (of_measure, ranks) in (0..).zip(ranks) {
        for (of_period, ranks) in (0..).zip(ranks) {
            for (model_state, bounds) in model_states.iter_mut().zip(ranks) {
                let place = model_state.ranks.get_mut(of_measure);
                place
                    .and_then(|ranks: &mut [_; 4]| ranks.get_mut(of_period))
                    .into_iter()
                    .for_each(|place| *place = bounds);
            }
        }
    }
}

/// The rank bounds of each model over each period.
fn rank_bounds(models: &[ModelState], measure: Measure) -> [Vec<Option<RankBounds>>; 4] {
    let mut rankings = Period::ALL.map(|period| Ranking::of(models, period, measure));
    let indexes: Vec<usize> = (0..models.len()).collect();
    for tile in indexes.chunks(TILE) {
        for other in &indexes {
            for one in tile.iter().filter(|one| *one < other) {
                let noise = NoiseOfPair::default();
                for ranking in &mut rankings {
                    ranking.compare(*one, *other, &noise);
                }
            }
        }
    }
    rankings.map(Ranking::bounds)
}

impl<'a> RankedScore<'a> {
    /// The score of a model; `None` if its uncertainty is unknown, or if it has too few rounds.
    fn of(model: &'a ModelState, period: Period, measure: Measure) -> Option<Self> {
        let score = ComparedScore::of(model, period, measure)?;
        let published = model.over(period).published(measure)?.score;
        let ranked = Self {
            published,
            score,
            above: 0,
            below: 0,
        };
        (!ranked.score.has_few_rounds()).then_some(ranked)
    }
}

impl<'a> Ranking<'a> {
    fn of(models: &'a [ModelState], period: Period, measure: Measure) -> Self {
        let listed = models
            .iter()
            .filter(|model| model.over(period).published(measure).is_some());
        let scores: Vec<Option<RankedScore<'a>>> = models
            .iter()
            .map(|model| RankedScore::of(model, period, measure))
            .collect();
        let mut known: Vec<(usize, &RankedScore<'a>)> = (0..)
            .zip(&scores)
            .filter_map(|(index, score)| Some((index, score.as_ref()?)))
            .collect();
        // Published scores are never negative zero, so their bits have the same order.
        known.sort_by_key(|(_, score)| Reverse(score.published.to_bits()));
        let neighbours = known.iter().zip(known.iter().skip(1));
        let usual = UsualNoise::of(neighbours.map(|(one, next)| [&one.1.score, &next.1.score]));
        let earlier: Vec<usize> = (0..known.len()).collect();
        let tails = [joint_tail(&earlier), method::INTERVAL_TAIL];
        Self {
            order: known.into_iter().map(|(index, _)| index).collect(),
            scores,
            listed: listed.count(),
            quantiles: tails.map(TailQuantiles::of),
            usual,
            open: Vec::new(),
        }
    }

    /// Compares two models. The id of the second model sorts after the id of the first.
    fn compare(&mut self, one: usize, other: usize, noise: &NoiseOfPair<'a>) {
        let [Some(Some(first)), Some(Some(second))] =
            [one, other].map(|index| self.scores.get(index))
        else {
            return;
        };
        let is_first = first.published >= second.published;
        let [better, worse] = if is_first {
            [first, second]
        } else {
            [second, first]
        };
        let quantiles = self.quantiles.each_ref();
        let separation = better
            .score
            .separation(&worse.score, quantiles, noise, self.usual);
        let [better, worse] = if is_first { [one, other] } else { [other, one] };
        match separation {
            Separation::Sure => self.separate(better, worse),
            Separation::Open { errors, df } => self.open.push(OpenPair {
                better,
                worse,
                errors,
                df,
            }),
            Separation::Unsure => {}
        }
    }

    fn separate(&mut self, better: usize, worse: usize) {
        if let Some(Some(score)) = self.scores.get_mut(better) {
            score.below += 1;
        }
        if let Some(Some(score)) = self.scores.get_mut(worse) {
            score.above += 1;
        }
    }

    /// Repeats the comparisons without the pairs whose order is certain, until no further pair becomes certain.
    fn step_down(&mut self) {
        loop {
            let above = self
                .order
                .iter()
                .filter_map(|index| Some(self.scores.get(*index)?.as_ref()?.above));
            let earlier: Vec<usize> = (0..)
                .zip(above)
                .map(|(place, above): (usize, usize)| place - above)
                .collect();
            let quantiles = TailQuantiles::of(joint_tail(&earlier));
            let sure: Vec<OpenPair> = self
                .open
                .extract_if(.., |pair| pair.errors > quantiles.with(pair.df))
                .collect();
            if sure.is_empty() {
                return;
            }
            for pair in sure {
                self.separate(pair.better, pair.worse);
            }
        }
    }

    /// The rank bounds of each model. A model with more noise than its neighbours may have a wider range of ranks. The
    /// ranges of its neighbours are extended accordingly, so that the bounds are monotonic down the list.
    fn bounds(mut self) -> Vec<Option<RankBounds>> {
        self.step_down();
        let listed = self.listed;
        let mut bounds: Vec<Option<RankBounds>> = self
            .scores
            .iter()
            .map(|score| {
                let score = score.as_ref()?;
                Some(RankBounds {
                    lower: score.above + 1,
                    upper: listed - score.below,
                })
            })
            .collect();
        let mut upper = 0;
        for index in &self.order {
            for bounds in bounds.get_mut(*index).into_iter().flatten() {
                upper = upper.max(bounds.upper);
                bounds.upper = upper;
            }
        }
        let mut lower = listed;
        for index in self.order.iter().rev() {
            for bounds in bounds.get_mut(*index).into_iter().flatten() {
                lower = lower.min(bounds.lower);
                bounds.lower = lower;
            }
        }
        bounds
    }
}
