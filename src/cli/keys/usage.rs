//! `scoregate keys show --usage`: what an application uses, as the running server has counted it.
//!
//! Not for: who uses most (`top`).

use http::Method;
use serde_json::Value;

use crate::admin::{AllowanceView, ApplicationUseView, USAGE};
use crate::cli::control::{CommandError, ask_running};
use crate::cli::exit::Exit;
use crate::cli::printer;
use crate::config::Config;
use crate::gateway::{CountedRequests, RequestCounts};
use crate::keys::ApplicationId;

/// What the running server says of an application.
pub(super) async fn of(config: &Config, id: ApplicationId) -> Result<Value, CommandError> {
    let asked = (Method::GET, format!("{USAGE}/{id}"), Vec::new());
    ask_running(config, asked, "what is used is counted in the memory of a running server alone").await
}

/// An answer with what is used in it.
pub(super) fn with(mut answer: Value, used: Option<Value>) -> Value {
    if let (Some(used), Some(fields)) = (used, answer.as_object_mut()) {
        fields.insert("usage".into(), used);
    }
    answer
}

/// Shows what is used.
pub(super) fn show(used: Value) -> Exit {
    let used: ApplicationUseView = match serde_json::from_value(used) {
        Ok(used) => used,
        Err(error) => {
            return printer::fault(&anyhow::anyhow!("the server's answer cannot be read: {error}"));
        }
    };
    let row = |allowance: &AllowanceView| {
        let taken = allowance.limit.saturating_sub(allowance.remaining);
        let (limit, remaining) = (allowance.limit.to_string(), allowance.remaining.to_string());
        vec![allowance.name.clone(), limit, taken.to_string(), remaining, allowance.reset_at.clone()]
    };
    let rows: Vec<Vec<String>> = used.limits.iter().map(row).collect();
    let blank = printer::data("\n");
    let limits = printer::table(&["limit", "allows", "used", "left", "whole at"], &rows);
    let counted = match &used.requests {
        Some(counted) => tallies(counted),
        None => printer::data("\ntoo few requests of it came today for it to be counted\n"),
    };
    [blank, limits, counted].into_iter().find(|exit| *exit != Exit::Done).unwrap_or(Exit::Done)
}

fn tallies(counted: &CountedRequests) -> Exit {
    let row = |when: &str, tally: &RequestCounts| {
        let RequestCounts { requests, delivered, waited, unchanged, limited, mistaken, failed } = *tally;
        let numbers = [requests, delivered, waited, unchanged, limited, mistaken, failed];
        std::iter::once(when.to_owned()).chain(numbers.map(|number| number.to_string())).collect()
    };
    let rows = [row("last whole minute", &counted.last_minute), row("today", &counted.today)];
    let names = ["requests", "all", "delivered", "that waited", "unchanged", "limited", "mistaken", "failed"];
    let exit = printer::data("\n");
    if exit != Exit::Done {
        return exit;
    }
    if counted.missed > 0 {
        printer::say(&format!("of today up to {} more may have come before it was noticed", counted.missed));
    }
    printer::table(&names, &rows)
}
