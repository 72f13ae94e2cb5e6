//! Dashboards, rules and alerts, compared with the table of metrics and run on a real Prometheus that scrapes a
//! gateway under all kinds of traffic.

mod alertmanager;
mod dashboards;
mod names;
mod panels;
mod prometheus;
mod promql;
mod rules;
mod traffic;

use std::{
    collections::BTreeSet,
    io::Write as _,
    process::{Command, Stdio},
};

use self::{
    prometheus::Prometheus,
    promql::{with_variables_replaced, without_threshold},
    rules::Rule,
    traffic::Traffic,
};

/// Whether a query returns data that a panel can show.
async fn returns_data(prometheus: &Prometheus, query: &str) -> Result<(), String> {
    let found = prometheus.query(query).await?;
    let is_there = found.iter().any(|value| value.is_finite());
    is_there.then_some(()).ok_or_else(|| format!("{found:?}"))
}

async fn findings(prometheus: &Prometheus) -> Vec<String> {
    let mut findings = Vec::new();
    for panel in dashboards::panels() {
        for query in panel.queries {
            if let Err(why) = returns_data(prometheus, &with_variables_replaced(&query)).await {
                findings.push(format!(
                    "{}: {}: {query}: {why}",
                    panel.dashboard, panel.title
                ));
            }
        }
    }
    for (dashboard, query) in dashboards::annotations() {
        if let Err(why) = returns_data(prometheus, &with_variables_replaced(&query)).await {
            findings.push(format!("{dashboard}: an annotation: {query}: {why}"));
        }
    }
    for (metric, label) in dashboards::variables() {
        if prometheus.values(&metric, &label).await == 0 {
            findings.push(format!("the variable {label} of {metric} is empty"));
        }
    }
    for Rule {
        name,
        is_alert,
        query,
        ..
    } in rules::rules()
    {
        let query = if is_alert {
            without_threshold(&query)
        } else {
            query
        };
        // Recorded series must also exist under their names.
        for query in [Some(&query), (!is_alert).then_some(&name)]
            .into_iter()
            .flatten()
        {
            if let Err(why) = returns_data(prometheus, query).await {
                findings.push(format!("{name}: {query}: {why}"));
            }
        }
    }
    findings
}

#[tokio::test]
async fn every_query_of_every_panel_rule_and_alert_returns_data_from_a_real_prometheus() {
    needs!("prometheus");
    let mut traffic = Traffic::new().await;
    let prometheus = Prometheus::start(&traffic.sides());
    // `rate` does not see increments before the first scrape.
    prometheus.reaches("count(scoregate_keys)", 2.0).await;
    traffic.run_all().await;
    let looked = prometheus
        .query("min(count_over_time(up[1h]))")
        .await
        .unwrap()[0];
    prometheus
        .reaches("min(count_over_time(up[1h]))", looked + 4.0)
        .await;

    let read = prometheus.rules().await;
    for rule in &read {
        assert_eq!(
            (&rule["health"], &rule["lastError"]),
            (&"ok".into(), &serde_json::Value::Null),
            "{rule}"
        );
    }
    let named: BTreeSet<String> = read
        .iter()
        .map(|rule| rule["name"].as_str().unwrap().to_owned())
        .collect();
    let ours: BTreeSet<String> = rules::rules().into_iter().map(|rule| rule.name).collect();
    assert_eq!((read.len(), named), (rules::rules().len(), ours));
    let findings = findings(&prometheus).await;
    assert!(findings.is_empty(), "{findings:#?}");
    assert!(
        returns_data(&prometheus, "scoregate_surprise")
            .await
            .is_err(),
        "a query without data is detected"
    );
    prometheus.stop();
}

#[tokio::test]
async fn promtool_accepts_the_metrics_of_the_side_port() {
    needs!("prometheus");
    let world = crate::world::World::new().await;
    let mut command = Command::new("promtool");
    command
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(world.scrape().await.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let messages = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert!(output.status.success() && messages.is_empty(), "{messages}");
}
