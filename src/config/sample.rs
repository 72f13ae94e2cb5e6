//! The sample configuration, printed from the table of settings.

use super::reload::waits;
use super::settings::SETTINGS;

/// The sample configuration: every setting with its meaning and its default. All of it is commented out, the headers of
/// tables too, so that any setting or table can be appended without being there twice.
pub fn sample() -> String {
    let mut lines = vec![HEAD_SAMPLE.to_owned()];
    let mut section = "";
    for row in SETTINGS {
        let (table, name) = row.path.rsplit_once('.').unwrap_or(("", row.path));
        if table != section {
            section = table;
            let note = if table == "upstream" { "  # in place of upstream = \"built-in\"" } else { "" };
            lines.push(format!("\n# [{table}]{note}"));
        }
        let when = if waits(row.path) { " (At the next start.)" } else { "" };
        lines.push(format!("# {}{when}", row.meaning));
        let shown = if row.path == "upstream" { Some("\"built-in\"") } else { row.default };
        lines.push(format!("# {name} = {}", shown.unwrap_or("…")));
    }
    lines.push(TLS_SAMPLE.to_owned());
    lines.push(LIVES_SAMPLE.to_owned());
    lines.push(TIERS_SAMPLE.to_owned());
    lines.push(MAPPING_SAMPLE.to_owned());
    lines.join("\n")
}

const HEAD_SAMPLE: &str = "\
# scoregate's settings, each with its default. Only the backend has none: set `upstream`, or `url` in [upstream].
# Remove the `# ` before a setting and before the [table] it is in, or append them at the end.
# Each but those of [tiers], [tls] and [mapping] can also be said by the environment: SCOREGATE_ and the path in capitals, dots
# as underscores.
# `scoregate reload` and SIGHUP read them again while the server runs; what is marked so holds from the next start.
# `scoregate check --config FILE` names everything that is wrong with a file, at once.
";

const TLS_SAMPLE: &str = "
# With a certificate, the public port speaks TLS. Each stands for the names that are in it, `default` also for all others;
# files that change are read again.
# [tls.default]
# certificate = \"/etc/scoregate/api.pem\"
# key = \"/etc/scoregate/api.key\"
";

const LIVES_SAMPLE: &str = "
# Any endpoint can have windows of its own, and a plain time to live in place of the backend's rhythm.
# [freshness.alerts]
# ttl = \"5m\"
# stale_while_revalidate = \"1h\"
# stale_if_error = \"1d\"
";

const TIERS_SAMPLE: &str = "
# The plans. If any is written here, these five are all replaced. At most eight.
# [tiers.free]
# minute = 1
# day = 10
# paid = false       # false: `latest` is refused, `latestScore` left out
# [tiers.pro]
# minute = 60
# day = 10000
# paid = true
";

const MAPPING_SAMPLE: &str = "
# A backend that speaks other paths and shapes is fitted here, endpoint by endpoint: models, model, history, index,
# alerts, incidents, providers, degradations, recommendations, provider_reliability, transparency, drift. What is not
# written is as if the backend spoke as this gateway does.
# [mapping.models]
# path = \"/scores?period={period}&order={sortBy}\"   # below upstream.url; also {id} and {limit}
# data = \"/result/rows\"        # where the data is, as a JSON pointer; \"\" for the whole body
# shape = \"array\"                 # \"array\", \"object\" (one item) or \"map\" (an object that names its items)
# timestamp = \"/result/at\"       # where the instant of the data is
# complete = true              # this list names every model there is
# [mapping.history]
# path = \"/history/{id}\"
# unsupported = [\"period\"]         # parameters that the backend does not have: each value gets the same data
# not_found = [\"404\", \"error\", \"empty\"]   # no such model: by status, by success = false with the words \"model\" and \"not found\", by an empty list
# [mapping.providers]
# shape = \"map\"
# key_as = \"provider\"          # the member in which an item of a map carries its name
";

#[cfg(test)]
mod tests {
    use super::super::{read_text, resolve};
    use super::*;

    #[test]
    fn the_sample_names_every_setting_and_lacks_the_backend_alone() {
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
    fn every_table_can_be_appended_to_the_sample() {
        for setting in SETTINGS.iter().filter(|setting| setting.default.is_some()) {
            let (table, name) = setting.path.rsplit_once('.').unwrap_or(("", setting.path));
            let header = if table.is_empty() { String::new() } else { format!("[{table}]\n") };
            let value = setting.default.unwrap();
            let text = format!("{}\n{header}{name} = {value}\n", sample());
            let written = read_text(&text).unwrap_or_else(|problems| panic!("{}: {problems}", setting.path));
            assert!(written.says(setting.path), "{}", setting.path);
        }
    }
}
