//! Labels whose values are declared in `base`.

use scoregate_base::{
    clock::StepDirection,
    evidence::judgement::Suspicion,
    limits::LimitRule,
    routes::codes::{CODES, ErrorCode},
};

use super::label::{FixedLabel, MetricLabel, metric_label};

metric_label!(LimitRule: "rule", LimitRule::ALL, LimitRule::name);
metric_label!(Suspicion: "suspicion", Suspicion::ALL, Suspicion::word);
metric_label!(StepDirection: "direction", ["forward", "backward"], |word| word);

impl MetricLabel for ErrorCode {
    const NAME: &'static str = "code";
    fn index(self) -> usize {
        self as usize
    }
}

impl FixedLabel for ErrorCode {
    fn words() -> Vec<String> {
        CODES.iter().map(|row| row.word.to_owned()).collect()
    }
}
