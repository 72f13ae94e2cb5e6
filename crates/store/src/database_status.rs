//! The status of a shared database, for metrics.

use scoregate_base::words;
use scoregate_observe::telemetry::metrics::metric_label;

words! {
    /// A table whose rows are updated in normal operation.
    pub enum HotTable: name {
        /// Granted units of each application and day.
        LedgerDays = "ledger_days",
        /// Granted units of each application and day, by gateway process.
        LedgerNodes = "ledger_nodes",
        /// Minute limits.
        MinutePools = "minute_pools",
        /// Keys and the time of their last use.
        Keys = "keys",
        /// Requests that each gateway process answered.
        RequestNodes = "request_nodes",
        /// Shared documents.
        Documents = "documents",
        /// Contents of shared documents.
        DocumentContents = "document_contents",
    }
}

/// The rows of a table, as estimated by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRows {
    /// The table.
    pub table: HotTable,
    /// Rows in use.
    pub live: u64,
    /// Outdated row versions that have not been removed yet.
    pub dead: u64,
}

/// The state of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseStatus {
    /// Whether commits wait for a synchronous standby.
    pub is_synchronous: bool,
    /// The hot tables.
    pub tables: Vec<TableRows>,
}

/// Exchanges of the ledger with a database since startup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeCounts {
    /// Committed transactions.
    pub transactions: u64,
    /// Reports in these transactions.
    pub reports: u64,
}

metric_label!(HotTable: "table", HotTable::ALL, HotTable::name);
