//! Reads `[tiers.NAME]`.

use toml::Value;

use scoregate_base::keys::{Rights, Tier, TierLimits, standard_tiers};

use super::super::config_reader::ConfigReader;

/// Maximum number of tiers: each is a label value in the metrics.
const MOST_TIERS: usize = 8;

/// The configured tiers, or the standard tiers if none is configured.
pub(in super::super) fn read(reading: &mut ConfigReader<'_>) -> Vec<Tier> {
    let mut names: Vec<&str> = reading.written().values.keys().filter_map(|path| tier_of(path)).collect();
    names.dedup();
    if names.is_empty() {
        return standard_tiers();
    }
    if names.len() > MOST_TIERS {
        reading.problem("tiers", None, format!("found {} tiers; the maximum is {MOST_TIERS}", names.len()));
    }
    names.into_iter().map(|name| tier(reading, name)).collect()
}

fn tier(reading: &mut ConfigReader<'_>, name: &str) -> Tier {
    let well_formed = (1..=24).contains(&name.len())
        && name != "none"
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if !well_formed {
        reading.problem(
            &format!("tiers.{name}"),
            None,
            "a tier's name is 1 to 24 lower-case letters, digits or underscores, and not `none`",
        );
    }
    let limits =
        TierLimits { minute: tier_limit(reading, name, "minute"), day: tier_limit(reading, name, "day") };
    let path = format!("tiers.{name}.paid");
    let paid = reading.maybe(&path).and_then(Value::as_bool);
    if paid.is_none() {
        reading
            .reject(&path, "write true or false: whether the tier has access to `latest` and `latestScore`");
    }
    let rights = if paid == Some(true) { Rights::paid() } else { Rights::Free };
    Tier { name: name.to_owned(), rights, limits }
}

fn tier_limit(reading: &mut ConfigReader<'_>, tier: &str, which: &str) -> u32 {
    let path = format!("tiers.{tier}.{which}");
    let number =
        reading.maybe(&path).and_then(Value::as_integer).and_then(|number| u32::try_from(number).ok());
    let Some(number) = number.filter(|number| (1..=1_000_000_000).contains(number)) else {
        reading.reject(&path, "write an integer from 1 to 1000000000");
        return 1;
    };
    number
}

fn tier_of(path: &str) -> Option<&str> {
    path.strip_prefix("tiers.")?.split('.').next()
}
