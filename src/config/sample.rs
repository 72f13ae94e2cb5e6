//! The sample configuration, generated from the table of settings.

use super::reload::needs_restart;
use super::settings::SETTINGS;

/// The sample configuration: every setting with its meaning and default. Everything is commented out, table headers
/// included, so that settings can be appended without duplicate keys. Settings without a table come first: after a table
/// they would be in it.
pub fn sample() -> String {
    let mut lines = vec![HEAD_SAMPLE.to_owned()];
    let mut section = "";
    let (top, in_tables): (Vec<_>, Vec<_>) = SETTINGS.iter().partition(|row| !row.path.contains('.'));
    for row in top.into_iter().chain(in_tables) {
        let (table, name) = row.path.rsplit_once('.').unwrap_or(("", row.path));
        if table != section {
            section = table;
            let note = if table == "upstream" { "  # instead of upstream = \"built-in\"" } else { "" };
            lines.push(format!("\n# [{table}]{note}"));
        }
        let when = if needs_restart(row.path) { " Takes effect at the next start." } else { "" };
        lines.push(format!("# {}{when}", row.meaning));
        let shown = if row.path == "upstream" { Some("\"built-in\"") } else { row.default };
        lines.push(format!("# {name} = {}", shown.unwrap_or("…")));
    }
    lines.push(TLS_SAMPLE.to_owned());
    lines.push(HEADERS_SAMPLE.to_owned());
    lines.push(LIVES_SAMPLE.to_owned());
    lines.push(TIERS_SAMPLE.to_owned());
    lines.push(ENDPOINTS_SAMPLE.to_owned());
    lines.push(MAPPING_SAMPLE.to_owned());
    lines.join("\n")
}

const HEAD_SAMPLE: &str = "\
# All settings of scoregate with their defaults. Only the backend has no default: set `upstream`, or `url` in [upstream].
# To set one, remove the `# ` before it and before its [table], or append both at the end. Settings without a table
# must be before the first table.
# Environment variables override the file: SCOREGATE_ and the path in capitals with underscores for dots, such as
# SCOREGATE_UPSTREAM_URL. [tiers], [tls], [mapping], [endpoints] and [upstream.headers] can only be set in the file.
# `scoregate reload` and SIGHUP reload the settings; the marked ones take effect at the next start.
# `scoregate check --config FILE` reports all errors in a file.
";

const TLS_SAMPLE: &str = "
# TLS on the public port. A certificate is used for the names that it contains, `default` for all other names. Changed
# files are reloaded.
# [tls.default]
# certificate = \"/etc/scoregate/api.pem\"
# key = \"/etc/scoregate/api.key\"
";

const HEADERS_SAMPLE: &str = "
# Further headers of every request to the backend. Files are read at the start.
# [upstream.headers]
# X-Source = \"benchmarks\"
# X-Service-Key = { file = \"/run/secrets/service-key\" }
";

const LIVES_SAMPLE: &str = "
# Windows of one endpoint, and a fixed time to live instead of the backend's refresh interval.
# [freshness.alerts]
# ttl = \"5m\"
# stale_while_revalidate = \"1h\"
# stale_if_error = \"1d\"
";

const TIERS_SAMPLE: &str = "
# Tiers, at most eight. If any is set, the five built-in tiers are replaced.
# [tiers.free]
# minute = 1
# day = 10
# paid = false       # false: period `latest` is refused, reserved fields are left out
# periods = [\"24h\", \"7d\"]           # the rest narrows these rights: periods that may be requested
# history = \"7d\"                   # longest period of `history`
# incidents = \"7d\"                 # longest period of `incidents`
# endpoints = [\"models\", \"model\"]   # endpoints that may be requested; default: all
# fields = []                      # reserved fields that are sent, such as \"model.latestScore\"
# [tiers.pro]
# minute = 60
# day = 10000
# paid = true
";

