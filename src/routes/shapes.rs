//! The fields of every item, as data: for the API description, the docs page, and the built-in backend, which must
//! send them.
//!
//! A foreign backend may omit fields or send more: items are passed through unchanged and not validated at run time.

use super::field::FieldShape::{Flag, Instant, Integer, Number, Object, Objects, Score, Text, Texts, Words};
use super::field::{asked, field, maybe, nullable, paid};

pub use super::field::{FieldShape, ItemField, Presence};

/// Values of `trend`.
pub const TREND: &[&str] = &["up", "down", "stable", "unavailable"];
/// Values of `status`.
pub const STATUS: &[&str] = &["excellent", "good", "warning", "critical", "unavailable"];
/// The axes of a trial.
pub const AXES: &[&str] =
    &["correctness", "spec", "codeQuality", "efficiency", "stability", "refusal", "recovery"];
/// The suites of runs.
pub const SUITES: &[&str] = &["coding", "reasoning", "tooling"];
/// Values of `severity`.
pub const SEVERITY: &[&str] = &["warning", "critical"];

const LAST_UPDATED: &str =
    "Time of the newest run with a score, in any suite; without one, the time the model was first seen.";

/// An item of `/models`: the fields of the specification, and those that `speed` and `price` sort by.
pub const RANKING: &[ItemField] = &[
    field("id", Text, "Model identifier, used in paths."),
    field("name", Text, "The model's name."),
    field("provider", Text, "Provider identifier."),
    maybe(
        "currentScore",
        Score,
        "The score of the period that `sortBy` names, from 0 to 100. With `speed` and `price` it is the combined score.",
    ),
    field("trend", Words(TREND), "Direction of movement of this score against the period before."),
    field("status", Words(STATUS), "Health label of this score."),
    maybe("confidenceLower", Number, "Lower bound of its 95 % confidence interval."),
    maybe("confidenceUpper", Number, "Upper bound of its 95 % confidence interval."),
    field("lastUpdated", Instant, LAST_UPDATED),
    asked(
        "latencyMs",
        Number,
        "With `sortBy=speed`: median latency of a trial in the period, in milliseconds. The list is in this order.",
    ),
    asked(
        "costUsd",
        Number,
        "With `sortBy=price`: mean cost of a trial in the period, in US dollars. The list is in this order.",
    ),
];

const AXIS: &[ItemField] = &[
    field("axis", Words(AXES), "The axis."),
    maybe("score", Score, "Mean score on this axis, from 0 to 100."),
    maybe("confidenceLower", Number, "Lower bound of its 95 % confidence interval."),
    maybe("confidenceUpper", Number, "Upper bound of its 95 % confidence interval."),
    field("samples", Integer, "Number of trials."),
];

const SUITE: &[ItemField] = &[
    field("suite", Words(SUITES), "The suite."),
    maybe("score", Score, "Mean score in this suite, from 0 to 100."),
    field("runs", Integer, "Number of runs."),
    maybe("lastRun", Instant, "The newest run."),
];

/// The item of `/models/:id`.
pub const MODEL: &[ItemField] = &[
    field("id", Text, "Model identifier."),
    field("name", Text, "The model's name."),
    field("provider", Text, "Provider identifier."),
    maybe("currentScore", Score, "Score over the last 24 hours, from 0 to 100."),
    paid(
        "latestScore",
        Score,
        "Score of the newest complete round of runs. Paid plans only: absent for a Free key.",
    ),
    field("trend", Words(TREND), "Direction of movement against the period before."),
    field("status", Words(STATUS), "Health label of the score."),
    maybe("confidenceLower", Number, "Lower bound of the 95 % confidence interval."),
    maybe("confidenceUpper", Number, "Upper bound of the 95 % confidence interval."),
    field("axes", Objects(AXIS), "The breakdown by axis."),
    field("suites", Objects(SUITE), "The breakdown by suite."),
    maybe("priceInput", Number, "US dollars for a million input tokens."),
    maybe("priceOutput", Number, "US dollars for a million output tokens."),
    maybe("latencyMs", Number, "Median latency of a trial over the last 24 hours, in milliseconds."),
    field("runs", Integer, "Runs over the last 24 hours."),
    field("failedRuns", Integer, "Runs over the last 24 hours that failed; they have no score."),
    field("lastUpdated", Instant, LAST_UPDATED),
];

/// An item of `/models/:id/history`, oldest first.
pub const HISTORY: &[ItemField] = &[
    field("timestamp", Instant, "Start of the time range of this point."),
    maybe("score", Score, "Mean score of the range, from 0 to 100."),
    maybe("confidenceLower", Number, "Lower bound of its 95 % confidence interval."),
    maybe("confidenceUpper", Number, "Upper bound of its 95 % confidence interval."),
    field("runs", Integer, "Number of runs."),
];

const INDEX_POINT: &[ItemField] = &[
    field("timestamp", Instant, "The hour."),
    maybe("value", Score, "The index of that hour."),
    field("models", Integer, "Models with a score in that hour."),
];

