//! The usage of a month, for billing: `scoregate usage`. Commands on the usage that this gateway counts are in `live`.

use clap::Subcommand;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    admin::{
        command_problem::{CommandProblem, CommandResult},
        fleet::FleetReports,
    },
    statistics::read_month,
};
use scoregate_base::clock::Day;
use scoregate_store::{UsageTotal, first_of_month};

/// A command for a month's usage.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum UsageExportCommand {
    /// Export the units of a month: a line for each application and closed day.
    #[command(after_help = "Examples:\n  \
        scoregate usage export --month 2026-11 --data-dir DIR > usage.csv\n  \
        scoregate usage export --month 2026-11 --json --data-dir DIR > usage.jsonl\n\n\
        A day is closed two days after its end, and a month with its last day. Lines of closed days never change. A closed\n\
        month has a digest: the SHA-256 of its lines as JSON. Usage is kept for 92 days.")]
    Export {
        /// The month in UTC, such as 2026-11.
        #[arg(long)]
        month: String,
        /// The requested day. Default: the first day of the month. The command line requests all days.
        #[arg(skip)]
        day: Option<Day>,
    },
}

/// The usage lines of one day.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UsageExport {
    /// The lines, by application. Empty while the day is open.
    pub lines: Vec<UsageTotal>,
    /// The next day of the month.
    pub next: Option<Day>,
    /// Whether all days are closed. This field and the next one are only in the response for the first day.
    pub is_closed: Option<bool>,
    /// SHA-256 of all lines of a closed month as JSON, each followed by a line feed.
    pub sha256: Option<String>,
}

impl UsageExportCommand {
    pub(super) async fn perform(self, reports: &FleetReports) -> CommandResult {
        let Self::Export { month, day } = self;
        let (_, today) = reports.last_days(1);
        let first = first_of_month(&month, today).ok_or_else(|| {
            CommandProblem::bad(
                "month: write a month that began in the last 92 days, such as 2026-11",
            )
        })?;
        let [_, end] = first.month(1);
        let store = reports.store();
        let shown = day.unwrap_or(first);
        let mut usage = store.usage(shown, usize::MAX, None).await?;
        usage.totals.retain(|_| usage.is_closed);
        let next = Some(shown.next()).filter(|next| *next < end);
        let sha256 = match day {
            None => read_month(store, first, None, drop).await?,
            Some(_) => None,
        };
        Ok(json!(UsageExport {
            lines: usage.totals,
            next,
            is_closed: day.is_none().then_some(sha256.is_some()),
            sha256,
        }))
    }
}
