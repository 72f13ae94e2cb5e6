//! Reads `[tiers.NAME]`.

use std::ops::RangeInclusive;

use toml::Value;

use scoregate_base::{
    limits::{CalendarLimits, LimitRule},
    plans::{DEEP, FieldPaths, FieldSets, Rights, Tier, TierLimits, standard_tiers},
    routes::{ENDPOINTS, Endpoint, EndpointTable, Period},
};

use crate::config::{
    config_reader::ConfigReader,
    table_reader::{TableReader, list},
};

/// Maximum number of tiers. Each is a label value in the metrics.
const MOST_TIERS: usize = 8;
const NAME: &str =
    "a tier's name is 1 to 24 lower-case letters, digits or underscores, and not `none`";
const UNITS: &str = "write an integer from 1 to 1000000000";
const ANCHOR: &str = "write the day of the month on which months begin, 1 to 31; a shorter month begins on its last day";
const PERIODS: &str = "write a list of \"latest\", \"24h\", \"7d\" and \"1m\" that narrows the rights of the tier: without paid = true it has no \"latest\", and at least one period must remain";
const DEPTH: &str = "write the longest period, \"24h\", \"7d\" or \"1m\", to narrow the rights of the tier: at least one of its periods must remain";
const FIELDS: &str = "write a list of reserved fields that narrows the rights of the tier: without paid = true it has no \"model.latestScore\", and all tiers together may have at most four different sets of fields, including all fields and none. The reserved fields are";

/// Reads the configured tiers and the field sets that they see. If no tier is configured, the standard tiers apply.
pub(in crate::config) fn read(
    reading: &mut ConfigReader<'_>,
    endpoints: &EndpointTable,
) -> (Vec<Tier>, FieldSets) {
    let mut sets = FieldSets::default();
    let names = reading.names_in("tiers");
    if names.is_empty() {
        return (standard_tiers(), sets);
    }
    reading.at_most("tiers", names.len(), MOST_TIERS, "tiers");
    let tiers = names.into_iter().map(|name| {
        let table = TableReader::at(reading, format!("tiers.{name}"));
        TierTable {
            table,
            name,
            endpoints,
        }
        .tier(&mut sets)
    });
    (tiers.collect(), sets)
}

/// The table of one tier.
struct TierTable<'r, 'w> {
    table: TableReader<'r, 'w>,
    name: &'w str,
    endpoints: &'r EndpointTable,
}

impl TierTable<'_, '_> {
    fn tier(&mut self, sets: &mut FieldSets) -> Tier {
        let name = self.name;
        let well_formed = (1..=24).contains(&name.len())
            && name != "none"
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !well_formed {
            self.table.problem("", NAME);
        }
        let limits = TierLimits {
            minute: self.limit("minute"),
            day: self.limit("day"),
            calendar: self.calendar(),
        };
        let remedy =
            "write true or false: whether the tier has access to `latest` and to reserved fields";
        let paid = self.table.needed("paid", remedy, Value::as_bool);
        let rights = if paid == Some(true) {
            Rights::PAID
        } else {
            Rights::FREE
        };
        Tier {
            name: name.to_owned(),
            rights: self.narrowed(rights, sets),
            limits,
        }
    }

    fn limit(&mut self, setting: &str) -> u32 {
        self.table.needed(setting, UNITS, units).unwrap_or(1)
    }

    /// The calendar limits other than the daily limit.
    fn calendar(&mut self) -> CalendarLimits {
        let anchor = self
            .table
            .optional("month_anchor", ANCHOR, |value: &Value| {
                u8::try_from(number_within(value, 1..=31)?).ok()
            });
        let mut limits = CalendarLimits::with_anchor(anchor.unwrap_or(1));
        for rule in LimitRule::WINDOWS {
            if let Some(quota) = self.table.optional(rule.name(), UNITS, units) {
                limits = limits.with(rule, quota);
            }
        }
        if anchor.is_some() && limits.is_empty() {
            let remedy = "set month or owner_month too: without them there is no monthly limit";
            self.table.problem("month_anchor", remedy);
        }
        limits
    }

    fn narrowed(&mut self, mut rights: Rights, sets: &mut FieldSets) -> Rights {
        let table = &mut self.table;
        rights = table
            .optional("periods", PERIODS, |value: &Value| {
                rights.with_periods(list(value, Period::parse)?)
            })
            .unwrap_or(rights);
        for route in DEEP {
            rights = table
                .optional(route.name(), DEPTH, |value: &Value| {
                    rights.with_depth(route, Period::parse(value.as_str()?)?)
                })
                .unwrap_or(rights);
        }
        let endpoints = self.endpoints;
        rights = table
            .optional(
                "endpoints",
                "write a list of endpoint names, such as \"models\"",
                |value: &Value| {
                    Some(
                        rights.with_endpoints(list::<_, Vec<_>>(value, |name: &str| {
                            endpoints.stored().find(|endpoint| endpoint.name == name)
                        })?),
                    )
                },
            )
            .unwrap_or(rights);
        self.seeing(rights, sets)
    }

    /// Adds the reserved fields that the tier sees to its rights.
    fn seeing(&mut self, rights: Rights, sets: &mut FieldSets) -> Rights {
        let reserved: FieldPaths = self
            .endpoints
            .iter()
            .flat_map(Endpoint::reserved_fields)
            .collect();
        let mut of_the_specification = ENDPOINTS.iter().flat_map(Endpoint::reserved_fields);
        let fields = self.table.optional(
            "fields",
            format!("{FIELDS} {reserved:?}"),
            |value: &Value| {
                let seen: FieldPaths = list(value, |path| reserved.get(path).cloned())?;
                let is_wider =
                    !rights.is_paid() && of_the_specification.any(|path| seen.contains(&path));
                if is_wider {
                    return None;
                }
                sets.place(&seen, &reserved)
            },
        );
        fields.map_or(rights, |fields| rights.with_fields(fields))
    }
}

fn units(value: &Value) -> Option<u32> {
    number_within(value, 1..=1_000_000_000)
}

fn number_within(value: &Value, bounds: RangeInclusive<u32>) -> Option<u32> {
    let number = u32::try_from(value.as_integer()?).ok()?;
    bounds.contains(&number).then_some(number)
}
