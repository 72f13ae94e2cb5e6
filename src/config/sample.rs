//! The sample configuration, generated from the table of settings.

use super::settings::SETTINGS;

/// The sample configuration: every setting with its meaning and default. Everything is commented out, including table
/// headers, so that settings can be appended without duplicate keys. Settings without a table come first, because after
/// a table header they would belong to that table.
pub fn sample() -> String {
    let mut lines = vec![HEAD_SAMPLE.to_owned()];
    let mut section = "";
    let (top, in_tables): (Vec<_>, Vec<_>) =
        SETTINGS.iter().partition(|row| !row.path.contains('.'));
    for row in top.into_iter().chain(in_tables) {
        let (table, name) = row.path.rsplit_once('.').unwrap_or(("", row.path));
        if table != section {
            section = table;
            let note = if table == "upstream" {
                "  # instead of upstream = \"built-in\""
            } else {
                ""
            };
            lines.push(format!("\n# [{table}]{note}"));
        }
        let when = if row.needs_restart {
            " Takes effect at the next start."
        } else {
            ""
        };
        lines.push(format!("# {}{when}", row.meaning));
        let shown = if row.path == "upstream" {
            Some("\"built-in\"")
        } else {
            row.default
        };
        lines.push(format!("# {name} = {}", shown.unwrap_or("…")));
    }
    lines.push(NAMED_TABLES.to_owned());
    lines.join("\n")
}

/// Examples of the tables whose names are chosen in the file.
const NAMED_TABLES: &str = include_str!("sample_tables.toml");

const HEAD_SAMPLE: &str = "\
# All settings of scoregate with their defaults. Only the backend has no default: set `upstream`, or `url` in [upstream].
# To set one, remove the `# ` before it and before its [table], or append both at the end. Settings without a table
# must be before the first table.
# Environment variables override the file: SCOREGATE_ and the path in capitals with underscores for dots, such as
# SCOREGATE_UPSTREAM_URL. [tiers], [tls], [mapping], [endpoints] and [upstream.headers] can only be set in the file.
# `scoregate reload` and SIGHUP reload the settings; the marked ones take effect at the next start.
# `scoregate check --config FILE` reports all errors in a file.
";

#[cfg(test)]
mod tests {
    use crate::config::{read_text, resolve};

    use super::*;

    #[test]
    fn sample_contains_every_setting_and_lacks_only_the_backend() {
        let text = sample();
        let problems = resolve(&read_text(&text).unwrap()).unwrap_err().0;
        assert_eq!(
            problems
                .iter()
                .map(|problem| problem.path.as_str())
                .collect::<Vec<_>>(),
            ["upstream"]
        );
        for setting in SETTINGS {
            let name = setting.path.rsplit('.').next().unwrap();
            assert!(text.contains(&format!("# {name} = ")), "{}", setting.path);
            assert!(text.contains(setting.meaning), "{}", setting.path);
        }
    }

    #[test]
    fn every_line_of_the_sample_is_toml_without_its_comment_and_settings_without_a_table_come_first()
     {
        let mut text = String::new();
        text.extend(
            sample()
                .lines()
                .filter_map(|line| line.strip_prefix("# ["))
                .map(|line| format!("[{line}\n")),
        );
        read_text(&text).unwrap_or_else(|problems| panic!("{problems}: {text}"));
        let sample = sample();
        let (before, _) = sample.split_once("\n# [").unwrap();
        for row in SETTINGS.iter().filter(|row| !row.path.contains('.')) {
            assert!(
                before.contains(&format!("\n# {} = ", row.path)),
                "{}",
                row.path
            );
        }
    }

    #[test]
    fn every_table_can_be_appended_to_the_sample() {
        for setting in SETTINGS.iter().filter(|setting| setting.default.is_some()) {
            let (table, name) = setting.path.rsplit_once('.').unwrap_or(("", setting.path));
            let header = if table.is_empty() {
                String::new()
            } else {
                format!("[{table}]\n")
            };
            let value = setting.default.unwrap();
            let text = format!("{}\n{header}{name} = {value}\n", sample());
            let written =
                read_text(&text).unwrap_or_else(|problems| panic!("{}: {problems}", setting.path));
            assert!(written.is_set(setting.path), "{}", setting.path);
        }
    }
}
