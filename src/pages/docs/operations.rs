//! The operations as data for the script of the docs page, which builds a form for each operation.

use std::borrow::Cow;

use serde::Serialize;

use crate::pages::{ACCOUNT_SIGN_IN, PagesConfig, sample};
use scoregate_base::routes::{API_BASE, AllowedValues, Endpoint, Param};

use super::reference;

#[derive(Serialize)]
struct TryItData<'c> {
    /// Path of the API, relative to this page.
    base: &'static str,
    /// Public address of the API, for programs. `None` if only the address in the reader's browser is known.
    address: Option<String>,
    #[serde(rename = "signUp")]
    sign_up: Option<&'static str>,
    operations: Vec<Operation<'c>>,
}

#[derive(Serialize)]
struct Operation<'c> {
    name: &'static str,
    /// The path below the base, with `{id}` for a model.
    path: String,
    parameters: Vec<OperationParameter<'c>>,
}

#[derive(Serialize)]
struct OperationParameter<'c> {
    name: &'static str,
    r#in: &'static str,
    /// The initial value of the form, or the value that applies if the parameter is omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Cow<'c, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maximum: Option<u8>,
}

/// The data as JSON for a `script` element. `<` is escaped, because the element ends at the next `</script`.
pub fn data(config: &PagesConfig) -> String {
    let operations = config
        .endpoints
        .iter()
        .map(|row| operation(row, config))
        .collect();
    let data = TryItData {
        base: API_BASE,
        address: config.base_url.is_some().then(|| config.base()),
        sign_up: config.sign_up.then_some(ACCOUNT_SIGN_IN),
        operations,
    };
    sample::text_of(&data)
        .replace('<', "\\u003c")
        .replace('&', "\\u0026")
}

fn operation<'c>(row: &Endpoint, config: &'c PagesConfig) -> Operation<'c> {
    let path = row.documented_path();
    let path = path.strip_prefix(API_BASE).unwrap_or(&path).to_owned();
    let parameters = reference::taken(row)
        .map(|param| parameter(param, config))
        .collect();
    Operation {
        name: row.name,
        path,
        parameters,
    }
}

fn parameter(param: Param, config: &PagesConfig) -> OperationParameter<'_> {
    let default = param.default_value().or_else(|| {
        config
            .example_model
            .as_deref()
            .filter(|_| param == Param::Id)
            .map(Cow::from)
    });
    let (values, range) = match param.allowed() {
        AllowedValues::Words(words) => (Some(words), None),
        AllowedValues::Range { minimum, maximum } => (None, Some((minimum, maximum))),
        AllowedValues::Pattern { .. } => (None, None),
    };
    OperationParameter {
        name: param.name(),
        r#in: if param == Param::Id { "path" } else { "query" },
        default,
        values,
        minimum: range.map(|(minimum, _)| minimum),
        maximum: range.map(|(_, maximum)| maximum),
    }
}

#[cfg(test)]
mod tests {
    use scoregate_base::routes::ENDPOINTS;
    use serde_json::{Value, json};

    use super::*;

    fn read(config: &PagesConfig) -> Value {
        serde_json::from_str(&data(config)).unwrap()
    }

    #[test]
    fn every_operation_has_its_parameters_with_values_and_defaults() {
        let data = read(&PagesConfig {
            example_model: Some("m-1".into()),
            ..PagesConfig::default()
        });
        assert_eq!(
            (&data["base"], &data["address"], &data["signUp"]),
            (&json!("/api/v1"), &json!(null), &json!(null))
        );
        let operations = data["operations"].as_array().unwrap();
        assert_eq!(operations.len(), ENDPOINTS.len());
        for (operation, row) in operations.iter().zip(&ENDPOINTS) {
            assert_eq!(operation["name"], row.name);
            assert_eq!(
                operation["parameters"].as_array().unwrap().len(),
                reference::taken(row).count()
            );
        }
        assert_eq!(operations[0]["parameters"][0]["in"], "query");
        assert_eq!(operations[0]["parameters"][1]["default"], "combined");
        assert_eq!(operations[2]["path"], "/models/{id}/history");
        assert_eq!(
            operations[2]["parameters"][0],
            json!({ "name": "id", "in": "path", "default": "m-1" })
        );
        let limit = json!({ "name": "limit", "in": "query", "default": "50", "minimum": 1, "maximum": 100 });
        assert_eq!(operations[5]["parameters"][1], limit);
    }

    #[test]
    fn data_cannot_end_its_element() {
        let config = PagesConfig {
            base_url: Some("https://x/</script><script>".into()),
            example_model: Some("</script>".into()),
            sign_up: true,
            ..PagesConfig::default()
        };
        assert!(!data(&config).contains('<'));
        assert_eq!(
            read(&config)["address"],
            "https://x/</script><script>/api/v1"
        );
        assert_eq!(read(&config)["signUp"], "/account/sign-in");
    }
}
