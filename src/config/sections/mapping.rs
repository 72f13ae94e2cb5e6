//! Reads `[mapping.ENDPOINT]`, which maps the paths and response shapes of a backend to the paths and shapes of this
//! API.
//!
//! By default, paths and shapes are the same as in this API. Mappings cannot be set in the environment. `upstream::mapping` parses
//! paths and pointers.

use toml::Value;

use crate::{
    cache::PAID_FIELD,
    upstream::{
        DataShape, EndpointMapping, IdPattern, ItemMapping, JsonPointer, Mapping, NotFound,
        PathTemplate,
    },
};
use scoregate_base::routes::{Endpoint, EndpointTable, Param, Route};

use super::mapping_fields::{self, FieldProblem};
use crate::config::{
    config_reader::ConfigReader,
    table_reader::{TableReader, list},
};

/// Fields of a mapping table.
const FIELDS: [&str; 10] = [
    "path",
    "unsupported",
    "data",
    "shape",
    "key_as",
    "fields",
    "not_found",
    "id",
    "timestamp",
    "complete",
];
/// If one of these settings is given, the endpoint's items have the shape of the backend.
const OF_THE_BACKEND: [&str; 4] = ["path", "data", "shape", "key_as"];
const SHAPES: [&str; 3] = ["array", "object", "map"];

/// Reads all mapping tables.
pub(in crate::config) fn read(
    reading: &mut ConfigReader<'_>,
    endpoints: &EndpointTable,
) -> Mapping {
    unknown_mappings(reading, endpoints);
    let mut mapping = Mapping::default();
    for endpoint in endpoints.stored() {
        mapping
            .endpoints
            .insert(endpoint.route, MappingTable::at(reading, endpoint).read());
    }
    let mut models = TableReader::at(reading, "mapping.models");
    mapping.lists_all_models = models.flag("complete", "whether the list contains all models");
    mapping
}

fn unknown_mappings(reading: &mut ConfigReader<'_>, endpoints: &EndpointTable) {
    for (path, value) in &reading.written().values {
        let Some(below) = path.strip_prefix("mapping.") else {
            continue;
        };
        let (name, field) = below.split_once('.').unwrap_or((below, ""));
        let known = endpoints.stored().map(|endpoint| endpoint.name);
        if !known.clone().any(|known| known == name) {
            let known: Vec<&str> = known.collect();
            let remedy = format!(
                "there is no such endpoint; write one of {}",
                known.join(", ")
            );
            reading.problem(path, Some(value), remedy);
        } else if field.is_empty() {
            reading.problem(
                path,
                Some(value),
                format!("write it as a table, [mapping.{name}]"),
            );
        } else if !FIELDS.contains(&field) {
            let remedy = format!("unknown field; write one of {}", FIELDS.join(", "));
            reading.problem(path, Some(value), remedy);
        }
    }
}

/// The table of one endpoint.
struct MappingTable<'r, 'w> {
    table: TableReader<'r, 'w>,
    endpoint: &'static Endpoint,
}

impl<'r, 'w> MappingTable<'r, 'w> {
    fn at(reading: &'r mut ConfigReader<'w>, endpoint: &'static Endpoint) -> Self {
        let table = TableReader::at(reading, format!("mapping.{}", endpoint.name));
        Self { table, endpoint }
    }

    fn read(mut self) -> EndpointMapping {
        let mut mapped = EndpointMapping::canonical(self.endpoint);
        mapped.template = self.template();
        if let Some(data) = self.pointer("data") {
            mapped.data = Some(data);
        }
        if let Some(instant) = self.pointer("timestamp") {
            mapped.timestamp = instant;
        }
        mapped.shape = self.shape();
        if let Some(ways) = self.not_found(&mapped.shape) {
            mapped.not_found = ways;
        }
        mapped.id = self.id();
        mapped.fields = self.fields();
        self.reject_paid_pointers(&mapped);
        if self.endpoint.route != Route::Models && self.table.value("complete").is_some() {
            self.table.problem(
                "complete",
                "remove this field: only the list of `models` can contain all models",
            );
        }
        mapped
    }

    fn template(&mut self) -> PathTemplate {
        let endpoint = self.endpoint;
        let without = self.without();
        let canonical = PathTemplate::canonical(endpoint, &without);
        let Some(text) = self.text("path") else {
            return canonical;
        };
        PathTemplate::parse(endpoint, text, &without).unwrap_or_else(|bad| {
            for bad in bad {
                self.table.problem("path", bad.to_string());
            }
            canonical
        })
    }