/// The item of `/index`.
pub const INDEX: &[ItemField] = &[
    maybe("value", Score, "Mean score of all models with a score, from 0 to 100."),
    field("trend", Words(TREND), "Direction of movement against the day before."),
    field("models", Integer, "Models with a score."),
    field("unavailable", Integer, "Models without a score; they do not affect the index."),
    maybe("bestModel", Text, "Identifier of the model with the highest score."),
    field("history", Objects(INDEX_POINT), "The last 24 hours, oldest first."),
    maybe("lastUpdated", Instant, "The newest run in the index."),
];

/// An item of `/alerts`.
pub const ALERT: &[ItemField] = &[
    field("id", Text, "The alert's identifier."),
    field("modelId", Text, "The model it is about."),
    field("modelName", Text, "Its name."),
    field("provider", Text, "Its provider."),
    field("severity", Words(SEVERITY), "Severity, by the distance from the baseline."),
    field("currentScore", Number, "Score over the last 24 hours."),
    field("baselineScore", Number, "The model's own score over the days before."),
    field("drop", Number, "Baseline minus current."),
    field(
        "pValue",
        Number,
        "Probability of such a drop without a change, corrected for the number of models tested.",
    ),
    field("samples", Integer, "Runs over the last 24 hours."),
    field("baselineSamples", Integer, "Runs of the baseline."),
    field("since", Instant, "The hour in which the score fell, as far as known."),
    field("message", Text, "One sentence for people."),
];

/// An item of `/incidents`, newest first.
pub const INCIDENT: &[ItemField] = &[
    field("id", Text, "The incident's identifier."),
    field("modelId", Text, "The model it is about."),
    field("modelName", Text, "Its name."),
    field("provider", Text, "Its provider."),
    field("kind", Words(&["degradation", "outage"]), "Kind of incident."),
    field("severity", Words(SEVERITY), "Severity of the incident."),
    field("openedAt", Instant, "When it began."),
    maybe("resolvedAt", Instant, "When it ended; absent while it lasts."),
    maybe("lowestScore", Number, "The lowest score during it; absent for an outage."),
    maybe("baselineScore", Number, "The model's score before it."),
    field("message", Text, "One sentence for people."),
];

/// An item of `/providers`.
pub const PROVIDER: &[ItemField] = &[
    field("provider", Text, "Provider identifier."),
    field(
        "status",
        Words(&["operational", "degraded", "outage", "unavailable"]),
        "From the runs of the last 24 hours.",
    ),
    maybe("availability", Number, "Share of runs that did not fail over the last 24 hours, from 0 to 1."),
    field("models", Integer, "Models tracked."),
    field("modelsAvailable", Integer, "Models with a score."),
    field("runs", Integer, "Runs over the last 24 hours."),
    field("failedRuns", Integer, "Failed runs."),
    maybe("averageScore", Number, "Mean score of its models."),
    maybe("latencyMs", Number, "Median latency of a trial, in milliseconds."),
    field(
        "lastUpdated",
        Instant,
        "Time of the newest run with a score of any of its models; without one, the time one was first seen.",
    ),
];

/// An item of `/analytics/degradations`, the largest first.
pub const DEGRADATION: &[ItemField] = &[
    field("modelId", Text, "The model."),
    field("modelName", Text, "Its name."),
    field("provider", Text, "Its provider."),
    field(
        "direction",
        Words(TREND),
        "Where the score moves now, by a line through the newest part of the period (24 hours; of 7d 2 days, of 30d 7 \
         days): down still falls, up comes back, stable stays at the lower level.",
    ),
    field("magnitude", Number, "Points lost against the period before."),
    field("previousScore", Number, "Score of the period before."),
    field("currentScore", Number, "Score of the period."),
    field(
        "pValue",
        Number,
        "Probability of such a loss without a change, corrected for the number of models tested.",
    ),
    maybe("worstAxis", Words(AXES), "The axis that lost most."),
    maybe("worstAxisLoss", Number, "Points lost on it."),
];

/// An item of `/analytics/recommendations`.
pub const RECOMMENDATION: &[ItemField] = &[
    field("task", Words(&["coding", "reasoning", "tooling", "budget", "fast"]), "The type of task."),
    field("modelId", Text, "The model to use now."),
    field("modelName", Text, "Its name."),
    field("provider", Text, "Its provider."),
    field("score", Number, "Its score for the task."),
    field("reason", Text, "Reason for this model."),
    field("alternatives", Texts, "Identifiers of the next best, best first."),
];

/// An item of `/analytics/provider-reliability`, the most reliable first.
pub const RELIABILITY: &[ItemField] = &[
    field("provider", Text, "Provider identifier."),
    maybe(
        "reliability",
        Number,
        "From 0 to 100: availability weighs 0.5, steadiness 0.3 (1 without deviation, 0 from 10 points on) and freedom \
         from incidents 0.2 (1 divided by 1 and the incidents of a model). What is not known leaves its weight to the \
         others.",
    ),
    maybe("availability", Number, "Share of runs that did not fail, from 0 to 1."),
    maybe("scoreDeviation", Number, "Mean standard deviation of its models' scores."),
    field("incidents", Integer, "Incidents opened in the period."),
    field("runs", Integer, "Runs in the period."),
    field("failedRuns", Integer, "Failed runs."),
];

