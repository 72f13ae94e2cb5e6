//! The dashboards in the repository: each panel has a question, a unit and an action, and works after an import.
//! Whether the queries return data is tested against a real Prometheus (`monitoring`).

use std::{collections::BTreeSet, path::PathBuf, process::Command};

use serde_json::Value as Json;

use super::promql::metrics;

/// A panel and its queries.
pub struct Panel {
    pub dashboard: String,
    pub title: String,
    /// The action for the operator.
    pub description: String,
    /// Its queries as written.
    pub queries: Vec<String>,
    pub json: Json,
}

/// A file or directory of the repository.
pub fn in_tree(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Every dashboard by file name.
pub fn dashboards() -> Vec<(String, Json)> {
    let files = std::fs::read_dir(in_tree("grafana/dashboards")).unwrap();
    let mut all: Vec<_> = files
        .map(|file| {
            let path = file.unwrap().path();
            let json = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), json)
        })
        .collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    all
}

/// Every panel of every dashboard.
pub fn panels() -> Vec<Panel> {
    let mut all = Vec::new();
    for (dashboard, json) in dashboards() {
        for panel in list(&json["panels"])
            .iter()
            .filter(|panel| panel["type"] != "row")
        {
            let queries = list(&panel["targets"])
                .iter()
                .map(|target| text(&target["expr"]))
                .collect();
            let title = text(&panel["title"]);
            let description = text(&panel["description"]);
            all.push(Panel {
                dashboard: dashboard.clone(),
                title,
                description,
                queries,
                json: panel.clone(),
            });
        }
    }
    all
}

/// Sources of the variables of all dashboards: metric and label.
pub fn variables() -> BTreeSet<(String, String)> {
    let all = dashboards();
    let variables = all
        .iter()
        .flat_map(|(_, json)| list(&json["templating"]["list"]));
    let of = |variable: &Json| {
        let query = text(&variable["query"]["query"]);
        let inside = query.strip_prefix("label_values(")?.strip_suffix(')')?;
        let (metric, label) = inside.split_once(", ")?;
        Some((metric.to_owned(), label.to_owned()))
    };
    variables
        .filter(|variable| variable["type"] == "query")
        .map(|variable| of(variable).unwrap())
        .collect()
}

/// The queries of all annotations with the dashboard's name.
pub fn annotations() -> Vec<(String, String)> {
    let of = |(name, json): (String, Json)| {
        let all = list(&json["annotations"]["list"]).iter();
        all.map(move |one| (name.clone(), text(&one["expr"])))
            .collect::<Vec<_>>()
    };
    dashboards().into_iter().flat_map(of).collect()
}

pub fn list(json: &Json) -> &[Json] {
    json.as_array().map_or(&[], Vec::as_slice)
}

pub fn text(json: &Json) -> String {
    json.as_str().unwrap_or_default().to_owned()
}

impl Panel {
    /// The legends of its queries, as in the file.
    pub fn legends(&self) -> Vec<String> {
        list(&self.json["targets"])
            .iter()
            .map(|target| text(&target["legendFormat"]))
            .collect()
    }

    /// A property of the series of this name, by the first matching override.
    pub fn property(&self, series: &str, property: &str) -> Option<&Json> {
        let overrides = list(&self.json["fieldConfig"]["overrides"]);
        let properties = overrides
            .iter()
            .filter(|one| matches(&text(&one["matcher"]["options"]), series));
        let mut found = properties.flat_map(|one| list(&one["properties"]));
        found
            .find(|one| one["id"] == property)
            .map(|one| &one["value"])
    }
}

/// Whether an override pattern, such as `/^(?:one|two_.*)$/`, matches a name. Supports the subset that our patterns
/// use.
fn matches(pattern: &str, name: &str) -> bool {
    let inside = pattern
        .strip_prefix("/^(?:")
        .and_then(|rest| rest.strip_suffix(")$/"))
        .unwrap_or("");
    inside.split('|').any(|word| match word.strip_suffix(".*") {
        Some(begin) => name.starts_with(begin),
        None => name == word,
    })
}

