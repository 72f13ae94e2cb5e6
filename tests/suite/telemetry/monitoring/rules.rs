//! The rules in the repository and their tests: promtool accepts and runs them, every alert is tested firing and
//! silent and has its section in the runbook. Whether they return data is tested against a real Prometheus
//! (`monitoring`).

use std::{collections::BTreeSet, path::PathBuf, process::Command};

use super::dashboards::{in_tree, panels};

/// A recording rule or an alert.
#[derive(Debug, Default)]
pub struct Rule {
    pub name: String,
    pub is_alert: bool,
    pub query: String,
    /// The remaining lines.
    rest: Vec<String>,
}

impl Rule {
    /// A one-line field; empty if absent.
    pub fn field(&self, name: &str) -> &str {
        let value = self
            .rest
            .iter()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        value.map_or("", |value| value.trim_matches('\''))
    }
}

fn files(directory: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(in_tree("deploy/prometheus").join(directory)).unwrap();
    let mut all: Vec<_> = all.map(|file| file.unwrap().path()).collect();
    all.sort();
    all
}

fn texts(directory: &str) -> String {
    files(directory)
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect()
}

/// Every rule, parsed from the one format of these files. Completeness is checked where Prometheus
/// lists the rules it has loaded.
pub fn rules() -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut is_query = false;
    for line in texts("rules").lines() {
        let plain = line.trim();
        let rule = rules.last_mut();
        if let Some(name) = plain
            .strip_prefix("- record: ")
            .or(plain.strip_prefix("- alert: "))
        {
            let is_alert = plain.starts_with("- alert");
            rules.push(Rule {
                name: name.into(),
                is_alert,
                ..Rule::default()
            });
            is_query = false;
        } else if let Some(rule) = rule {
            if let Some(query) = plain.strip_prefix("expr: ") {
                is_query = query == ">-";
                rule.query = if is_query {
                    String::new()
                } else {
                    query.into()
                };
            } else if is_query && line.starts_with("          ") {
                rule.query
                    .push_str(if rule.query.is_empty() { "" } else { " " });
                rule.query.push_str(plain);
            } else {
                is_query = false;
                rule.rest.push(plain.to_owned());
            }
        }
    }
    rules
}

pub fn alerts() -> Vec<Rule> {
    rules().into_iter().filter(|rule| rule.is_alert).collect()
}

fn runbook() -> String {
    std::fs::read_to_string(in_tree("deploy/prometheus/RUNBOOK.md")).unwrap()
}

/// Fails if promtool fails.
fn promtool(arguments: &[&str], files: &[PathBuf]) {
    let output = Command::new("promtool")
        .args(arguments)
        .args(files)
        .output()
        .unwrap();
    let messages = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert!(
        output.status.success() && !files.is_empty(),
        "{arguments:?}: {messages}"
    );
}

#[test]
fn promtool_accepts_the_rules() {
    needs!("prometheus");
    promtool(&["check", "rules", "--lint-fatal"], &files("rules"));
}

#[test]
fn promtool_accepts_the_deployed_configuration_which_loads_these_rules() {
    needs!("prometheus");
    let file = in_tree("deploy/prometheus/prometheus.yml");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("rule_files:\n  - rules/*.yml\n"), "{text}");
    // The job name used by the alerts.
    assert!(text.contains("job_name: scoregate\n"), "{text}");
    promtool(&["check", "config"], &[file]);
}

#[test]
fn every_alert_fires_when_it_should_and_is_silent_when_it_should() {
    needs!("prometheus");
    promtool(&["test", "rules"], &files("tests"));
    let mut fires = BTreeSet::new();
    let mut silent = BTreeSet::new();
    let text = texts("tests");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    for pair in lines.windows(2) {
        if let Some(name) = pair[0].strip_prefix("alertname: ") {
            match pair[1] {
                "exp_alerts: []" => silent.insert(name.to_owned()),
                "exp_alerts:" => fires.insert(name.to_owned()),
                other => panic!("{name}: {other}"),
            };
        }
    }
    let all: BTreeSet<String> = alerts().into_iter().map(|alert| alert.name).collect();
    assert!(all.len() > 20, "{all:?}");
    assert_eq!((&fires, &silent), (&all, &all));
}

