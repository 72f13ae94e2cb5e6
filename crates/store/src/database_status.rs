//! The state of a database that several gateways share, for metrics.

use scoregate_observe::telemetry::metrics::metric_label;

/// A table whose rows are updated in normal operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotTable {
    /// Granted units of each application and day.
    LedgerDays,
    /// The same for each gateway process.
    LedgerNodes,
    /// Minute limits.
    MinutePools,
    /// Shares of minute limits.
    MinuteShares,
    /// Keys with their last use.
    Keys,
    /// Delivered units of each gateway process.
    UsageNodes,
    /// Shared documents.
    Documents,
    /// Their contents.
    DocumentContents,
}

/// The rows of a table, as estimated by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRows {
    /// The table.
    pub table: HotTable,
    /// Rows in use.
    pub live: u64,
    /// Outdated versions of rows that were not removed yet.
    pub dead: u64,
}

/// The state of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseStatus {
    /// Whether commits wait for a synchronous standby.
    pub is_synchronous: bool,
    /// Its hot tables.
    pub tables: Vec<TableRows>,
}

/// Exchanges of the ledger with a database since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeCounts {
    /// Committed transactions.
    pub transactions: u64,
    /// Reports in these transactions.
    pub reports: u64,
}

impl HotTable {
    /// All, in the order of the variants.
    pub const ALL: [Self; 8] = [
        Self::LedgerDays,
        Self::LedgerNodes,
        Self::MinutePools,
        Self::MinuteShares,
        Self::Keys,
        Self::UsageNodes,
        Self::Documents,
        Self::DocumentContents,
    ];

    /// Its name in the database, and in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LedgerDays => "ledger_days",
            Self::LedgerNodes => "ledger_nodes",
            Self::MinutePools => "minute_pools",
            Self::MinuteShares => "minute_shares",
            Self::Keys => "keys",
            Self::UsageNodes => "usage_nodes",
            Self::Documents => "documents",
            Self::DocumentContents => "document_contents",
        }
    }
}

metric_label!(HotTable: "table", HotTable::ALL, HotTable::name);
