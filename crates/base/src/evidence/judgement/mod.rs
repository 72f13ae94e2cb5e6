//! The judgement of evidence: applications that look like a mirror, a shared key, several accounts of one owner, or an
//! inefficient poller. Also advice for owners.
//!
//! The code is pure. A finding is a reason to look at an application, but not proof of misuse. `docs/suspects.md`
//! describes the error rates of the rules.

mod advice;
mod figures;
mod finding;
mod judge;
mod rules;
#[cfg(test)]
mod tests;
mod together;

pub use advice::{Advice, advice};
pub use figures::CallerDays;
pub use finding::{Figure, Finding};
pub use judge::judge;
pub use rules::{FigureKind, FiredRule, SuspectRules, Suspicion};
