//! Reads `[endpoints.NAME]`: endpoints of the backend in addition to the endpoints of the specification. `mapping`
//! defines how they are requested from the backend, and `freshness` how long their documents are fresh.

use toml::Value;

use scoregate_base::routes::{
    ConfiguredRoute, ENDPOINTS, Endpoint, EndpointTable, Param, shapes::ItemField,
};

use super::{
    endpoint_fields::{self, FieldDefinition},
    own_params::{self, OwnDefinition},
};
use crate::config::{
    config_reader::ConfigReader, table_reader::TableReader, tables::ENDPOINT_SETTINGS,
};

/// Maximum number of configured endpoints. Each is a label value in the metrics.
const MOST_ENDPOINTS: usize = 32;
/// Label values of requests that are not for an endpoint.
const TAKEN: [&str; 3] = ["page", "options", "none"];
const PARAMETERS: [Param; 3] = [Param::Period, Param::SortBy, Param::Limit];

/// The endpoints of the specification and of the settings.
pub(in crate::config) fn read(reading: &mut ConfigReader<'_>) -> EndpointTable {
    let names: Vec<&str> = reading.names_in("endpoints");
    reading.at_most("endpoints", names.len(), MOST_ENDPOINTS, "endpoints");
    if !names.is_empty() && reading.maybe("upstream").is_some() {
        reading.problem("endpoints", None, "the built-in backend has only the endpoints of the specification: set upstream.url, or remove this table");
    }
    let mut configured: Vec<&'static Endpoint> = Vec::new();
    for name in names.into_iter().take(MOST_ENDPOINTS) {
        let index = u8::try_from(ENDPOINTS.len() + configured.len()).unwrap_or(u8::MAX);
        let table = TableReader::at(reading, format!("endpoints.{name}"));
        let mut definition = EndpointDefinition { table, name, index };
        let Some(endpoint) = definition.read(&configured) else {
            continue;
        };
        definition.reject_order(endpoint);
        configured.push(endpoint);
    }
    EndpointTable::with(configured)
}

/// Maximum number of fields in the brief tool-call text of a configured endpoint.
const BRIEF_FIELDS: usize = 5;