const MAPPING_SAMPLE: &str = "
# Mapping of a backend with other paths and response shapes, per endpoint: models, model, history, index, alerts,
# incidents, providers, degradations, recommendations, provider_reliability, transparency, drift. The default is the
# path and shape of this API.
# [mapping.models]
# path = \"/scores?period={period}&order={sortBy}\"   # below upstream.url; also {id} and {limit}
# data = \"/result/rows\"        # JSON pointer to the data; \"\" for the whole body
# shape = \"array\"                 # \"array\", \"object\" (one item) or \"map\" (an object that names its items)
# timestamp = \"/result/at\"       # JSON pointer to the timestamp of the data
# complete = true              # the list contains all models
# [mapping.history]
# path = \"/history/{id}\"
# unsupported = [\"period\"]         # parameters that the backend lacks: all values get the same data
# not_found = [\"404\", \"error\", \"empty\"]   # responses for an unknown model: status 404; success = false with \"model\" and \"not found\", or \"no … found for model\"; an empty list
# id = \"[0-9]+\"                # regular expression for whole ids; others get 404 without a request
# [mapping.providers]
# shape = \"map\"
# key_as = \"provider\"          # field for the name of a map item
# fields = { availability = \"uptime\", status = { from = \"state\", words = { UP = \"operational\" } }, region = { constant = \"eu\" }, rank = { type = \"number\" }, debug = { drop = true } }   # fields of an item; see docs/backends.md
";

const ENDPOINTS_SAMPLE: &str = "
# Endpoints that the backend has beside those of the specification, at most 32. They can be mapped as below, and have tables
# of their own such as [freshness.prices]. See docs/backends.md.
# [endpoints.prices]
# path = \"/prices/:id\"          # below /api/v1; `:id` is the id of a model
# summary = \"Prices of one model.\"
# parameters = [\"period\"]        # of \"period\", \"sortBy\", \"limit\", and tables with name, values, default, meaning
# one = true                     # `data` always has exactly one item; by default any number
# [[endpoints.prices.fields]]    # a table for each field of an item
# name = \"input\"
# type = \"number\"              # \"string\", \"time\", \"number\", \"score\", \"integer\", \"boolean\", \"strings\", \"words\", \"object\" or \"objects\"
# meaning = \"Price of input tokens.\"
# unit = \"US dollars per million tokens\"
# optional = true                # an item may lack the field
# paid = true                    # only paid callers see the field; others see only declared fields
# example = 2.5                  # for the documentation
";

#[cfg(test)]
mod tests {
    use super::super::{read_text, resolve};
    use super::*;

    #[test]
    fn sample_contains_every_setting_and_lacks_only_the_backend() {
        let text = sample();
        let problems = resolve(&read_text(&text).unwrap()).unwrap_err().0;
        assert_eq!(problems.iter().map(|problem| problem.path.as_str()).collect::<Vec<_>>(), ["upstream"]);
        for setting in SETTINGS {
            let name = setting.path.rsplit('.').next().unwrap();
            assert!(text.contains(&format!("# {name} = ")), "{}", setting.path);
            assert!(text.contains(setting.meaning), "{}", setting.path);
        }
    }

    #[test]
    fn every_line_of_the_sample_is_toml_without_its_comment_and_settings_without_a_table_come_first() {
        let mut text = String::new();
        text.extend(
            sample().lines().filter_map(|line| line.strip_prefix("# [")).map(|line| format!("[{line}\n")),
        );
        read_text(&text).unwrap_or_else(|problems| panic!("{problems}: {text}"));
        let sample = sample();
        let (before, _) = sample.split_once("\n# [").unwrap();
        for row in SETTINGS.iter().filter(|row| !row.path.contains('.')) {
            assert!(before.contains(&format!("\n# {} = ", row.path)), "{}", row.path);
        }
    }

    #[test]
    fn every_table_can_be_appended_to_the_sample() {
        for setting in SETTINGS.iter().filter(|setting| setting.default.is_some()) {
            let (table, name) = setting.path.rsplit_once('.').unwrap_or(("", setting.path));
            let header = if table.is_empty() { String::new() } else { format!("[{table}]\n") };
            let value = setting.default.unwrap();
            let text = format!("{}\n{header}{name} = {value}\n", sample());
            let written = read_text(&text).unwrap_or_else(|problems| panic!("{}: {problems}", setting.path));
            assert!(written.is_set(setting.path), "{}", setting.path);
        }
    }
}
