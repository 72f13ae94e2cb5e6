//! The table of a simulation, and the bounds that it has to keep.

use std::collections::HashSet;

use scoregate_base::{
    evidence::judgement::{Finding, FiredRule, Suspicion},
    keys::ApplicationId,
};

use super::{
    kinds::{ClientKind, KINDS, Stance},
    month::JudgedMonth,
};

/// Days in which a dishonest client has to be found.
const DAYS_TO_FIND: usize = 7;
/// The columns, by the rule and the suspicion of a finding.
const COLUMNS: [(&str, Suspicion, FiredRule); 5] = [
    ("refresh", Suspicion::Mirror, FiredRule::EachRefresh),
    ("day", Suspicion::Mirror, FiredRule::OverTheDay),
    ("together", Suspicion::SeveralAccounts, FiredRule::Together),
    ("shared", Suspicion::SharedKey, FiredRule::ManyOrigins),
    ("poller", Suspicion::InefficientPoller, FiredRule::Repeats),
];

/// The counts of a kind.
#[derive(Default)]
struct KindCounts {
    clients: usize,
    applications: usize,
    /// Clients of which an application was listed in the first days.
    found: usize,
    /// Applications that were listed in the first days.
    listed: usize,
    /// Applications that were ever listed, by column.
    by_column: [usize; COLUMNS.len()],
}

impl KindCounts {
    fn add(&mut self, other: &Self) {
        self.clients += other.clients;
        self.applications += other.applications;
        self.found += other.found;
        self.listed += other.listed;
        for (sum, number) in self.by_column.iter_mut().zip(other.by_column) {
            *sum += number;
        }
    }
}

/// Prints the table. Returns the bounds that are not kept.
pub fn print(months: &[JudgedMonth]) -> Vec<String> {
    print!(
        "{:>27} {:>7} {:>7} {:>7} {:>7} |",
        "", "clients", "found", "keys", "listed"
    );
    println!(
        "{}",
        COLUMNS.map(|(name, _, _)| format!(" {name:>8}")).concat()
    );
    let mut honest = KindCounts::default();
    let mut failures = Vec::new();
    for kind in &KINDS {
        let counts = counts(kind, months);
        print_row(kind.name, &counts);
        failures.extend(failure(kind, &counts));
        if kind.stance == Stance::Honest {
            honest.add(&counts);
        }
    }
    print_row("all honest", &honest);
    let [refresh, day, together, shared, _] = honest.by_column;
    for (name, listed, allowed) in [
        ("mirrors", refresh + day, 0),
        ("several accounts", together, honest.applications / 1_000),
        ("shared keys", shared, honest.applications / 1_000),
    ] {
        if listed > allowed {
            failures.push(format!(
                "{listed} honest applications are listed as {name}, allowed are {allowed}"
            ));
        }
    }
    failures
}

fn counts(kind: &ClientKind, months: &[JudgedMonth]) -> KindCounts {
    let mut counts = KindCounts::default();
    for month in months {
        let early = month.findings.iter().filter(|(day, _)| *day < DAYS_TO_FIND);
        let early: HashSet<ApplicationId> = early.map(|(_, finding)| finding.application).collect();
        let column =
            |(_, suspicion, rule): (&str, Suspicion, FiredRule)| -> HashSet<ApplicationId> {
                let is_of_column =
                    |finding: &Finding| finding.suspicion == suspicion && finding.rule == rule;
                let findings = month
                    .findings
                    .iter()
                    .filter(|(_, finding)| is_of_column(finding));
                findings.map(|(_, finding)| finding.application).collect()
            };
        let columns = COLUMNS.map(column);
        for client in month
            .clients
            .iter()
            .filter(|client| std::ptr::eq(client.kind, kind))
        {
            let listed = client
                .applications
                .iter()
                .filter(|key| early.contains(key))
                .count();
            counts.clients += 1;
            counts.applications += client.applications.len();
            counts.found += usize::from(listed > 0);
            counts.listed += listed;
            for (count, column) in counts.by_column.iter_mut().zip(&columns) {
                *count += client
                    .applications
                    .iter()
                    .filter(|key| column.contains(key))
                    .count();
            }
        }
    }
    counts
}

fn print_row(name: &str, counts: &KindCounts) {
    let KindCounts {
        clients,
        applications,
        found,
        listed,
        by_column,
    } = counts;
    print!("{name:>27} {clients:>7} {found:>7} {applications:>7} {listed:>7} |");
    println!("{}", by_column.map(|count| format!(" {count:>8}")).concat());
}

/// A kind that has to be found is found, and only bad pollers are listed as such.
fn failure(kind: &ClientKind, counts: &KindCounts) -> Option<String> {
    let [.., pollers] = counts.by_column;
    // Unequal parts of the catalogue look like the customers of an agency.
    let least = match kind.name {
        "keys by part" => 0.98,
        name if name == "jittered sweep" || name.starts_with("mirror of") => 0.95,
        _ => 1.0,
    };
    let is_wrong = match kind.stance {
        Stance::Honest => pollers > 0 && kind.name != "bad poller",
        Stance::Dishonest => (counts.found as f64) < least * counts.clients as f64,
        Stance::Measured => false,
    };
    is_wrong.then(|| {
        format!(
            "{}: {} of {} found, {pollers} as pollers",
            kind.name, counts.found, counts.clients
        )
    })
}