/// The first simple fields that all callers see.
fn brief(item: &'static [ItemField]) -> Vec<&'static str> {
    item.iter()
        .filter(|field| field.shape.fields().is_empty() && !field.paid_only)
        .map(|field| field.name)
        .take(BRIEF_FIELDS)
        .collect()
}

/// The table of one endpoint.
struct EndpointDefinition<'r, 'w> {
    table: TableReader<'r, 'w>,
    name: &'w str,
    index: u8,
}

impl<'w> EndpointDefinition<'_, 'w> {
    /// The endpoint, unless its table has problems. A definition that was already read is reused.
    fn read(&mut self, others: &[&'static Endpoint]) -> Option<&'static Endpoint> {
        let problems = self.table.problem_count();
        let text = self.text_of_all();
        self.check_name();
        let segments = self.segments();
        self.reject_clash(&segments, others);
        if let Some(known) = ConfiguredRoute::known(self.index, &text) {
            return Some(known);
        }
        let summary = self.summary();
        let mut takes = Vec::new();
        let own = self.parameters(&mut takes);
        let question = "whether `data` always has exactly one item";
        let one = self.table.flag("one", question);
        let item = self.fields();
        if self.table.problem_count() > problems {
            return None;
        }
        let item = endpoint_fields::kept(item);
        let own = own.into_iter().enumerate();
        takes.extend(own.map(|(position, own)| own.kept(position)));
        let segments = segments.iter().map(|segment| &*segment.to_string().leak());
        let segments = segments.collect::<Vec<_>>().leak();
        Some(ConfiguredRoute::define(self.index, text, |route| {
            Endpoint {
                route,
                name: String::from(self.name).leak(),
                segments,
                takes: takes.leak(),
                stored: true,
                summary: String::from(summary).leak(),
                brief: brief(item).leak(),
                item,
                one,
            }
        }))
    }

    /// The whole definition as text.
    fn text_of_all(&self) -> String {
        format!("{}\n", self.name)
            + &ENDPOINT_SETTINGS
                .iter()
                .map(|setting| format!("{setting} = {:?}\n", self.table.value(setting)))
                .collect::<String>()
    }

    fn check_name(&mut self) {
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
            self.table.problem("", "an endpoint's name is a lower-case letter, then up to 31 lower-case letters, digits or underscores, and does not end with `_head`");
        } else if !is_free {
            self.table
                .problem("", "this name is taken: choose another one");
        }
    }

    /// The segments of the path; empty if it is invalid.
    fn segments(&mut self) -> Vec<&'w str> {
        if !self.table.value("path").is_some_and(Value::is_str) {
            let remedy = "write the path below /api/v1, such as \"/prices/:id\"";
            self.table.problem("path", remedy);
            return Vec::new();
        }
        let remedy = "write 1 to 8 segments of letters, digits, \"-\", \".\", \"_\" or \"~\", such as \"/prices/:id\"; `:id`, once and not first, is the id of a model";
        self.table
            .needed("path", remedy, |path| valid_segments(path.as_str()?))
            .unwrap_or_default()
    }

    fn summary(&mut self) -> &'w str {
        if self.table.value("summary").is_some_and(Value::is_str) {
            return self.table.line("summary", 200);
        }
        let remedy = "write one sentence about the endpoint for the documentation";
        self.table.problem("summary", remedy);
        ""
    }

    /// The parameters that define their own values. Parameters of the specification are added to `takes`.
    fn parameters(&mut self, takes: &mut Vec<Param>) -> Vec<OwnDefinition> {
        let all = self
            .table
            .optional("parameters", "write a list", Value::as_array);
        let mut own = Vec::new();
        for (number, one) in all.into_iter().flatten().enumerate() {
            let known = PARAMETERS
                .into_iter()
                .find(|param| Some(param.name()) == one.as_str());
            match known {
                Some(param) if takes.contains(&param) => {
                    let remedy = format!("write \"{}\" once", param.name());
                    self.table.problem("parameters", remedy);
                }
                Some(param) => takes.push(param),
                None => own.extend(own_params::read(&mut self.table, number, one)),
            }
        }
        own_params::check_all(&mut self.table, &own);
        // The first invalid parameter in this order is reported.
        takes.sort_by_key(|param| PARAMETERS.iter().position(|known| known == param));
        own
    }

    fn fields(&mut self) -> Vec<FieldDefinition> {
        if self.table.value("fields").is_some() {
            return endpoint_fields::read(&mut self.table, "fields", 1);
        }
        let remedy = "describe at least one field: write [[endpoints.NAME.fields]] with name, type and meaning";
        self.table.problem("fields", remedy);
        Vec::new()
    }

    /// Rejects a sort order that would reveal values reserved for paid callers.
    fn reject_order(&mut self, endpoint: &Endpoint) {
        if endpoint.takes.contains(&Param::SortBy) && endpoint.has_paid_field() {
            let remedy = "remove \"sortBy\": the order of the items would reveal values that only paid callers may see";
            self.table.problem("parameters", remedy);
        }
    }

    /// Rejects a path or name that another endpoint already has.
    fn reject_clash(&mut self, segments: &[&str], others: &[&'static Endpoint]) {
        let mut others = ENDPOINTS.iter().chain(others.iter().copied());
        let own = self.name.replace('_', "");
        if others
            .clone()
            .any(|other| other.name != self.name && other.name.replace('_', "") == own)
        {
            let remedy =
                "choose another name: without underscores it equals the name of another endpoint";
            self.table.problem("", remedy);
        }
        if let Some(other) = others.find(|other| other.overlaps(segments)) {
            let remedy = format!(
                "choose another path: some requests would also match `{}`",
                other.documented_path()
            );
            self.table.problem("path", remedy);
        }
    }
}

/// The segments of a path below the base, if they are valid.
fn valid_segments(path: &str) -> Option<Vec<&str>> {
    let segments: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    let ids = segments.iter().filter(|segment| **segment == ":id").count();
    let is_valid = ids <= 1
        && (1..=8).contains(&segments.len())
        && segments
            .iter()
            .all(|segment| *segment == ":id" || is_plain(segment))
        && segments.first() != Some(&":id");
    is_valid.then_some(segments)
}

fn is_plain(segment: &str) -> bool {
    !matches!(segment, "" | "." | "..")
        && segment
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}
