//! The fields of all items, as data, for the API description, the docs page, and the built-in backend, which must send
//! them.
//!
//! A foreign backend may omit fields or send additional ones. Items are passed through unchanged and are not validated
//! at run time.

use super::field::{
    FieldShape::{Flag, Instant, Integer, Number, Object, Objects, Score, Text, Texts, Words},
    field, maybe, paid, requested,
};

pub use super::field::{FieldShape, ItemField, Presence};
pub use super::me_shape::ME;

/// Values of `trend`.
pub const TREND: &[&str] = &["up", "down", "stable", "unavailable"];
/// Values of `status`.
pub const STATUS: &[&str] = &["excellent", "good", "warning", "critical", "unavailable"];
/// The axes of a trial.
pub const AXES: &[&str] = &[
    "correctness",
    "spec",
    "codeQuality",
    "efficiency",
    "stability",
    "refusal",
    "recovery",
];
/// Values of `severity`.
pub const SEVERITY: &[&str] = &["warning", "critical"];

const LAST_UPDATED: &str = "Time of the newest run with a score, in any suite; if there is none, the time when the model was first seen.";

/// An item of `/models`: the fields of the specification, and the fields that `speed` and `price` sort by.
pub const RANKING: &[ItemField] = &[
    field("id", Text, "Model identifier, used in paths."),
    field("name", Text, "Display name."),
    field("provider", Text, "Provider identifier."),
    maybe(
        "currentScore",
        Score,
        "Score for the sort key in the period, from 0 to 100. For `speed` and `price`: the combined score.",
    ),
    field(
        "trend",
        Words(TREND),
        "Direction of this score compared with the previous period.",
    ),
    field("status", Words(STATUS), "Health label of this score."),
    maybe(
        "confidenceLower",
        Number,
        "Lower bound of its 95 % confidence interval.",
    ),
    maybe(
        "confidenceUpper",
        Number,
        "Upper bound of its 95 % confidence interval.",
    ),
    field("lastUpdated", Instant, LAST_UPDATED),
    requested(
        "latencyMs",
        Number,
        "With `sortBy=speed`: median latency of a trial in the period, in milliseconds. The list is sorted by it.",
    ),
    requested(
        "costUsd",
        Number,
        "With `sortBy=price`: mean cost of a trial in the period, in US dollars. The list is sorted by it.",
    ),
    maybe(
        "rankLower",
        Integer,
        "Best rank by this score that the data allows, with 95 % confidence for all models together.",
    ),
    maybe(
        "rankUpper",
        Integer,
        "Worst rank by this score that the data allows, with 95 % confidence for all models together.",
    ),
    maybe(
        "tiedWithNext",
        Flag,
        "Whether the next model may be as good: the 95 % interval of the score difference contains zero.",
    ),
];

const AXIS: &[ItemField] = &[
    field("axis", Words(AXES), "Name of the axis."),
    maybe("score", Score, "Mean score on this axis, from 0 to 100."),
    maybe(
        "confidenceLower",
        Number,
        "Lower bound of its 95 % confidence interval.",
    ),
    maybe(
        "confidenceUpper",
        Number,
        "Upper bound of its 95 % confidence interval.",
    ),
    field("samples", Integer, "Number of trials."),
];

const SUITE: &[ItemField] = &[
    field(
        "suite",
        Text,
        "Name of the suite: coding, reasoning and tooling, if no others are configured.",
    ),
    maybe("score", Score, "Mean score in this suite, from 0 to 100."),
    field("runs", Integer, "Number of runs."),
    maybe("lastRun", Instant, "Time of the newest run."),
];

const COMPARISON: &[ItemField] = &[
    field("modelId", Text, "Identifier of the other model."),
    field(
        "difference",
        Number,
        "Score of this model minus the score of the other.",
    ),
    maybe(
        "differenceLower",
        Number,
        "Lower bound of its 95 % confidence interval.",
    ),
    maybe(
        "differenceUpper",
        Number,
        "Upper bound of its 95 % confidence interval.",
    ),
    maybe(
        "probabilityBetter",
        Number,
        "Probability that this model is better, from 0 to 1.",
    ),
];

