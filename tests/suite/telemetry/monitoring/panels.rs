//! Consistency of the panels of the dashboards: colours, limits, thresholds, links and pictures.

use std::{collections::BTreeSet, process::Command};

use scoregate_base::plans::standard_tiers;

use super::{
    dashboards::{Panel, dashboards, in_tree, list, panels, text},
    promql::metrics,
};

const GREEN: &str = "#16a34a";
const AMBER: &str = "#d97706";
const RED: &str = "#dc2626";

/// Values of labels that have the same colour in every panel.
const COLOURS: [(&str, &str, &str); 11] = [
    ("class", "2xx", GREEN),
    ("class", "4xx", AMBER),
    ("class", "5xx", RED),
    ("outcome", "hit", GREEN),
    ("outcome", "stale", AMBER),
    ("code", "upstream_unavailable", RED),
    ("code", "overloaded", RED),
    ("code", "quota_exceeded", AMBER),
    ("result", "success", GREEN),
    ("result", "timeout", RED),
    ("use", "lost", RED),
];

#[test]
fn success_is_green_degradation_amber_and_failure_red_in_every_panel() {
    for (label, value, colour) in COLOURS {
        let legend = format!("{{{{{label}}}}}");
        let all = panels();
        let shown: Vec<&Panel> = all
            .iter()
            .filter(|panel| panel.legends().contains(&legend))
            .collect();
        assert!(!shown.is_empty(), "no panel shows {label}");
        for panel in shown {
            let found = panel
                .property(value, "color")
                .map(|found| text(&found["fixedColor"]));
            assert_eq!(
                found.as_deref(),
                Some(colour),
                "{}: {}: {value}",
                panel.dashboard,
                panel.title
            );
        }
    }
}

#[test]
fn every_tier_has_one_colour_of_its_own_in_every_panel() {
    let names: Vec<String> = standard_tiers()
        .into_iter()
        .map(|tier| tier.name)
        .chain(["none".into()])
        .collect();
    let all = panels();
    let shown: Vec<&Panel> = all
        .iter()
        .filter(|panel| panel.legends().iter().any(|legend| legend == "{{tier}}"))
        .collect();
    assert!(shown.len() >= 6, "{}", shown.len());
    let colours = |panel: &Panel| {
        let colour = |name: &String| {
            let found = panel.property(name, "color");
            let found = found.unwrap_or_else(|| panic!("{}: {name} has no colour", panel.title));
            assert_eq!(found["mode"], "fixed", "{}: {name}", panel.title);
            text(&found["fixedColor"])
        };
        names.iter().map(colour).collect::<Vec<_>>()
    };
    let first = colours(shown[0]);
    assert!(shown.iter().all(|panel| colours(panel) == first));
    let different: BTreeSet<&String> = first.iter().collect();
    assert_eq!(different.len(), names.len(), "{first:?}");
    assert!(
        !first
            .iter()
            .any(|colour| [GREEN, AMBER, RED].contains(&colour.as_str())),
        "{first:?}"
    );
}

/// The value from which a stat changes its colour.
fn threshold(panel: &Panel) -> f64 {
    let steps = &panel.json["fieldConfig"]["defaults"]["thresholds"]["steps"];
    list(steps).last().unwrap()["value"].as_f64().unwrap()
}

#[test]
fn the_share_of_served_requests_is_red_when_the_burn_rate_of_its_budget_is() {
    let all = panels();
    let panel = |title: &str| all.iter().find(|panel| panel.title == title).unwrap();
    let served = panel("Are callers being served?");
    let budgets = panel("How fast do error budgets burn?");
    let budget = "job:scoregate_answers_failed:ratio_rate5m / 0.001";
    assert_eq!(budgets.queries[0], budget);
    assert!(
        served.queries[0].contains("[5m]"),
        "both cover the same time: {}",
        served.queries[0]
    );
    let allowed: f64 = budget.rsplit(' ').next().unwrap().parse().unwrap();
    let difference = 1.0 - threshold(served) - threshold(budgets) * allowed;
    assert!(difference.abs() < 1e-9, "{difference}");
    let objectives = std::fs::read_to_string(in_tree("deploy/prometheus/rules/slo.yml")).unwrap();
    let alert = format!("ratio_rate6h > {} * {allowed} and", threshold(budgets));
    assert!(
        objectives.contains(&alert),
        "an alert has the same threshold: {alert}"
    );
}

