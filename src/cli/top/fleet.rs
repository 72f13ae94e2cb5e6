//! Renders a page of `top --fleet`: the gateways on a store, and usage added up over them. Does no I/O.

use crate::admin::{FleetApplicationView, FleetUsageView, NodeView, NodesView};
use scoregate_base::clock::Wall;

use super::frame::{FrameLine, LineEmphasis};
use super::words::{as_f64, count, short, span};

/// Maximum number of rows for gateways while there are applications to show.
const NODE_ROWS: usize = 12;
/// Maximum number of reported gateways that are not live. One that crashes again and again adds many.
const MISSING_ROWS: usize = 4;
/// Width of the last column.
const NAME_WIDTH: usize = 40;

/// A sample of the fleet.
#[derive(Clone, Debug)]
pub(super) struct FleetSample {
    pub(super) at: Wall,
    pub(super) nodes: NodesView,
    pub(super) usage: FleetUsageView,
}

impl FleetSample {
    /// The lines of a page, at most `rows`.
    pub(super) fn lines(&self, rows: usize) -> Vec<FrameLine> {
        let mut lines = vec![
            FrameLine::plain(self.title()),
            FrameLine::plain(self.summary()),
        ];
        let missing = self
            .nodes
            .nodes
            .iter()
            .rev()
            .filter(|node| !node.live)
            .take(MISSING_ROWS);
        lines.extend(missing.map(|node| FrameLine {
            text: format!(
                "! gateway {} ({}) was last seen {} ago",
                node.node,
                short(&node.name, NAME_WIDTH),
                span(as_f64(node.last_seen_seconds_ago))
            ),
            emphasis: LineEmphasis::Alarm,
        }));
        lines.push(FrameLine::plain(String::new()));
        lines.extend(self.gateways());
        lines.push(FrameLine::plain(String::new()));
        lines.extend(self.applications());
        lines.truncate(rows);
        lines
    }

    fn title(&self) -> String {
        format!("scoregate fleet   {}", self.at.rfc3339())
    }

    fn summary(&self) -> String {
        let used = count(as_f64(self.usage.used));
        let held = count(as_f64(self.nodes.units_held));
        let applications = count(as_f64(self.usage.used_by));
        let recorded = self.usage.recorded_seconds_ago;
        let age = recorded.map_or_else(
            || "unknown".into(),
            |seconds| format!("{} ago", span(as_f64(seconds))),
        );
        let live = self.nodes.live;
        format!(
            "gateways {live}   units used today {used}   held {held}   applications {applications}   usage recorded {age}"
        )
    }

    fn gateways(&self) -> Vec<FrameLine> {
        let header = format!(
            "{:<17} {:<10} {:>12} {:>12} {:>10}  NAME",
            "GATEWAY", "VERSION", "UP", "SEEN", "UNITS HELD"
        );
        let live = self
            .nodes
            .nodes
            .iter()
            .filter(|node| node.live)
            .take(NODE_ROWS);
        std::iter::once(FrameLine::header(header))
            .chain(live.map(|node| self.gateway(node)))
            .collect()
    }

    fn gateway(&self, node: &NodeView) -> FrameLine {
        let NodeView {
            node: number,
            version,
            last_seen_seconds_ago,
            units_held,
            name,
            ..
        } = node;
        let since = Wall::parse_rfc3339(&node.started_at).unwrap_or(self.at);
        let up = span(self.at.since(since).as_secs_f64());
        let seen = span(as_f64(*last_seen_seconds_ago));
        let held = count(as_f64(*units_held));
        let name = short(name, NAME_WIDTH);
        FrameLine::plain(format!(
            "{number:<17} {version:<10} {up:>12} {seen:>12} {held:>10}  {name}"
        ))
    }

    fn applications(&self) -> Vec<FrameLine> {
        let header = format!(
            "{:<17} {:<10} {:>12} {:>12}  NAME",
            "APPLICATION", "TIER", "UNITS TODAY", "GRANTED"
        );
        let rows = self.usage.applications.iter().map(|used| {
            let FleetApplicationView {
                application,
                name,
                tier,
                ..
            } = used;
            let tier = short(tier.as_deref().unwrap_or("-"), 10);
            let name = short(name.as_deref().unwrap_or("-"), NAME_WIDTH);
            let [units, granted] = [used.used, used.granted].map(|units| count(as_f64(units)));
            FrameLine::plain(format!(
                "{application:<17} {tier:<10} {units:>12} {granted:>12}  {name}"
            ))
        });
        std::iter::once(FrameLine::header(header))
            .chain(rows)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u64, live: bool) -> NodeView {
        NodeView {
            node: format!("{number:016x}"),
            name: "gate\u{7}".into(),
            version: "1.2.3".into(),
            started_at: "1970-01-01T00:01:00Z".into(),
            last_seen_at: String::new(),
            last_seen_seconds_ago: if live { 4 } else { 61 },
            live,
            units_held: 1_500,
            usage_recorded_at: String::new(),
        }
    }

    #[test]
    fn a_page_shows_live_gateways_missing_ones_and_the_usage_of_applications() {
        let application = FleetApplicationView {
            application: "app_0123456789a".into(),
            name: Some("Station".into()),
            tier: Some("pro".into()),
            used: 4_321,
            granted: 5_000,
        };
        let usage = FleetUsageView {
            day: "1970-01-01".into(),
            used: 12_345,
            used_by: 7,
            live: 1,
            recorded_at: None,
            recorded_seconds_ago: Some(42),
            applications: vec![application],
        };
        let nodes = NodesView {
            live: 1,
            units_held: 1_500,
            nodes: vec![node(1, true), node(2, false)],
        };
        let sample = FleetSample {
            at: Wall::from_seconds(120),
            nodes,
            usage,
        };
        let page = sample.lines(usize::MAX);
        let text: Vec<&str> = page.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(text[0], "scoregate fleet   1970-01-01T00:02:00Z");
        let summary = "gateways 1   units used today 12,345   held 1,500   applications 7   usage recorded 42 s ago";
        assert_eq!(text[1], summary);
        assert_eq!(
            text[2],
            "! gateway 0000000000000002 (gate?) was last seen 1 min 1 s ago"
        );
        assert_eq!(page[2].emphasis, LineEmphasis::Alarm);
        let words = |start: &str| {
            let line = text.iter().find(|line| line.starts_with(start)).unwrap();
            line.split_whitespace().collect::<Vec<_>>()
        };
        let gateway = [
            "0000000000000001",
            "1.2.3",
            "1",
            "min",
            "0",
            "s",
            "4",
            "s",
            "1,500",
            "gate?",
        ];
        assert_eq!(words("0000000000000001"), gateway);
        assert_eq!(
            words("app_"),
            ["app_0123456789a", "pro", "4,321", "5,000", "Station"]
        );
        assert_eq!(sample.lines(3).len(), 3);
    }
}
