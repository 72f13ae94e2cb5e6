//! The judgement on evidence: applications that look like a mirror, like a shared key, like several accounts of one owner, or
//! like an inefficient poller; and advice for owners.
//!
//! Pure. A finding is a reason to look at an application, but no proof. `docs/suspects.md` describes the error rates of
//! the rules.

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