/// The item of `/models/:id`.
pub const MODEL: &[ItemField] = &[
    field("id", Text, "Model identifier."),
    field("name", Text, "Display name."),
    field("provider", Text, "Provider identifier."),
    maybe(
        "currentScore",
        Score,
        "Score over the last 24 hours, from 0 to 100.",
    ),
    paid(
        "latestScore",
        Score,
        "Score of the newest complete round of runs. Paid plans only: absent for a Free key.",
    ),
    field(
        "trend",
        Words(TREND),
        "Direction of the score compared with the previous period.",
    ),
    field("status", Words(STATUS), "Health label of the score."),
    maybe(
        "confidenceLower",
        Number,
        "Lower bound of the 95 % confidence interval.",
    ),
    maybe(
        "confidenceUpper",
        Number,
        "Upper bound of the 95 % confidence interval.",
    ),
    maybe(
        "comparisons",
        Objects(COMPARISON),
        "Differences from the next better model and the next worse one over the last 24 hours.",
    ),
    field("axes", Objects(AXIS), "Breakdown by axis."),
    field("suites", Objects(SUITE), "Breakdown by suite."),
    maybe("priceInput", Number, "US dollars per million input tokens."),
    maybe(
        "priceOutput",
        Number,
        "US dollars per million output tokens.",
    ),
    maybe(
        "latencyMs",
        Number,
        "Median latency of a trial over the last 24 hours, in milliseconds.",
    ),
    field("runs", Integer, "Runs over the last 24 hours."),
    field(
        "failedRuns",
        Integer,
        "Runs over the last 24 hours in which every trial failed.",
    ),
    field("lastUpdated", Instant, LAST_UPDATED),
];

/// An item of `/models/:id/history`, oldest first.
pub const HISTORY: &[ItemField] = &[
    field(
        "timestamp",
        Instant,
        "Start of the time range of this point.",
    ),
    maybe("score", Score, "Mean score of the range, from 0 to 100."),
    maybe(
        "confidenceLower",
        Number,
        "Lower bound of its 95 % confidence interval.",
    ),
    maybe(
        "confidenceUpper",
        Number,
        "Upper bound of its 95 % confidence interval.",
    ),
    field("runs", Integer, "Number of runs."),
];

const INDEX_POINT: &[ItemField] = &[
    field("timestamp", Instant, "Start of the hour."),
    maybe("value", Score, "Index of that hour."),
    field("models", Integer, "Models with a score in that hour."),
];

/// The item of `/index`.
pub const INDEX: &[ItemField] = &[
    maybe(
        "value",
        Score,
        "Mean score of all models with a score, from 0 to 100.",
    ),
    maybe(
        "confidenceLower",
        Number,
        "Lower bound of its 95 % confidence interval.",
    ),
    maybe(
        "confidenceUpper",
        Number,
        "Upper bound of its 95 % confidence interval.",
    ),
    field(
        "trend",
        Words(TREND),
        "Direction of the index compared with the previous day.",
    ),
    field("models", Integer, "Number of models with a score."),
    field(
        "unavailable",
        Integer,
        "Number of models without a score. They do not affect the index.",
    ),
    maybe(
        "bestModel",
        Text,
        "Identifier of the model whose score has the highest lower bound.",
    ),
    field(
        "history",
        Objects(INDEX_POINT),
        "The last 24 hours, oldest first.",
    ),
    maybe(
        "lastUpdated",
        Instant,
        "Time of the newest run in the index.",
    ),
];

/// An item of `/alerts`.
pub const ALERT: &[ItemField] = &[
    field("id", Text, "Identifier of the alert."),
    field("modelId", Text, "Identifier of the model."),
    field("modelName", Text, "Display name."),
    field("provider", Text, "Provider identifier."),
    field(
        "severity",
        Words(SEVERITY),
        "Severity, by the size of the drop.",
    ),
    field("currentScore", Number, "Score since the drop."),
    field(
        "baselineScore",
        Number,
        "Score of this model before the drop.",
    ),
    field("drop", Number, "`baselineScore` minus `currentScore`."),
    field(
        "pValue",
        Number,
        "Probability of such a drop if the score had not changed, corrected for the number of models tested.",
    ),
    field("samples", Integer, "Runs since the drop."),
    field("baselineSamples", Integer, "Runs of the baseline."),
    field(
        "since",
        Instant,
        "Beginning of the first round at the current level.",
    ),
    maybe(
        "sharedBy",
        Integer,
        "Number of other models that have an alert and whose scores fell at about the same time. A large number suggests a changed grader or suite.",
    ),
    field("message", Text, "Description in one sentence."),
];

/// An item of `/incidents`, newest first.
pub const INCIDENT: &[ItemField] = &[
    field("id", Text, "Identifier of the incident."),
    field("modelId", Text, "Identifier of the model."),
    field("modelName", Text, "Display name."),
    field("provider", Text, "Provider identifier."),
    field(
        "kind",
        Words(&["degradation", "outage"]),
        "Kind of incident.",
    ),
    field("severity", Words(SEVERITY), "Severity of the incident."),
    field("openedAt", Instant, "Start of the incident."),
    maybe(
        "resolvedAt",
        Instant,
        "End of the incident; absent while it is ongoing.",
    ),
    maybe(
        "lowestScore",
        Number,
        "Lowest score during the incident; absent for an outage.",
    ),
    maybe(
        "baselineScore",
        Number,
        "Score of the model before the incident.",
    ),
    maybe(
        "methodVersion",
        Text,
        "Version of the method that found the incident; absent if it was found before version 4.0.",
    ),
    field("message", Text, "Description in one sentence."),
];