#[test]
fn every_alert_has_a_severity_a_value_and_an_action() {
    let runbook = runbook();
    for alert in alerts() {
        let Rule { name, .. } = &alert;
        assert!(
            ["page", "ticket"].contains(&alert.field("severity")),
            "{name}"
        );
        assert!(
            alert.field("summary").contains("{{ $labels.") || name == "ScoregateAbsent",
            "{name}"
        );
        assert!(alert.field("description").contains("{{ $value"), "{name}");
        let section = format!("deploy/prometheus/RUNBOOK.md#{}", name.to_lowercase());
        let url = format!("{{{{ $externalLabels.runbook }}}}{section}");
        assert_eq!(alert.field("runbook_url"), url);
        let section = runbook
            .split("\n## ")
            .find(|section| section.starts_with(&format!("{name}\n")));
        let section = section.unwrap_or_else(|| panic!("the runbook has no section {name}"));
        let severity = alert.field("severity");
        let meaning = format!("**Meaning** ({severity}). ");
        assert!(section.contains(&meaning), "{name}: {meaning}");
        let has_steps = ["**Diagnosis.** ", "**Action.** "]
            .iter()
            .all(|words| section.contains(words));
        let refers = section.contains("**Diagnosis and action.** As for [");
        assert!(has_steps || refers, "{name}: no diagnosis or no action");
    }
}

#[test]
fn the_runbook_names_only_existing_alerts_and_panels() {
    let names: BTreeSet<String> = alerts().into_iter().map(|alert| alert.name).collect();
    let text = runbook().split_whitespace().collect::<Vec<_>>().join(" ");
    let links = text
        .split("](#")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap());
    let runbook = runbook();
    let procedures = runbook.lines().filter_map(|line| line.strip_prefix("### "));
    let headings = names.iter().map(String::as_str).chain(procedures);
    let anchors: BTreeSet<String> = headings
        .map(|heading| heading.to_lowercase().replace(' ', "-"))
        .collect();
    links.for_each(|link| assert!(anchors.contains(link), "the runbook has no section #{link}"));
    let sections = runbook.lines().filter_map(|line| line.strip_prefix("## "));
    for section in sections.filter(|section| *section != "Procedures") {
        assert!(names.contains(section), "there is no alert {section}");
    }
    let titles: BTreeSet<String> = panels().into_iter().map(|panel| panel.title).collect();
    let titles_used: Vec<&str> = text.split('"').skip(1).step_by(2).collect();
    assert!(
        titles_used.len() > 10 && titles_used.iter().all(|title| titles.contains(*title)),
        "{titles_used:#?}"
    );
    for panel in panels() {
        let words = panel
            .description
            .split(|letter: char| !letter.is_ascii_alphanumeric());
        for name in words.filter(|word| word.starts_with("Scoregate")) {
            assert!(
                names.contains(name),
                "{}: the runbook has no section {name}",
                panel.title
            );
        }
    }
}

#[test]
fn the_advice_to_start_another_gateway_states_that_it_needs_a_database() {
    let sections = runbook();
    let sections: Vec<&str> = sections
        .split("\n## ")
        .filter(|section| section.contains("another gateway"))
        .collect();
    let [section] = sections.as_slice() else {
        panic!("{sections:#?}");
    };
    assert!(section.starts_with("ScoregateLatencyBurnRateFast"));
    assert!(section.contains("(`store.url`) start another gateway"));
    let advice = panels()
        .into_iter()
        .map(|panel| panel.description.to_lowercase());
    for text in advice.chain([runbook().to_lowercase()]) {
        assert!(
            !text.contains("add an instance") && !text.contains("second instance"),
            "{text}"
        );
    }
}