    fn without(&mut self) -> Vec<Param> {
        let takes = self.endpoint.takes;
        let all: Vec<&str> = takes.iter().map(|param| param.name()).collect();
        self.words("unsupported", &all, |word: &str| {
            takes.iter().copied().find(|param| param.name() == word)
        })
        .unwrap_or_default()
    }

    fn pointer(&mut self, field: &str) -> Option<JsonPointer> {
        let pointer = JsonPointer::parse(self.text(field)?);
        pointer
            .map_err(|bad| self.table.problem(field, bad.to_string()))
            .ok()
    }

    fn shape(&mut self) -> DataShape {
        let is = self.text("shape");
        let key_as = self.text("key_as");
        match (is, key_as) {
            (Some("map"), Some(key)) if !key.is_empty() && !key.contains(char::is_control) => {
                return DataShape::Map {
                    key_as: key.to_owned(),
                };
            }
            (Some("map"), None) if self.table.value("key_as").is_some() => {} // not a string: already reported
            (Some("map"), _) => self.table.problem(
                "key_as",
                "write the name of the field for each item's key, such as \"id\" or \"provider\"",
            ),
            (Some(word), _) if !SHAPES.contains(&word) => {
                self.table.problem(
                    "shape",
                    format!("write one of \"{}\"", SHAPES.join("\", \"")),
                );
            }
            (_, Some(_)) => {
                self.table.problem(
                    "key_as",
                    "only a map has keys: write shape = \"map\", or remove key_as",
                );
            }
            (Some("array"), None) => return DataShape::Array,
            (Some("object"), None) => return DataShape::Object,
            (_, None) => {}
        }
        DataShape::default()
    }

    fn not_found(&mut self, shape: &DataShape) -> Option<Vec<NotFound>> {
        self.table.value("not_found")?;
        if !self.endpoint.route.names_a_model() {
            self.table.problem(
                "not_found",
                "remove this field: the endpoint names no model",
            );
            return None;
        }
        let all = NotFound::ALL.map(NotFound::as_str);
        let ways = self.words("not_found", &all, NotFound::parse)?;
        if *shape == DataShape::Object && ways.contains(&NotFound::Empty) {
            self.table.problem(
                "not_found",
                "remove \"empty\": an object is never an empty list",
            );
        }
        Some(ways)
    }

    fn fields(&mut self) -> Option<ItemMapping> {
        let is_of_the_backend = OF_THE_BACKEND
            .iter()
            .any(|field| self.table.value(field).is_some());
        let Some(value) = self.table.value("fields") else {
            return is_of_the_backend.then(ItemMapping::default);
        };
        let Some(table) = value.as_table() else {
            self.table.problem(
                "fields",
                format!(
                    "write it as a table, [mapping.{}.fields]",
                    self.endpoint.name
                ),
            );
            return None;
        };
        let (fields, problems) = mapping_fields::read(self.endpoint, table);
        for FieldProblem { name, remedy } in problems {
            self.table.within("fields", table).problem(&name, remedy);
        }
        Some(fields)
    }

    /// Rejects pointers to parts of the paid field's value, which cannot be mapped separately.
    fn reject_paid_pointers(&mut self, mapped: &EndpointMapping) {
        let source = mapped.fields.as_ref().and_then(ItemMapping::paid_source);
        if source.is_some() && matches!(mapped.shape, DataShape::Map { .. }) {
            self.table.problem(
                "shape",
                format!(
                    "write \"object\": an entry may have the name of the field that becomes `{PAID_FIELD}`"
                ),
            );
        }
        let unmapped = ItemMapping::default();
        let fields = mapped.fields.as_ref().unwrap_or(&unmapped);
        let configured = mapping_fields::paid_names(self.endpoint, fields);
        let hidden = if configured.is_empty() {
            format!("`{PAID_FIELD}`")
        } else {
            configured.join(" and ")
        };
        for (field, pointer) in [
            ("data", mapped.data.as_ref()),
            ("timestamp", Some(&mapped.timestamp)),
        ] {
            if pointer.is_some_and(|pointer| {
                [PAID_FIELD]
                    .into_iter()
                    .chain(source)
                    .chain(configured.clone())
                    .any(|name| pointer.passes(name))
            }) {
                let remedy =
                    format!("point outside the value of {hidden}: only paid callers may see it");
                self.table.problem(field, remedy);
            }
        }
    }

