//! The table of a simulation: a row for each caching policy.

use super::Policy;

/// Results of one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub policy: Policy,
    pub responses: u32,
    /// Responses with data older than the data of the backend at that moment.
    pub not_current: u32,
    /// Maximum delay of such a response: the seconds since the first refresh that its data lack.
    pub worst_lateness: u64,
    /// Mean delay in seconds from a refresh to the fetch of a body, over all documents.
    pub mean_lateness: f64,
    pub requests: u32,
    pub bodies: u32,
    pub unchanged: u32,
    /// Maximum number of bodies of one document between two refreshes.
    pub most_bodies: u32,
    /// Responses that waited for the backend.
    pub waited: u32,
    /// Number of versions of the data.
    pub refreshes: u32,
}

impl Row {
    pub fn of(policy: Policy) -> Self {
        Self {
            policy,
            responses: 0,
            not_current: 0,
            worst_lateness: 0,
            mean_lateness: 0.0,
            requests: 0,
            bodies: 0,
            unchanged: 0,
            most_bodies: 0,
            waited: 0,
            refreshes: 0,
        }
    }

    /// Records a response: its delay, if it was not current, and its cache outcome.
    pub fn answered(&mut self, lateness: Option<u64>, cache_status: &str) {
        self.responses += 1;
        self.not_current += u32::from(lateness.is_some());
        self.worst_lateness = self.worst_lateness.max(lateness.unwrap_or(0));
        self.waited += u32::from(!cache_status.starts_with("scoregate; hit"));
    }

    fn share(&self) -> f64 {
        f64::from(self.not_current) * 100.0 / f64::from(self.responses)
    }

    /// Bodies per document and version of its data.
    fn bodies_for_each(&self, documents: u32) -> f64 {
        f64::from(self.bodies) / f64::from(documents * self.refreshes)
    }
}

#[expect(clippy::print_stdout, reason = "the test prints its table")]
pub fn print(rows: &[Row], seed: u64, days: u64, customers: usize) {
    let documents = u32::try_from(crate::snapshot_upstream::DOCUMENTS.len()).unwrap();
    let refreshes = rows.first().map_or(0, |row| row.refreshes - 1);
    println!(
        "{days} x 24 hours, {refreshes} refreshes, {documents} documents, {customers} customers who poll each; seed {seed}"
    );
    println!(
        "                            not current     delay, seconds          upstream requests        bodies per responses"
    );
    println!(
        "            responses     count        %     worst     mean   requests   bodies     304s        refresh    waited"
    );
    for row in rows {
        let policy = match row.policy {
            Policy::ByRefresh => "by refresh".to_owned(),
            Policy::TimeToLive(seconds) => format!("ttl {seconds} s"),
        };
        println!(
            "{policy:<12} {:>8} {:>9} {:>8.3} {:>9} {:>8.1} {:>10} {:>8} {:>8} {:>14.3} {:>9}",
            row.responses,
            row.not_current,
            row.share(),
            row.worst_lateness,
            row.mean_lateness,
            row.requests,
            row.bodies,
            row.unchanged,
            row.bodies_for_each(documents),
            row.waited,
        );
    }
}
