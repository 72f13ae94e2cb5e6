//! An MCP tool: an endpoint that language models can call.

use std::fmt::Write as _;

use serde_json::{Map, Value, json, value::RawValue};

use scoregate_base::routes::{AllowedValues, Endpoint, Param};

use super::rpc_message::{CallArguments, RpcText};

/// A capacity that is enough for most targets.
const TARGET: usize = 96;

/// The tool name of an endpoint.
pub fn tool_name(endpoint: &Endpoint) -> String {
    format!("get_{}", endpoint.name)
}

/// A tool.
#[derive(Debug)]
pub struct McpTool {
    pub endpoint: &'static Endpoint,
    pub name: String,
    /// The path before and after an id.
    path: [String; 2],
}

impl McpTool {
    pub fn new(endpoint: &'static Endpoint) -> Self {
        let path = endpoint.documented_path();
        let (before, after) = path.split_once("{id}").unwrap_or((&path, ""));
        Self {
            endpoint,
            name: tool_name(endpoint),
            path: [before.to_owned(), after.to_owned()],
        }
    }

    fn params(&self) -> impl Iterator<Item = Param> {
        let id = self.endpoint.route.names_a_model().then_some(Param::Id);
        id.into_iter().chain(self.endpoint.takes.iter().copied())
    }

    /// The entry in the tool list.
    pub fn description(&self) -> Value {
        let properties: Map<String, Value> = self
            .params()
            .map(|param| (param.name().to_owned(), schema(param)))
            .collect();
        let required: Vec<&str> = self
            .params()
            .filter(|param| *param == Param::Id)
            .map(Param::name)
            .collect();
        json!({
            "name": self.name,
            "description": self.endpoint.summary,
            "inputSchema": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        })
    }

    /// Path and query of the request that corresponds to a call. The gateway checks the values. Only arguments with an
    /// unknown name or type are refused here.
    pub fn target(&self, arguments: &CallArguments<'_>) -> Result<String, String> {
        for (name, value) in arguments {
            if !value
                .get()
                .starts_with(|first: char| matches!(first, '"' | '-' | '0'..='9'))
            {
                return Err(format!("Send `{}` as a string or a number.", &**name));
            }
            if self.params().all(|param| *param.name() != **name) {
                let names: Vec<&str> = self.params().map(Param::name).collect();
                let names = if names.is_empty() {
                    "none".to_owned()
                } else {
                    names.join(", ")
                };
                return Err(format!(
                    "Remove `{}`. Arguments of this tool: {names}.",
                    &**name
                ));
            }
        }
        let [before, after] = &self.path;
        let mut target = String::with_capacity(TARGET);
        target.push_str(before);
        if self.endpoint.route.names_a_model() {
            let missing = "Send `id`, the identifier of a model.";
            let from = target.len();
            append_escaped(&mut target, arguments.get(Param::Id.name()).ok_or(missing)?);
            // Path normalization would remove such a segment.
            if matches!(target.get(from..), Some("" | "." | "..")) {
                return Err(missing.to_owned());
            }
        }
        target.push_str(after);
        let mut separator = "?";
        for param in self.endpoint.takes {
            if let Some(value) = arguments.get(param.name()) {
                target.extend([separator, param.name(), "="]);
                append_escaped(&mut target, value);
                separator = "&";
            }
        }
        Ok(target)
    }
}

/// The schema of an argument.
fn schema(param: Param) -> Value {
    let allowed = param.allowed();
    let is_number = matches!(allowed, AllowedValues::Range { .. });
    let kind = if is_number { "integer" } else { "string" };
    let mut schema = Map::from_iter([("type".to_owned(), kind.into())]);
    schema.insert("description".to_owned(), param.meaning().into());
    if let AllowedValues::Words(words) = &allowed {
        schema.insert("enum".to_owned(), json!(words));
    } else {
        schema.extend(
            allowed
                .members()
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value)),
        );
    }
    schema.into()
}

/// Appends a string or a number to a path or a query. Escapes all characters except the unreserved ones (RFC 3986, 2.3).
fn append_escaped(target: &mut String, value: &RawValue) {
    let json = value.get();
    let text: Option<RpcText<'_>> = json
        .starts_with('"')
        .then(|| serde_json::from_str(json).ok())
        .flatten();
    for byte in text.as_deref().unwrap_or(json).bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            target.push(char::from(byte));
        } else {
            write!(target, "%{byte:02X}").expect("a text can be extended");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scoregate_base::routes::Route;

    fn target(route: Route, arguments: &Value) -> Result<String, String> {
        let arguments = arguments.to_string();
        McpTool::new(route.endpoint()).target(&serde_json::from_str(&arguments).unwrap())
    }

    #[test]
    fn a_call_stands_for_a_request() {
        for (route, arguments, expected) in [
            (Route::Models, json!({}), "/api/v1/models"),
            (
                Route::Models,
                json!({"sortBy": "price", "period": "7d"}),
                "/api/v1/models?period=7d&sortBy=price",
            ),
            (
                Route::Incidents,
                json!({"limit": 5}),
                "/api/v1/incidents?limit=5",
            ),
            (
                Route::History,
                json!({"id": "a:1", "period": "24h"}),
                "/api/v1/models/a%3A1/history?period=24h",
            ),
            (
                Route::Model,
                json!({"id": "../me?x#y z"}),
                "/api/v1/models/..%2Fme%3Fx%23y%20z",
            ),
            (
                Route::Models,
                json!({"period": "7d&sortBy=é"}),
                "/api/v1/models?period=7d%26sortBy%3D%C3%A9",
            ),
            (Route::Me, json!({}), "/api/v1/me"),
        ] {
            assert_eq!(target(route, &arguments).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn arguments_of_another_form_are_refused() {
        for (route, arguments) in [
            (Route::Models, json!({"id": "a"})),
            (Route::Models, json!({"period": null})),
            (Route::Models, json!({"period": ["7d"]})),
            (Route::Model, json!({})),
            (Route::Model, json!({"id": ""})),
            (Route::Model, json!({"id": ".."})),
        ] {
            assert!(target(route, &arguments).is_err(), "{arguments}");
        }
    }
}
