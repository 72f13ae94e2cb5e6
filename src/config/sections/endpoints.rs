//! Reads `[endpoints.NAME]`: endpoints that the backend has beside those of the specification. How they are requested
//! from the backend is in `mapping`, how long their documents are fresh in `freshness`.

use toml::Value;

use scoregate_base::routes::shapes::ItemField;
use scoregate_base::routes::{ConfiguredRoute, ENDPOINTS, Endpoint, EndpointTable, Param};

use super::endpoint_fields;
use super::own_params::{self, OwnDefinition};
use crate::config::config_reader::ConfigReader;
use crate::config::tables::ENDPOINT_SETTINGS;

/// Maximum number of configured endpoints: each is a label value in the metrics.
const MOST_ENDPOINTS: usize = 32;
/// Label values of requests to no endpoint.
const TAKEN: [&str; 3] = ["page", "options", "none"];
const PARAMETERS: [Param; 3] = [Param::Period, Param::SortBy, Param::Limit];

/// The endpoints of the specification and those of the settings.
pub(in crate::config) fn read(reading: &mut ConfigReader<'_>) -> EndpointTable {
    let names: Vec<&str> = reading.names_in("endpoints");
    reading.at_most("endpoints", names.len(), MOST_ENDPOINTS, "endpoints");
    if !names.is_empty() && reading.maybe("upstream").is_some() {
        reading.problem("endpoints", None, "the built-in backend has only the endpoints of the specification: set upstream.url, or remove this table");
    }
    let mut configured: Vec<&'static Endpoint> = Vec::new();
    for name in names.into_iter().take(MOST_ENDPOINTS) {
        let index = u8::try_from(ENDPOINTS.len() + configured.len()).unwrap_or(u8::MAX);
        let mut table = EndpointDefinition {
            reading,
            name,
            index,
        };
        let Some(endpoint) = table.read(&configured) else {
            continue;
        };
        table.reject_order(endpoint);
        configured.push(endpoint);
    }
    EndpointTable::with(configured)
}

/// Number of fields in a short text of a configured endpoint.
const BRIEF_FIELDS: usize = 5;