/// An item of `/providers`.
pub const PROVIDER: &[ItemField] = &[
    field("provider", Text, "Provider identifier."),
    field(
        "status",
        Words(&["operational", "degraded", "outage", "unavailable"]),
        "Status, from the runs of the last 24 hours.",
    ),
    maybe(
        "availability",
        Number,
        "Share of trials that did not fail over the last 24 hours, from 0 to 1.",
    ),
    field("models", Integer, "Number of tracked models."),
    field("modelsAvailable", Integer, "Number of models with a score."),
    field("runs", Integer, "Runs over the last 24 hours."),
    field("failedRuns", Integer, "Runs in which every trial failed."),
    maybe("averageScore", Number, "Mean score of the models."),
    maybe(
        "latencyMs",
        Number,
        "Median latency of a trial, in milliseconds.",
    ),
    field(
        "lastUpdated",
        Instant,
        "Time of the newest scored run of any of its models; if there is none, the time when a model was first seen.",
    ),
];

/// An item of `/analytics/degradations`. Items are listed by size, largest first.
pub const DEGRADATION: &[ItemField] = &[
    field("modelId", Text, "Identifier of the model."),
    field("modelName", Text, "Display name."),
    field("provider", Text, "Provider identifier."),
    field(
        "direction",
        Words(TREND),
        "Direction of the newest change of level, while it is active as in `/drift/:id`. `down`: the score fell \
         recently; `up`: it is recovering; `stable`: it remains at the lower level.",
    ),
    field("magnitude", Number, "Points lost in the drop."),
    field("previousScore", Number, "Score before the drop."),
    field("currentScore", Number, "Score since the drop."),
    field(
        "pValue",
        Number,
        "Probability of such a loss if the score had not changed, corrected for the number of models tested.",
    ),
    maybe("worstAxis", Words(AXES), "Axis with the largest loss."),
    maybe("worstAxisLoss", Number, "Points lost on this axis."),
];

/// An item of `/analytics/recommendations`.
pub const RECOMMENDATION: &[ItemField] = &[
    field(
        "task",
        Words(&["coding", "reasoning", "tooling", "budget", "fast"]),
        "Type of task.",
    ),
    field("modelId", Text, "Identifier of the recommended model."),
    field("modelName", Text, "Display name."),
    field("provider", Text, "Provider identifier."),
    field("score", Number, "Score of the model for this task."),
    field("reason", Text, "Reason for this model."),
    field(
        "alternatives",
        Texts,
        "Identifiers of the next best models, best first.",
    ),
    maybe(
        "tied",
        Texts,
        "Identifiers of all other models that may be as good; absent for `budget` and `fast`.",
    ),
];

/// An item of `/analytics/provider-reliability`. The most reliable provider comes first.
pub const RELIABILITY: &[ItemField] = &[
    field("provider", Text, "Provider identifier."),
    maybe(
        "reliability",
        Number,
        "Weighted score from 0 to 100: availability 0.5, steadiness 0.3 (1 for no deviation, 0 for 10 points or more), \
         and absence of incidents 0.2 (1 / (1 + incidents per model)). If a part is unknown, its weight is distributed \
         over the others.",
    ),
    maybe(
        "availability",
        Number,
        "Share of trials that did not fail, from 0 to 1.",
    ),
    maybe(
        "scoreDeviation",
        Number,
        "Mean standard deviation of its models' scores.",
    ),
    field("incidents", Integer, "Incidents opened in the period."),
    field("runs", Integer, "Runs in the period."),
    field("failedRuns", Integer, "Runs in which every trial failed."),
];

const WEIGHT: &[ItemField] = &[
    field("name", Text, "Name of the part."),
    field(
        "weight",
        Number,
        "Weight of the part. The weights of a score add up to 1.",
    ),
];

const SUITE_WEIGHTS: &[ItemField] = &[
    field("name", Text, "Name of the suite."),
    field(
        "weight",
        Number,
        "Weight of the suite. The weights of all suites add up to 1.",
    ),
    field(
        "axes",
        Objects(WEIGHT),
        "Weights of the axes in a trial of this suite.",
    ),
    field(
        "feeds",
        Texts,
        "The `sortBy` values that include the suite. Each of these scores is the weighted mean of its suites.",
    ),
];

