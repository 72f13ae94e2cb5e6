//! Reads `[tiers.NAME]`.

use toml::Value;

use scoregate_base::plans::{FieldPaths, FieldSets, PeriodSet, Rights, Tier, TierLimits, standard_tiers};
use scoregate_base::routes::{ENDPOINTS, Endpoint, EndpointTable, Period, Route};

use super::super::config_reader::ConfigReader;

/// Maximum number of tiers: each is a label value in the metrics.
const MOST_TIERS: usize = 8;
/// The remedy for settings that add rights or leave none.
const WIDER: &str = "settings narrow the rights of a tier: without paid = true it has neither `latest` nor `latestScore`, and some period must remain";

/// The configured tiers, or the standard tiers if none is configured, and the sets of fields that they see.
pub(in super::super) fn read(
    reading: &mut ConfigReader<'_>,
    endpoints: &EndpointTable,
) -> (Vec<Tier>, FieldSets) {
    let mut sets = FieldSets::default();
    let mut names: Vec<&str> = reading.written().values.keys().filter_map(|path| tier_of(path)).collect();
    names.dedup();
    if names.is_empty() {
        return (standard_tiers(), sets);
    }
    if names.len() > MOST_TIERS {
        reading.problem("tiers", None, format!("found {} tiers; the maximum is {MOST_TIERS}", names.len()));
    }
    let tiers = names.into_iter().map(|name| {
        let tier = tier(reading, name);
        let mut table = RightsTable { reading: &mut *reading, name, rights: tier.rights, endpoints };
        table.narrow(&mut sets);
        Tier { rights: table.rights, ..tier }
    });
    (tiers.collect(), sets)
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
    let rights = if paid == Some(true) { Rights::PAID } else { Rights::FREE };
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

/// The settings of a tier that narrow its rights.
struct RightsTable<'r, 'w> {
    reading: &'r mut ConfigReader<'w>,
    name: &'w str,
    rights: Rights,
    endpoints: &'r EndpointTable,
}

impl RightsTable<'_, '_> {
    fn narrow(&mut self, sets: &mut FieldSets) {
        if let Some(periods) =
            self.list("periods", "write a list of \"latest\", \"24h\", \"7d\" and \"1m\"", Period::parse)
        {
            self.apply("periods", |rights| rights.with_periods(PeriodSet::of(&periods)));
        }
        for route in [Route::History, Route::Incidents] {
            let setting = route.name();
            let Some(value) = self.reading.maybe(&self.path(setting)) else { continue };
            match value.as_str().and_then(Period::parse) {
                Some(longest) => self.apply(setting, |rights| rights.with_depth(route, longest)),
                None => self.reject(setting, "write the longest period: \"24h\", \"7d\" or \"1m\""),
            }
        }
        let table = self.endpoints;
        let named = |name: &str| table.stored().find(|endpoint| endpoint.name == name);
        if let Some(endpoints) =
            self.list("endpoints", "write a list of names of endpoints, such as \"models\"", named)
        {
            self.apply("endpoints", |rights| Some(rights.with_endpoints(endpoints)));
        }
        self.fields(sets);
    }

    fn fields(&mut self, sets: &mut FieldSets) {
        let reserved: FieldPaths = self.endpoints.iter().flat_map(Endpoint::reserved_fields).collect();
        let known = reserved.iter().map(String::as_str).collect::<Vec<_>>().join("\", \"");
        let remedy = format!("write a list of reserved fields: \"{known}\"");
        let Some(seen) = self.list("fields", &remedy, |path| reserved.get(path)) else { return };
        let seen: FieldPaths = seen.into_iter().cloned().collect();
        let of_the_specification = || ENDPOINTS.iter().flat_map(Endpoint::reserved_fields);
        if !self.rights.is_paid() && of_the_specification().any(|path| seen.contains(&path)) {
            self.reject("fields", WIDER);
        }
        match sets.place(seen, &reserved) {
            Some(fields) => self.rights = self.rights.with_fields(fields),
            None => self.reject(
                "fields",
                "use at most four different sets of fields in all tiers: all fields and none are two of them",
            ),
        }
    }

    fn apply(&mut self, setting: &str, narrow: impl FnOnce(Rights) -> Option<Rights>) {
        match narrow(self.rights) {
            Some(rights) => self.rights = rights,
            None => self.reject(setting, WIDER),
        }
    }

    /// A list of words, if it is set.
    fn list<T>(&mut self, setting: &str, remedy: &str, of: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
        let value = self.reading.maybe(&self.path(setting))?;
        let read = value.as_array().and_then(|all| all.iter().map(|one| of(one.as_str()?)).collect());
        if read.is_none() {
            self.reject(setting, remedy);
        }
        read
    }

    fn reject(&mut self, setting: &str, remedy: &str) {
        self.reading.reject(&self.path(setting), remedy);
    }

    fn path(&self, setting: &str) -> String {
        format!("tiers.{}.{setting}", self.name)
    }
}

fn tier_of(path: &str) -> Option<&str> {
    path.strip_prefix("tiers.")?.split('.').next()
}