/// The first fields without parts that all callers see.
fn brief(item: &'static [ItemField]) -> Vec<&'static str> {
    let is_plain = |field: &&ItemField| field.shape.fields().is_empty() && !field.paid_only;
    item.iter()
        .filter(is_plain)
        .map(|field| field.name)
        .take(BRIEF_FIELDS)
        .collect()
}

/// One table.
struct EndpointDefinition<'r, 'w> {
    reading: &'r mut ConfigReader<'w>,
    name: &'w str,
    index: u8,
}

impl<'w> EndpointDefinition<'_, 'w> {
    /// The row, unless it has problems. A definition that was read before is not read again.
    fn read(&mut self, others: &[&'static Endpoint]) -> Option<&'static Endpoint> {
        let text = self.text_of_all();
        let is_named = self.check_name();
        let segments = self.segments();
        self.reject_clash(segments.as_deref().unwrap_or_default(), others);
        if let Some(known) = ConfiguredRoute::known(self.index, &text) {
            return Some(known);
        }
        let summary = self.summary();
        let takes = self.parameters();
        let one = self.one();
        let item = self.fields();
        let name = is_named.then_some(self.name)?;
        let segments = segments?;
        let summary = summary?;
        let (mut takes, own) = takes?;
        let one = one?;
        let item = item?;
        let item = endpoint_fields::kept(item);
        takes.extend(
            own.into_iter()
                .enumerate()
                .map(|(position, own)| own.kept(position)),
        );
        Some(ConfiguredRoute::define(self.index, text, |route| {
            Endpoint {
                route,
                name: String::from(name).leak(),
                segments: segments
                    .into_iter()
                    .map(|segment| &*segment.leak())
                    .collect::<Vec<_>>()
                    .leak(),
                takes: takes.leak(),
                stored: true,
                summary: summary.leak(),
                brief: brief(item).leak(),
                item,
                one,
            }
        }))
    }

    /// The whole definition as text.
    fn text_of_all(&self) -> String {
        let of = |setting: &&str| format!("{setting} = {:?}\n", self.value(setting));
        format!("{}\n", self.name) + &ENDPOINT_SETTINGS.iter().map(of).collect::<String>()
    }

    fn check_name(&mut self) -> bool {
        let well_formed = (1..=32).contains(&self.name.len())
            && !self.name.ends_with("_head")
            && self
                .name
                .starts_with(|first: char| first.is_ascii_lowercase())
            && self
                .name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        let is_free =
            !TAKEN.contains(&self.name) && ENDPOINTS.iter().all(|row| row.name != self.name);
        if !well_formed {
            self.problem("", "an endpoint's name is a lower-case letter, then up to 31 lower-case letters, digits or underscores, and does not end with `_head`");
        } else if !is_free {
            self.problem("", "this name is taken: choose another one");
        }
        well_formed && is_free
    }

    fn segments(&mut self) -> Option<Vec<String>> {
        let path = self.text(
            "path",
            "write the path below /api/v1, such as \"/prices/:id\"",
        )?;
        let segments: Vec<String> = path.split('/').skip(1).map(str::to_owned).collect();
        let is_plain = |segment: &String| {
            !matches!(segment.as_str(), "" | "." | "..")
                && segment
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
        };
        let ids = segments.iter().filter(|segment| *segment == ":id").count();
        let is_valid = path.starts_with('/')
            && ids <= 1
            && (1..=8).contains(&segments.len())
            && segments
                .iter()
                .all(|segment| segment == ":id" || is_plain(segment))
            && segments.first().is_some_and(|first| first != ":id");
        if !is_valid {
            self.problem("path", "write 1 to 8 segments of letters, digits, \"-\", \".\", \"_\" or \"~\", such as \"/prices/:id\"; `:id`, once and not first, is the id of a model");
        }
        is_valid.then_some(segments)
    }

    fn summary(&mut self) -> Option<String> {
        let summary = self.text(
            "summary",
            "write one sentence about the endpoint for the documentation",
        )?;
        let is_line = !summary.trim().is_empty()
            && summary.len() <= 200
            && !summary.contains(char::is_control);
        if !is_line {
            self.problem("summary", "write one line of at most 200 bytes");
        }
        is_line.then(|| summary.to_owned())
    }

    /// Those of the specification, and those with values of their own.
    fn parameters(&mut self) -> Option<(Vec<Param>, Vec<OwnDefinition>)> {
        let Some(value) = self.value("parameters") else {
            return Some(Default::default());
        };
        let mut given = Vec::new();
        let mut own = Vec::new();
        let mut problems = Vec::new();
        match value.as_array() {
            None => problems.push("write a list".to_owned()),
            Some(all) => {
                for one in all {
                    match PARAMETERS
                        .into_iter()
                        .find(|param| Some(param.name()) == one.as_str())
                    {
                        Some(param) if given.contains(&param) => {
                            problems.push(format!("write \"{}\" once", param.name()));
                        }
                        Some(param) => given.push(param),
                        None => match own_params::read(one) {
                            Ok(one) => own.push(one),
                            Err(problem) => problems.push(problem),
                        },
                    }
                }
            }
        }
        problems.extend(own_params::problems(&own));
        let is_valid = problems.is_empty();
        for problem in problems {
            self.problem("parameters", problem);
        }
        // The first invalid parameter in this order is reported.
        let ordered = PARAMETERS
            .into_iter()
            .filter(|param| given.contains(param))
            .collect();
        is_valid.then_some((ordered, own))
    }

    fn one(&mut self) -> Option<bool> {
        let Some(value) = self.value("one") else {
            return Some(false);
        };
        let one = value.as_bool();
        if one.is_none() {
            self.problem(
                "one",
                "write true or false: whether `data` always has exactly one item",
            );
        }
        one
    }

    fn fields(&mut self) -> Option<Vec<endpoint_fields::FieldDefinition>> {
        let value = self.value("fields");
        if value.is_none() {
            self.problem(
                "fields",
                "describe at least one field: write [[endpoints.NAME.fields]] with name, type and meaning",
            );
        }
        let read = endpoint_fields::read(value?);
        let has_problems = !read.problems.is_empty();
        for (place, remedy) in read.problems {
            self.problem(&format!("fields{place}"), remedy);
        }
        (!has_problems).then_some(read.fields)
    }

    /// The order of items must reveal nothing.
    fn reject_order(&mut self, endpoint: &Endpoint) {
        if endpoint.takes.contains(&Param::SortBy) && endpoint.has_paid_field() {
            self.problem(
                "parameters",
                "remove \"sortBy\": the order of the items would show the values of fields for paid callers",
            );
        }
    }

    /// One path and one name must be those of one endpoint.
    fn reject_clash(&mut self, segments: &[String], others: &[&'static Endpoint]) {
        let mut others = ENDPOINTS.iter().chain(others.iter().copied());
        let type_name = |name: &str| name.replace('_', "");
        let has_type_name = |other: &Endpoint| {
            other.name != self.name && type_name(other.name) == type_name(self.name)
        };
        if others.clone().any(has_type_name) {
            self.problem(
                "",
                "choose another name: without underscores it is that of another endpoint",
            );
        }
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        if let Some(other) = others.find(|other| other.overlaps(&segments)) {
            let remedy = format!(
                "choose another path: some requests would be those of `{}`",
                other.documented_path()
            );
            self.problem("path", remedy);
        }
    }

    fn value(&self, setting: &str) -> Option<&'w Value> {
        self.reading.maybe(&self.path(setting))
    }

    fn text(&mut self, setting: &str, remedy: &str) -> Option<&'w str> {
        let text = self.value(setting).and_then(Value::as_str);
        if text.is_none() {
            self.problem(setting, remedy);
        }
        text
    }

    fn problem(&mut self, setting: &str, remedy: impl Into<String>) {
        self.reading.reject(&self.path(setting), remedy);
    }

    fn path(&self, setting: &str) -> String {
        let separator = if setting.is_empty() { "" } else { "." };
        format!("endpoints.{}{separator}{setting}", self.name)
    }
}