    fn id(&mut self) -> Option<IdPattern> {
        let text = self.text("id")?;
        if !self.endpoint.route.names_a_model() {
            self.table
                .problem("id", "remove this field: the endpoint names no model");
            return None;
        }
        IdPattern::parse(text)
            .map_err(|bad| self.table.problem("id", bad.to_string()))
            .ok()
    }

    fn text(&mut self, field: &str) -> Option<&'w str> {
        self.table
            .optional(field, "write a string in double quotes", Value::as_str)
    }

    /// A list of known words.
    fn words<T>(
        &mut self,
        field: &str,
        all: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let remedy = match all {
            [] => "remove this field: the endpoint has no parameters".to_owned(),
            all => format!("write a list of \"{}\"", all.join("\", \"")),
        };
        self.table
            .optional(field, remedy, |value| list(value, parse))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::sample;
    use crate::config::tests::backend;

    fn mapping(text: &str) -> Mapping {
        backend(&format!("url = \"http://127.0.0.1:4000\"\n{text}")).mapping
    }

    #[test]
    fn the_default_mapping_is_the_api_of_this_service() {
        assert_eq!(mapping("").endpoints, Mapping::default().endpoints);
        let read = mapping("[mapping.index]\ndata = \"\"");
        let index = read.endpoints.get(&Route::Index).unwrap();
        let expected = EndpointMapping {
            data: Some(JsonPointer::default()),
            fields: Some(ItemMapping::default()),
            ..EndpointMapping::canonical(Route::Index.endpoint())
        };
        assert_eq!(*index, expected);
    }

    #[test]
    fn all_fields_are_read() {
        let read = mapping(
            "[mapping.models]\npath = \"/s?p={period}\"\nunsupported = [\"sortBy\"]\ndata = \"/a~1b\"\nshape = \"map\"\n\
             key_as = \"id\"\ntimestamp = \"/meta/at\"\ncomplete = true\n\
             [mapping.history]\nunsupported = [\"period\"]\nshape = \"array\"\nnot_found = [\"404\", \"error\", \"empty\"]\n\
             id = '[0-9]+'\n[mapping.drift]\nshape = \"object\"\nnot_found = []",
        );
        assert!(read.lists_all_models);
        let ignored = [
            (Route::Models, vec![Param::SortBy]),
            (Route::History, vec![Param::Period]),
        ];
        assert_eq!(read.description().ignored, ignored.into());
        let of = |route| read.endpoints.get(&route).unwrap();
        let models = of(Route::Models);
        let template =
            PathTemplate::parse(Route::Models.endpoint(), "/s?p={period}", &[Param::SortBy]);
        assert_eq!(models.template, template.unwrap());
        assert_eq!(models.data, JsonPointer::parse("/a~1b").ok());
        assert_eq!(
            (&models.timestamp, &models.shape),
            (
                &JsonPointer::parse("/meta/at").unwrap(),
                &DataShape::Map {
                    key_as: "id".into()
                }
            )
        );
        let history = of(Route::History);
        assert_eq!(
            history.template,
            PathTemplate::canonical(Route::History.endpoint(), &[Param::Period])
        );
        assert_eq!(
            (&history.shape, &history.not_found[..]),
            (&DataShape::Array, &NotFound::ALL[..])
        );
        assert_eq!(
            (&history.id, &of(Route::Drift).id),
            (&IdPattern::parse("[0-9]+").ok(), &None)
        );
        assert_eq!(
            (&of(Route::Drift).shape, of(Route::Drift).not_found.len()),
            (&DataShape::Object, 0)
        );
    }

    #[test]
    fn the_mapping_of_the_sample_is_valid() {
        let sample = sample();
        let block = sample.split_once("# [mapping.models]").unwrap().1;
        let block = block
            .lines()
            .map(|line| line.trim_start_matches("# "))
            .collect::<Vec<_>>()
            .join("\n");
        let read = mapping(&format!("[mapping.models]{block}"));
        assert!(read.lists_all_models);
        for field in FIELDS {
            assert!(sample.contains(&format!("# {field} = ")), "{field}");
        }
        for endpoint in EndpointTable::default().stored() {
            assert!(sample.contains(endpoint.name), "{}", endpoint.name);
        }
    }
}
