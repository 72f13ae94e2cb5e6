//! The judgement on all applications.

use std::sync::Arc;

use super::figures::{CallerDays, FigureRow, medians_of_tiers};
use super::finding::{Figure, Finding};
use super::rules::{FigureKind, FiredRule, SuspectRules, Suspicion};
use super::together::groups;

/// The applications to look at.
pub fn judge(callers: &[CallerDays], rules: &SuspectRules) -> Vec<Finding> {
    let days: Vec<_> = callers
        .iter()
        .map(|caller| FigureRow::of_days(caller, rules))
        .collect();
    let medians = medians_of_tiers(callers, &days);
    let mut findings = Vec::new();
    for (caller, days) in callers.iter().zip(&days) {
        let Some(medians) = medians.get(&caller.tier) else {
            continue;
        };
        for (rule, suspicion, kinds) in FiredRule::ALONE {
            let is_met = |day: &&FigureRow| {
                kinds
                    .iter()
                    .all(|kind| day.get(*kind) >= rules.threshold(*kind))
            };
            let mut met: Vec<&FigureRow> = days.iter().filter(is_met).collect();
            let first = |day: &FigureRow| kinds.first().map_or(0.0, |kind| day.get(*kind));
            met.sort_by(|one, other| first(other).total_cmp(&first(one)));
            // The weakest of the required days decides, since fewer days are no finding.
            let Some(decisive) = met.get(rules.days.saturating_sub(1)) else {
                continue;
            };
            let figures = kinds
                .iter()
                .map(|kind| figure(*kind, decisive.get(*kind), medians, rules));
            findings.push(Finding {
                application: caller.application,
                tier: Arc::clone(&caller.tier),
                suspicion,
                rule,
                others: Vec::new(),
                figures: figures.collect(),
                days: met.len(),
                least_days: rules.days,
                of_days: days.len(),
            });
        }
    }
    for group in groups(callers, rules) {
        let members = group.members.iter().filter_map(|place| callers.get(*place));
        let members: Vec<&CallerDays> = members.collect();
        findings.extend(members.iter().filter_map(|member| {
            let medians = medians.get(&member.tier)?;
            let others = members.iter().map(|other| other.application);
            Some(Finding {
                application: member.application,
                tier: Arc::clone(&member.tier),
                suspicion: Suspicion::SeveralAccounts,
                rule: FiredRule::Together,
                others: others
                    .filter(|other| *other != member.application)
                    .collect(),
                figures: vec![figure(FigureKind::GroupShare, group.share, medians, rules)],
                days: group.days,
                least_days: rules.days,
                of_days: group.of_days,
            })
        }));
    }
    findings
}

fn figure(kind: FigureKind, value: f64, medians: &FigureRow, rules: &SuspectRules) -> Figure {
    Figure {
        kind,
        value,
        threshold: rules.threshold(kind),
        median: medians.get(kind),
    }
}
