//! Rounds without outliers, so that a single odd round neither begins a level nor adds noise that hides a new level.

use crate::{method, period_scores::ScoreRound};

/// The rounds, with each outlier replaced by the median of the seven rounds around it. Four rounds at a new level are not outliers.
pub fn without_outliers(rounds: &[ScoreRound]) -> Vec<ScoreRound> {
    let median = |at: usize| {
        let from = at.saturating_sub(3).min(rounds.len().saturating_sub(7));
        let mut around = rounds.get(from..)?.first_chunk()?.map(|round| round.score);
        around.sort_unstable_by(f64::total_cmp);
        let [_, _, _, median, _, _, _] = around;
        Some(median)
    };
    let medians: Vec<f64> = rounds
        .iter()
        .enumerate()
        .map(|(at, round)| median(at).unwrap_or(round.score))
        .collect();
    let of_rounds = || rounds.iter().zip(&medians);
    let mut distances: Vec<f64> = of_rounds()
        .map(|(round, median)| (round.score - median).abs())
        .collect();
    distances.sort_unstable_by(f64::total_cmp);
    let most = distances.get(rounds.len() * 9 / 10).copied();
    let limit = method::OUTLIER_DISTANCE * most.unwrap_or_default().max(method::RESOLUTION);
    of_rounds()
        .map(|(round, median)| ScoreRound {
            score: if (round.score - median).abs() > limit {
                *median
            } else {
                round.score
            },
            ..*round
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hour::Hour;

    fn scores(changed: &[(usize, f64)]) -> Vec<f64> {
        let round = |number: u32| ScoreRound {
            hour: Hour::numbered(u64::from(number)),
            score: 70.0 + f64::from(number % 3),
        };
        let mut rounds: Vec<ScoreRound> = (0..40).map(round).collect();
        for (at, score) in changed {
            rounds[*at].score = *score;
        }
        without_outliers(&rounds)
            .iter()
            .map(|round| round.score)
            .collect()
    }

    #[test]
    fn up_to_three_odd_rounds_count_as_the_median_around_them() {
        for odd in [&[(9, 50.0)][..], &[(36, 90.0), (38, 90.0), (39, 90.0)]] {
            assert!(
                scores(odd)
                    .iter()
                    .all(|score| (70.0..=72.0).contains(score))
            );
        }
    }

    #[test]
    fn a_level_of_four_rounds_is_kept() {
        let level = [50.0, 51.0, 52.0, 51.0];
        let fallen: Vec<(usize, f64)> = (36..).zip(level).collect();
        let kept = scores(&fallen);
        assert_eq!(kept[36..], level);
        assert!(kept[..36].iter().all(|score| *score >= 70.0));
    }
}
