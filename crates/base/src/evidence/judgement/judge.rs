//! The judgement.

use std::sync::Arc;

use super::callers::{CallerDays, TierMedians};
use super::day_figures::DayFigures;
use super::finding::{Figure, Finding, Suspicion};
use super::rules::{FigureKind, FiredRule, SuspectRules};
use super::together::groups;

/// The applications to look at.
pub fn judge(callers: &[CallerDays], rules: &SuspectRules) -> Vec<Finding> {
    let of_caller = |caller: &CallerDays| {
        let days = caller.days.iter().filter_map(|(_, day)| DayFigures::of(day, rules));
        days.collect::<Vec<DayFigures>>()
    };
    let figures: Vec<Vec<DayFigures>> = callers.iter().map(of_caller).collect();
    let medians = TierMedians::of(callers, &figures);
    let mut findings = Vec::new();
    for (caller, days) in callers.iter().zip(&figures) {
        let fired =
            FiredRule::ALONE.into_iter().filter_map(|rule| fired(rule, caller, days, &medians, rules));
        findings.extend(fired);
    }
    findings.extend(groups(callers, &medians, rules));
    findings
}

/// The finding of a rule about one application, if it fired.
fn fired(
    rule: FiredRule,
    caller: &CallerDays,
    days: &[DayFigures],
    medians: &TierMedians,
    rules: &SuspectRules,
) -> Option<Finding> {
    let is_met = |day: &&DayFigures| rule.figures().iter().all(|kind| day.reaches(*kind, rules));
    let mut met: Vec<&DayFigures> = days.iter().filter(is_met).collect();
    let first = *rule.figures().first()?;
    met.sort_by(|one, other| other.value(first).total_cmp(&one.value(first)));
    let decisive = *met.get(rules.days.saturating_sub(1))?;
    let figure = |kind: &FigureKind| Figure {
        kind: *kind,
        value: decisive.value(*kind),
        threshold: decisive.threshold(*kind, rules),
        median: medians.get(&caller.tier, *kind),
    };
    let suspicion = match rule {
        FiredRule::EachRefresh | FiredRule::OverTheDay => Suspicion::Mirror,
        FiredRule::Together => Suspicion::SeveralAccounts,
        FiredRule::ManyOrigins => Suspicion::SharedKey,
        FiredRule::Repeats => Suspicion::InefficientPoller,
    };
    Some(Finding {
        application: caller.application,
        suspicion,
        rule,
        others: Vec::new(),
        figures: rule.figures().iter().map(figure).collect(),
        days: met.len(),
        of_days: days.len(),
        tier: Arc::clone(&caller.tier),
    })
}
