//! Ratios between rows, round by round: those that the figures are judged by.

use crate::measure::Figures;

/// Rows with their names.
pub type Rows<'f> = [(String, &'f Figures)];

/// A ratio in every round.
pub struct Compared {
    pub name: String,
    pub rounds: Vec<f64>,
}

/// The gateway's builds and the sketch to bare hyper, built with the same settings, and to `HAProxy`.
pub fn of_hits(rows: &Rows<'_>) -> Vec<Compared> {
    let bases = [
        "bare hyper",
        "sketch",
        "HAProxy",
        "bare hyper, shipped",
        "sketch, shipped",
    ];
    let ours = rows
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| !bases.contains(name));
    let ours = ours
        .filter(|name| name.starts_with("scoregate") || name.contains('/'))
        .chain(["sketch", "sketch, shipped"]);
    let pairs = ours.flat_map(|name| bases.map(|base| (name, base)));
    // Only like is compared with like; HAProxy has one build.
    let is_fair = |(name, base): &(&str, &str)| {
        name != base
            && (*base == "HAProxy" || name.ends_with(", shipped") == base.ends_with(", shipped"))
    };
    pairs
        .filter(is_fair)
        .filter_map(|(name, base)| ratio(rows, name, base))
        .collect()
}

/// Each kind to a hit, and to bare hyper with the same response and transport. For transports, the latter also as a multiple
/// of that of a hit.
pub fn of_kinds(rows: &Rows<'_>) -> Vec<Compared> {
    let kinds = rows
        .iter()
        .filter_map(|(name, _)| name.strip_prefix("scoregate, "));
    let ours = |kind: &str| format!("scoregate, {kind}");
    let bare = |kind: &str| format!("bare hyper, {kind}");
    let of_hit = ratio(rows, &ours("hit"), &bare("hit"));
    let mut all = Vec::new();
    for kind in kinds {
        let to_bare = ratio(rows, &ours(kind), &bare(kind));
        let quotient = quotient(to_bare.as_ref(), of_hit.as_ref());
        all.extend(ratio(rows, &ours(kind), &ours("hit")).filter(|_| kind != "hit"));
        all.extend(to_bare);
        all.extend(quotient.filter(|_| ["TLS", "HTTP/2"].contains(&kind)));
    }
    all
}

/// Fetches with TLS to those without.
pub fn of_misses(rows: &Rows<'_>) -> Vec<Compared> {
    let [plain, tls] = rows else {
        return Vec::new();
    };
    ratio(rows, &tls.0, &plain.0).into_iter().collect()
}

/// Two workers to one, for the gateway and for the codec, and the former to the latter.
pub fn of_workers(rows: &Rows<'_>) -> Vec<Compared> {
    let [one, two, bare_one, bare_two] = rows else {
        return Vec::new();
    };
    let ours = ratio(rows, &two.0, &one.0);
    let bare = ratio(rows, &bare_two.0, &bare_one.0);
    let both = quotient(ours.as_ref(), bare.as_ref());
    [ours, bare, both].into_iter().flatten().collect()
}

/// Many to few, and the difference as a multiple of the difference that the memory accesses alone make.
pub fn of_growth(rows: &Rows<'_>) -> Vec<Compared> {
    let mut all = Vec::new();
    for what in ["keys", "documents"] {
        let named = |word: &str| {
            rows.iter()
                .find(|(name, _)| *name == format!("{word} {what}"))
        };
        let [
            Some(few),
            Some(many),
            Some(few_accesses),
            Some(many_accesses),
        ] = ["few", "many", "the loop, few", "the loop, many"].map(named)
        else {
            continue;
        };
        all.extend(ratio(rows, &many.0, &few.0));
        let extra = |many: &Figures, few: &Figures| -> Vec<f64> {
            many.work
                .iter()
                .zip(&few.work)
                .map(|(many, few)| many - few)
                .collect()
        };
        let ours = extra(many.1, few.1);
        let control = extra(many_accesses.1, few_accesses.1);
        let rounds = ours
            .iter()
            .zip(control)
            .map(|(ours, control)| ours / control)
            .collect();
        all.push(Compared {
            name: format!("extra CPU of many {what} / that of the loop"),
            rounds,
        });
    }
    all
}

fn ratio(rows: &Rows<'_>, one: &str, other: &str) -> Option<Compared> {
    let work = |wanted: &str| {
        rows.iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, figures)| &figures.work)
    };
    let rounds = work(one)?
        .iter()
        .zip(work(other)?)
        .map(|(one, other)| one / other)
        .collect();
    Some(Compared {
        name: format!("{one} / {other}"),
        rounds,
    })
}

fn quotient(one: Option<&Compared>, other: Option<&Compared>) -> Option<Compared> {
    let one = one?;
    let other = other?;
    let rounds = one
        .rounds
        .iter()
        .zip(&other.rounds)
        .map(|(one, other)| one / other)
        .collect();
    Some(Compared {
        name: format!("({}) / ({})", one.name, other.name),
        rounds,
    })
}