/// The uids of all referenced data sources.
fn datasources(json: &Json, found: &mut BTreeSet<String>) {
    match json {
        Json::Object(fields) => {
            for (name, value) in fields {
                if name == "datasource" {
                    found.insert(text(&value["uid"]));
                }
                datasources(value, found);
            }
        }
        Json::Array(items) => items.iter().for_each(|item| datasources(item, found)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

#[test]
fn the_dashboards_match_their_table() {
    needs!("python3");
    let output = Command::new("python3")
        .arg(in_tree("grafana/dashboards.py"))
        .arg("--check")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn every_panel_has_a_question_a_unit_and_an_action() {
    let all = panels();
    assert!(all.len() > 40, "{}", all.len());
    for Panel {
        dashboard,
        title,
        description,
        queries,
        json,
    } in &all
    {
        let panel_name = format!("{dashboard}: {title}");
        assert!(
            title.ends_with('?') && title.starts_with(char::is_uppercase),
            "{panel_name}"
        );
        assert!(
            description.len() > 40 && description.ends_with('.'),
            "{panel_name}: {description}"
        );
        assert!(
            !text(&json["fieldConfig"]["defaults"]["unit"]).is_empty(),
            "{panel_name} has no unit"
        );
        assert!(
            !queries.is_empty() && queries.iter().all(|query| !query.is_empty()),
            "{panel_name}"
        );
    }
}

#[test]
fn every_dashboard_works_where_it_is_imported() {
    let mut uids = BTreeSet::new();
    let all = dashboards();
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["cache", "limits", "on-call", "upstream"]);
    for (name, json) in &all {
        assert!(
            uids.insert(text(&json["uid"])) && !json["uid"].is_null(),
            "{name} does not have a unique uid"
        );
        assert!(json["schemaVersion"].as_u64() >= Some(41), "{name}");
        assert!(json["id"].is_null(), "{name}: an id of another Grafana");
        let mut sources = BTreeSet::new();
        datasources(json, &mut sources);
        assert_eq!(
            sources,
            BTreeSet::from(["${datasource}".to_owned()]),
            "{name}"
        );
        let panels = list(&json["panels"]);
        let ids: BTreeSet<_> = panels
            .iter()
            .map(|panel| panel["id"].as_u64().unwrap())
            .collect();
        let titles: BTreeSet<_> = panels.iter().map(|panel| text(&panel["title"])).collect();
        assert_eq!(
            (ids.len(), titles.len()),
            (panels.len(), panels.len()),
            "{name}"
        );
        let mut cells = BTreeSet::new();
        for panel in panels {
            let side = |which: &str| panel["gridPos"][which].as_u64().unwrap();
            assert!(side("x") + side("w") <= 24, "{name}: {}", panel["title"]);
            for (x, y) in (0..side("w")).flat_map(|x| (0..side("h")).map(move |y| (x, y))) {
                assert!(
                    cells.insert((x + side("x"), y + side("y"))),
                    "{name}: {} overlaps another panel",
                    panel["title"]
                );
            }
        }
    }
}

#[test]
fn every_query_filters_by_instance_and_every_variable_is_defined_and_used() {
    for (name, json) in dashboards() {
        let variables: BTreeSet<_> = list(&json["templating"]["list"])
            .iter()
            .map(|one| text(&one["name"]))
            .collect();
        let queries: Vec<String> = panels()
            .into_iter()
            .filter(|panel| panel.dashboard == name)
            .flat_map(|panel| panel.queries)
            .collect();
        for query in &queries {
            let used = query
                .split('$')
                .skip(1)
                .map(|rest| rest.split(['"', ']']).next().unwrap());
            for variable in used.filter(|variable| *variable != "__rate_interval") {
                assert!(
                    variables.contains(variable),
                    "{name}: there is no ${variable}"
                );
            }
            // Aggregations over all instances no longer have this label.
            let of_all = |metric: &String| {
                metric.starts_with("job:") || metric.starts_with("endpoint:") || metric == "ALERTS"
            };
            let filters_by_instance =
                query.contains("instance=~\"$instance\"") || metrics(query).iter().all(of_all);
            assert!(filters_by_instance, "{name}: {query}");
            let is_by_tier = query.contains("by (tier") || query.contains(", tier)");
            assert!(
                !is_by_tier || query.contains("tier=~\"$tier\""),
                "{name}: {query}"
            );
        }
        for variable in variables
            .iter()
            .filter(|name| !["datasource", "runbook"].contains(&name.as_str()))
        {
            let is_used = queries
                .iter()
                .any(|query| query.contains(&format!("${variable}")));
            assert!(is_used, "{name}: no query uses ${variable}");
        }
        assert!(
            variables.contains("datasource") && variables.contains("instance"),
            "{name}: {variables:?}"
        );
    }
}

#[test]
fn a_panel_distinguishes_series_by_one_label() {
    for panel in panels() {
        for legend in panel.legends() {
            assert!(
                legend.matches("{{").count() <= 1,
                "{}: {}: {legend}",
                panel.dashboard,
                panel.title
            );
        }
    }
}

#[test]
fn no_stat_title_is_truncated_at_1280_pixels() {
    // A letter of Grafana's titles is at most 8 pixels wide on average; the rest is the menu and the padding.
    const WINDOW: u64 = 1_248;
    const TITLE_MARGIN: u64 = 40;
    const LETTER: u64 = 8;
    for panel in panels().iter().filter(|panel| panel.json["type"] == "stat") {
        let width = panel.json["gridPos"]["w"].as_u64().unwrap() * WINDOW / 24 - TITLE_MARGIN;
        let title = panel.title.chars().count() as u64 * LETTER;
        assert!(
            title <= width,
            "{}: {} needs {title} of {width} pixels",
            panel.dashboard,
            panel.title
        );
    }
}

#[test]
fn deploys_and_restarts_are_annotated_on_every_dashboard() {
    let all = annotations();
    for (name, json) in dashboards() {
        let named: Vec<String> = list(&json["annotations"]["list"])
            .iter()
            .map(|one| text(&one["name"]))
            .collect();
        assert_eq!(named, ["Deploys", "Restarts"], "{name}");
        for (_, query) in all.iter().filter(|(dashboard, _)| *dashboard == name) {
            assert!(query.contains("instance=~\"$instance\""), "{name}: {query}");
        }
    }
}

#[test]
fn the_firing_alerts_are_listed_with_their_urgency() {
    let all = panels();
    let list = all
        .iter()
        .find(|panel| panel.dashboard == "on-call" && panel.json["type"] == "table");
    let list = list.expect("on-call has a list of alerts");
    assert_eq!(
        list.queries,
        ["ALERTS{alertname=~\"Scoregate.*\", alertstate=\"firing\"}"]
    );
    let columns = &list.json["transformations"][0]["options"]["indexByName"];
    assert_eq!(
        [
            &columns["alertname"],
            &columns["severity"],
            &columns["instance"]
        ],
        [0, 1, 2]
    );
}