#[test]
fn panels_link_to_the_sections_of_the_runbook_that_they_name() {
    const RUNBOOK: &str = "${runbook:raw}deploy/prometheus/RUNBOOK.md";
    let mut linked = 0;
    for panel in panels() {
        let words = panel
            .description
            .split(|letter: char| !letter.is_ascii_alphanumeric());
        let named =
            words.filter(|word| word.starts_with("Scoregate") && word.len() > "Scoregate".len());
        let mut expected: Vec<String> = named
            .map(|name| format!("{RUNBOOK}#{}", name.to_lowercase()))
            .collect();
        if panel.description.contains("RUNBOOK.md") {
            expected.push(RUNBOOK.to_owned());
        }
        let links: Vec<String> = list(&panel.json["links"])
            .iter()
            .map(|link| text(&link["url"]))
            .collect();
        assert_eq!(links, expected, "{}: {}", panel.dashboard, panel.title);
        linked += links.len();
    }
    assert!(linked > 30, "{linked}");
    for (name, json) in dashboards() {
        let variables = list(&json["templating"]["list"]);
        let address = variables
            .iter()
            .find(|variable| variable["name"] == "runbook");
        let address = text(&address.unwrap_or_else(|| panic!("{name}: no address"))["query"]);
        assert!(
            address.starts_with("https://") && address.ends_with('/'),
            "{name}: {address}"
        );
    }
}

#[test]
fn the_pictures_are_those_of_the_present_dashboards() {
    needs!("python3");
    let script = in_tree("grafana/pictures/make.py");
    let output = Command::new("python3")
        .arg(script)
        .arg("--check")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Gauges and their limit lines.
const LIMITED: [(&str, &str); 7] = [
    ("scoregate_connections", "scoregate_connections_limit"),
    (
        "scoregate_concurrency_in_use",
        "scoregate_concurrency_limit",
    ),
    (
        "scoregate_data_dir_free_bytes",
        "scoregate_data_dir_size_bytes",
    ),
    ("process_cpu_seconds_total", "scoregate_cpu_limit_cores"),
    (
        "process_resident_memory_bytes",
        "scoregate_memory_limit_bytes",
    ),
    ("process_open_fds", "process_max_fds"),
    ("scoregate_fleet_gateways", "scoregate_fleet_gateways_limit"),
];

#[test]
fn panels_with_a_limit_draw_it_as_a_dashed_red_line() {
    for (gauge, limit) in LIMITED {
        let asks = |panel: &Panel, name: &str| {
            panel
                .queries
                .iter()
                .any(|query| metrics(query).contains(name))
        };
        let all = panels();
        let shown: Vec<&Panel> = all.iter().filter(|panel| asks(panel, gauge)).collect();
        assert!(!shown.is_empty(), "no panel shows {gauge}");
        for panel in shown {
            assert!(asks(panel, limit), "{}: no {limit}", panel.title);
            let legends = panel.legends();
            let line = legends.iter().find(|legend| legend.starts_with("limit"));
            let line = line.unwrap_or_else(|| panic!("{}: no line at the limit", panel.title));
            assert_eq!(
                panel.property(line, "color").unwrap()["fixedColor"],
                RED,
                "{}",
                panel.title
            );
            assert_eq!(
                panel.property(line, "custom.lineStyle").unwrap()["fill"],
                "dash",
                "{}",
                panel.title
            );
        }
    }
}
