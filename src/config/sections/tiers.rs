//! Reads `[tiers.NAME]`.

use toml::Value;

use scoregate_base::keys::{Rights, Tier, TierLimits, standard_tiers};

use super::super::config_reader::ConfigReader;

/// Maximum number of tiers: each is a label value in the metrics.
const MOST_TIERS: usize = 8;

impl ConfigReader<'_> {
    /// The configured tiers, or the standard tiers if none is configured.
    pub(in super::super) fn tiers(&mut self) -> Vec<Tier> {
        let mut names: Vec<&str> = self.written.values.keys().filter_map(|path| tier_of(path)).collect();
        names.dedup();
        if names.is_empty() {
            return standard_tiers();
        }
        if names.len() > MOST_TIERS {
            self.problem("tiers", None, format!("found {} tiers; the maximum is {MOST_TIERS}", names.len()));
        }
        names.into_iter().map(|name| self.tier(name)).collect()
    }

    fn tier(&mut self, name: &str) -> Tier {
        let well_formed = (1..=24).contains(&name.len())
            && name != "none"
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !well_formed {
            self.problem(
                &format!("tiers.{name}"),
                None,
                "a tier's name is 1 to 24 lower-case letters, digits or underscores, and not `none`",
            );
        }
        let limits =
            TierLimits { minute: self.tier_limit(name, "minute"), day: self.tier_limit(name, "day") };
        let path = format!("tiers.{name}.paid");
        let paid = self.maybe(&path).and_then(Value::as_bool);
        if paid.is_none() {
            let value = self.maybe(&path);
            self.problem(
                &path,
                value,
                "write true or false: whether the tier has access to `latest` and `latestScore`",
            );
        }
        let rights = if paid == Some(true) { Rights::paid() } else { Rights::Free };
        Tier { name: name.to_owned(), rights, limits }
    }

    fn tier_limit(&mut self, tier: &str, which: &str) -> u32 {
        let path = format!("tiers.{tier}.{which}");
        let value = self.maybe(&path);
        let number = value.and_then(Value::as_integer).and_then(|number| u32::try_from(number).ok());
        let Some(number) = number.filter(|number| (1..=1_000_000_000).contains(number)) else {
            self.problem(&path, value, "write an integer from 1 to 1000000000");
            return 1;
        };
        number
    }
}

fn tier_of(path: &str) -> Option<&str> {
    path.strip_prefix("tiers.")?.split('.').next()
}