const WEIGHT: &[ItemField] = &[
    field("name", Text, "The part."),
    field("weight", Number, "Its weight; the weights of a score add up to 1."),
];

const SAMPLES: &[ItemField] = &[
    field("suite", Words(SUITES), "The suite."),
    field("runs", Integer, "Runs in the period."),
    field("failedRuns", Integer, "Failed runs, without a score."),
    field("trials", Integer, "Trials with a score."),
    field("failedTrials", Integer, "Trials without a score, in runs with a score."),
    maybe("lastRun", Instant, "The newest run."),
];

/// An item of `/analytics/transparency`: one per model.
pub const TRANSPARENCY: &[ItemField] = &[
    field("modelId", Text, "The model."),
    field("modelName", Text, "Its name."),
    field("provider", Text, "Its provider."),
    maybe("currentScore", Number, "The score explained."),
    maybe("standardError", Number, "Its standard error."),
    field("suiteWeights", Objects(WEIGHT), "Weights of the suites in the score."),
    field("axisWeights", Objects(WEIGHT), "Weights of the axes in a trial."),
    field("samples", Objects(SAMPLES), "Evidence for the score."),
    maybe("freshnessSeconds", Integer, "Age of the newest run when the answer was computed."),
    field("methodVersion", Text, "Version of the method; it changes with every constant."),
    field("synthetic", Flag, "Whether the runs were simulated."),
];

const PAGE_HINKLEY: &[ItemField] = &[
    maybe(
        "statistic",
        Number,
        "The Page-Hinkley statistic: the larger of both directions, in units of noise.",
    ),
    field("threshold", Number, "Above this there is a signal (lambda), in units of noise."),
    field("delta", Number, "Deviations smaller than this do not weigh, in units of noise."),
    field("minimumSamples", Integer, "Rounds of runs needed before anything is signalled."),
    field("samples", Integer, "Rounds seen since the test last began anew, which it does after each signal."),
    field("signalled", Flag, "Whether a signal is in force; it lasts for 72 rounds."),
    field(
        "state",
        Words(&["warming", "quiet", "signalled"]),
        "Too few rounds since it began anew; nothing to signal; a signal stands.",
    ),
    maybe("direction", Words(&["up", "down"]), "Which way the score changed, while a signal stands."),
    maybe("signalledAt", Instant, "The hour of the signal that stands."),
    maybe("signalledStatistic", Number, "The statistic that it had."),
    maybe(
        "pValue",
        Number,
        "Chance of such a difference between the rounds since the change and those before if there were none, corrected \
         for the rounds it was chosen from and for the number of models. The regime is drifting only below 0.01.",
    ),
    maybe("noise", Number, "Standard deviation of a round about its level, in points: the unit of the test."),
];

const AXIS_TREND: &[ItemField] = &[
    field("axis", Words(AXES), "The axis."),
    field("trend", Words(TREND), "Its direction, tested and corrected for all axes of all models."),
    maybe("slopePerDay", Number, "Points a day, by least squares over the last 7 days."),
];

/// The item of `/drift/:id`.
pub const DRIFT: &[ItemField] = &[
    field("modelId", Text, "The model."),
    field("modelName", Text, "Its name."),
    field("provider", Text, "Its provider."),
    field(
        "regime",
        Words(&["stable", "drifting", "degraded", "recovering", "unavailable"]),
        "State of the series.",
    ),
    field("pageHinkley", Object(PAGE_HINKLEY), "The drift test and its state."),
    field("axes", Objects(AXIS_TREND), "The trend of each axis."),
    maybe("baselineScore", Number, "Mean score of the 7 days before the last 24 hours."),
    maybe("currentScore", Number, "Score over the last 24 hours."),
    field("lastUpdated", Instant, LAST_UPDATED),
];

const APPLICATION: &[ItemField] =
    &[field("id", Text, "The application's identifier."), field("name", Text, "Its name.")];

const ALLOWANCE: &[ItemField] = &[
    field("name", Words(&["minute", "day"]), "Which limit."),
    field("limit", Integer, "How many requests."),
    field("window_seconds", Integer, "In how long."),
    field("used", Integer, "Used now."),
    field("remaining", Integer, "Left now."),
    field("reset_at", Instant, "When all of it is there again."),
];

/// The item of `/me`.
pub const ME: &[ItemField] = &[
    field("application", Object(APPLICATION), "The application that the key belongs to."),
    field("key_prefix", Text, "The first characters of the key, to tell keys apart. Never the key."),
    field("tier", Text, "The application's tier."),
    field("limits", Objects(ALLOWANCE), "The limits and what is left of them."),
    nullable("key_expires_at", Instant, "When the key expires; null if it does not."),
    nullable("next_refresh_at", Instant, "When the data is next expected to change."),
    field(
        "suggested_poll_seconds",
        Integer,
        "The polling interval that keeps this key current without spending more than it must.",
    ),
];
