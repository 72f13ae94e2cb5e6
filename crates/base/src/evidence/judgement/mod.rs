//! The judgement on evidence: applications that look like a mirror, like a shared key, like several accounts of one owner, or
//! like an inefficient poller, and advice for owners.
//!
//! Pure. A finding is a reason to look at an application and nothing more. The rules, and how often they err, are described in
//! `docs/suspects.md`; the bench `suspects` measures them.

mod advice;
mod callers;
mod day_figures;
mod finding;
mod judge;
mod rules;
mod together;

pub use advice::{Advice, advice};
pub use callers::CallerDays;
pub use finding::{Figure, Finding, Suspicion};
pub use judge::judge;
pub use rules::{FigureKind, FiredRule, SuspectRules};
