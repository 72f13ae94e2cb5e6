//! The judgement of all applications.

use std::sync::Arc;

use super::{
    figures::{CallerDays, FigureRow, medians_of_tiers},
    finding::{Figure, Finding},
    rules::{FigureKind, FiredRule, SuspectRules, Suspicion},
    together::{CallerGroup, groups},
};

/// The findings about all applications.
pub fn judge(callers: &[CallerDays], rules: &SuspectRules) -> Vec<Finding> {
    let days: Vec<_> = callers
        .iter()
        .map(|caller| FigureRow::of_days(caller, rules))
        .collect();
    let medians = medians_of_tiers(callers, &days);
    let mut findings = Vec::new();
    for (caller, days) in callers.iter().zip(&days) {
        if let Some(medians) = medians.get(&caller.tier) {
            findings.extend(alone(caller, days, medians, rules));
        }
    }
    for group in groups(callers, rules) {
        let members = group.members.iter().filter_map(|place| callers.get(*place));
        let members: Vec<&CallerDays> = members.collect();
        for member in &members {
            if let Some(medians) = medians.get(&member.tier) {
                let share = figure(FigureKind::GroupShare, group.share, medians, rules);
                findings.push(together(member, &members, &group, share, rules));
            }
        }
    }
    findings
}

/// The findings about an application based on its own requests.
fn alone(
    caller: &CallerDays,
    days: &[FigureRow],
    medians: &FigureRow,
    rules: &SuspectRules,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (rule, suspicion, kinds) in FiredRule::ALONE {
        let mut met: Vec<&FigureRow> = days
            .iter()
            .filter(|day| {
                kinds
                    .iter()
                    .all(|kind| day.get(*kind) >= rules.threshold(*kind))
            })
            .collect();
        if let Some(first) = kinds.first() {
            met.sort_by(|one, other| other.get(*first).total_cmp(&one.get(*first)));
        }
        // The weakest of the required days is decisive: without it, there would not be enough days for a finding.
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
    findings
}

/// The finding about a member of a group.
fn together(
    member: &CallerDays,
    members: &[&CallerDays],
    group: &CallerGroup,
    share: Figure,
    rules: &SuspectRules,
) -> Finding {
    let others = members.iter().map(|other| other.application);
    Finding {
        application: member.application,
        tier: Arc::clone(&member.tier),
        suspicion: Suspicion::SeveralAccounts,
        rule: FiredRule::Together,
        others: others
            .filter(|other| *other != member.application)
            .collect(),
        figures: vec![share],
        days: group.days,
        least_days: rules.days,
        of_days: group.of_days,
    }
}

fn figure(kind: FigureKind, value: f64, medians: &FigureRow, rules: &SuspectRules) -> Figure {
    Figure {
        kind,
        value,
        threshold: rules.threshold(kind),
        median: medians.get(kind),
    }
}