const SAMPLES: &[ItemField] = &[
    field(
        "suite",
        Text,
        "Name of the suite: coding, reasoning and tooling, if no others are configured.",
    ),
    field("runs", Integer, "Runs in the period."),
    field("failedRuns", Integer, "Runs in which every trial failed."),
    field(
        "trials",
        Integer,
        "Trials in the score. A failed trial counts as zero if the model did not respond in time or its response was \
         unusable; otherwise it has no score.",
    ),
    field(
        "failedTrials",
        Integer,
        "Failed trials. A run that failed as a whole lists none.",
    ),
    maybe("lastRun", Instant, "Time of the newest run."),
];

/// An item of `/analytics/transparency`, one per model.
pub const TRANSPARENCY: &[ItemField] = &[
    field("modelId", Text, "Identifier of the model."),
    field("modelName", Text, "Display name."),
    field("provider", Text, "Provider identifier."),
    maybe("currentScore", Number, "The score that this item explains."),
    maybe(
        "standardError",
        Number,
        "Standard error of the score, as used for its confidence interval.",
    ),
    maybe(
        "minimumDetectableEffect",
        Number,
        "Smallest change since the previous period, in points, that the trend detects in four of five cases.",
    ),
    field(
        "suiteWeights",
        Objects(WEIGHT),
        "Weights of the suites in the score.",
    ),
    field(
        "axisWeights",
        Objects(WEIGHT),
        "Weights of the axes in a trial that has a score on every axis.",
    ),
    field(
        "suites",
        Objects(SUITE_WEIGHTS),
        "The suites, their axes, and the `sortBy` values that include them.",
    ),
    field(
        "samples",
        Objects(SAMPLES),
        "Number of runs and trials behind the score, per suite.",
    ),
    maybe(
        "freshnessSeconds",
        Integer,
        "Age of the newest run when the response was computed.",
    ),
    field(
        "methodVersion",
        Text,
        "Version of the method; it changes whenever a constant of the method changes. With suites other than the default, `+` and the first \
         digits of the SHA-256 of the suite table follow.",
    ),
    field("synthetic", Flag, "Whether the runs were simulated."),
];

const PAGE_HINKLEY: &[ItemField] = &[
    maybe(
        "statistic",
        Number,
        "The Page-Hinkley statistic: the larger of the values for the two directions, in units of noise.",
    ),
    field(
        "threshold",
        Number,
        "Threshold (lambda) above which the statistic restarts, in units of noise.",
    ),
    field(
        "delta",
        Number,
        "Smaller deviations are ignored (delta), in units of noise.",
    ),
    field(
        "minimumSamples",
        Integer,
        "Rounds required before the statistic restarts, and before a model can be `stable`.",
    ),
    field(
        "samples",
        Integer,
        "Rounds since the statistic was last restarted.",
    ),
    field(
        "signalled",
        Flag,
        "Whether a change of level is active: for 72 hourly rounds, or 72 hours of longer ones (at least 3 rounds).",
    ),
    field(
        "state",
        Words(&["warming", "quiet", "signalled"]),
        "`warming`: too few rounds; `quiet`: no change of level; `signalled`: a change is active.",
    ),
    maybe(
        "direction",
        Words(&["up", "down"]),
        "Direction of the active change.",
    ),
    maybe(
        "signalledAt",
        Instant,
        "Hour of the round in which the active change was detected.",
    ),
    maybe(
        "signalledStatistic",
        Number,
        "Value of the statistic in that round.",
    ),
    maybe(
        "pValue",
        Number,
        "Probability of such a difference between the rounds before and after the change if the score had not changed, \
         corrected for the number of models. The regime is `drifting` only below 0.01.",
    ),
    maybe(
        "noise",
        Number,
        "Long-run standard deviation of a round about its level, in points. The unit of the statistic.",
    ),
];

const AXIS_TREND: &[ItemField] = &[
    field("axis", Words(AXES), "Name of the axis."),
    field(
        "trend",
        Words(TREND),
        "Direction of the axis, tested with a correction for all axes of all models.",
    ),
    maybe(
        "slopePerDay",
        Number,
        "Change in points per day: least squares over the last 7 days.",
    ),
];

/// The item of `/drift/:id`.
pub const DRIFT: &[ItemField] = &[
    field("modelId", Text, "Identifier of the model."),
    field("modelName", Text, "Display name."),
    field("provider", Text, "Provider identifier."),
    field(
        "regime",
        Words(&[
            "stable",
            "drifting",
            "degraded",
            "recovering",
            "unavailable",
        ]),
        "State of the series.",
    ),
    field(
        "pageHinkley",
        Object(PAGE_HINKLEY),
        "Drift test and its state.",
    ),
    field("axes", Objects(AXIS_TREND), "Trend of each axis."),
    maybe(
        "baselineScore",
        Number,
        "Mean score of the 7 days before the last 24 hours, or the level before the changes of the last 7 days.",
    ),
    maybe("currentScore", Number, "Score over the last 24 hours."),
    field("lastUpdated", Instant, LAST_UPDATED),
];
