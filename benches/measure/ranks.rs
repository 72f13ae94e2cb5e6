//! Ranks of the scoring backend: how often the true rank is within the published bounds, and how many neighbours are told
//! apart, compared with a paired t test of the published histories.

use scoregate_base::routes::Period;
use scoregate_scoring::METHOD_VERSION;
use scoregate_scoring::lab::coverage::{MODELS, NoiseKind};
use scoregate_scoring::lab::leaderboards::{LeaderboardCase, measure};

const WHITE: NoiseKind = NoiseKind::White;
const AR: NoiseKind = NoiseKind::Autoregressive(0.8);

fn cases() -> Vec<LeaderboardCase> {
    let mut cases = Vec::new();
    for every in [1, 24] {
        let [name, shared, correlated, none, slow] = match every {
            1 => ["shared 1.5, own 1.5", "shared 3, own 1", "own AR 0.8", "own 1.5 alone", "shared AR 0.8"],
            _ => [
                "the same, daily",
                "shared 3, daily",
                "own AR 0.8, daily",
                "own 1.5, daily",
                "shared AR 0.8, daily",
            ],
        };
        // Some neighbours are told apart, and some are not.
        let further = if every == 1 { 1.0 } else { 4.0 };
        for (period, distance) in [(Period::Latest, 1.5), (Period::Day, 0.5), (Period::Week, 0.3)] {
            let distance = if period == Period::Latest { distance } else { further * distance };
            let case = |name, shared, own| LeaderboardCase { name, period, every, distance, shared, own };
            cases.extend([
                case(name, (WHITE, 1.5), (WHITE, 1.5)),
                case(shared, (WHITE, 3.0), (WHITE, 1.0)),
                case(correlated, (WHITE, 1.5), (AR, 1.5)),
                case(slow, (AR, 1.5), (WHITE, 1.5)),
                case(none, (WHITE, 0.0), (WHITE, 1.5)),
            ]);
        }
    }
    cases
}

pub(crate) fn run() {
    let leaderboards = if std::env::var_os("SCOREGATE_FULL").is_some() { 50 } else { 1 };
    println!(
        "method {METHOD_VERSION}; {leaderboards} leaderboards a line, of {MODELS} models with 37 days of runs"
    );
    println!(
        "{:>22} {:>7} {:>9} {:>10} {:>6} {:>10} {:>8}",
        "", "period", "distance", "inside", "ranks", "separated", "t test"
    );
    for case in cases() {
        let found = measure(&case, leaderboards);
        let share = |count: u32, of: u32| f64::from(count) / f64::from(of.max(1));
        // The history of `latest` is that of a day, which tells more models apart than one round.
        let t_test = share(found.separated_by_t_test, found.neighbours);
        let t_test = if case.period == Period::Latest { "-".to_owned() } else { format!("{t_test:.3}") };
        println!(
            "{:>22} {:>7} {:>9} {:>10.3} {:>6.1} {:>10.3} {t_test:>8}",
            case.name,
            case.period.word(),
            case.distance,
            share(found.inside, found.models),
            found.mean_ranks,
            share(found.separated, found.neighbours)
        );
    }
}
