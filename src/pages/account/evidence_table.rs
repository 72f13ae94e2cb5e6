//! How an application used the API in recent days: the evidence that operators also see, and advice.

use super::frame;
use crate::pages::html::{escape, grouped, table};
use scoregate_base::{
    clock::Day,
    evidence::{DayEvidence, judgement::advice},
};

/// The section about API usage. `days` is `None` if the store did not return them.
pub fn section(days: Option<&[(Day, DayEvidence)]>) -> String {
    let content = match days {
        None => "<p>This is temporarily unavailable. Reload the page in a minute.</p>\n".into(),
        Some([]) => {
            "<p>No requests yet. An hour appears here a few minutes after it ends.</p>\n".into()
        }
        Some(days) => content(days),
    };
    frame::section("pattern", "How the API is used", &content)
}

fn content(days: &[(Day, DayEvidence)]) -> String {
    let evidence: Vec<DayEvidence> = days.iter().map(|(_, evidence)| evidence.clone()).collect();
    let pieces = advice(&evidence)
        .into_iter()
        .map(|piece| ["<p>".into(), escape(&piece.sentence()), "</p>\n".into()]);
    let advice: String = pieces.flatten().collect();
    let rows = days.iter().rev().map(|(day, evidence)| {
        vec![
            day.to_string(),
            grouped(evidence.counts.delivered),
            grouped(evidence.counts.unchanged),
            grouped(evidence.repeated),
            format!("{:.0} %", evidence.share() * 100.0),
            estimate(evidence.networks.distinct()),
            estimate(evidence.agents.distinct()),
        ]
    });
    let heads = [
        "Day",
        "Documents",
        "304",
        "Repeated",
        "Models",
        "Networks",
        "Programs",
    ];
    format!(
        "{advice}{}<p class=\"hint\">Repeated: documents that were delivered before in the same hour. Models: the requested share of all \
         models. Networks and programs are estimates; addresses are not stored. Kept for 40 days.</p>\n",
        table("Use by day", &heads, rows)
    )
}

fn estimate(number: Option<u32>) -> String {
    number.map_or_else(|| "many".into(), grouped)
}
