//! Converts commands to requests and back: `/v1/<group>/<action>`. Actions that only read use GET with a query; all
//! others use POST with a JSON body.

use std::iter::{Once, once};

use http::Method;
use serde::{
    Serialize,
    de::{
        DeserializeOwned, IntoDeserializer,
        value::{Error, MapAccessDeserializer, MapDeserializer},
    },
};
use serde_json::{Value, json, value::RawValue};

use crate::admin::command_problem::{CommandProblem, CommandResult};
use scoregate_base::json::{BadJson, read as read_json};

use super::query_value::QueryValue;

/// The actions that only read.
const READS: [&str; 6] = ["audit", "export", "list", "requests", "show", "top"];

/// A deserializer for an enum variant, which serde represents as a map with one entry.
type Tagged<'t, T> = MapAccessDeserializer<MapDeserializer<'t, Once<(&'t str, T)>, Error>>;

/// Converts a command to a method, a target and a body.
pub fn to_request(command: &impl Serialize) -> (Method, String, Vec<u8>) {
    let (group, command) = variant(json!(command));
    let (action, fields) = variant(command);
    let path = format!("/v1/{group}/{action}");
    if READS.contains(&action.as_str()) {
        (Method::GET, format!("{path}?{}", query(fields)), Vec::new())
    } else {
        (Method::POST, path, fields.to_string().into_bytes())
    }
}

fn variant(command: Value) -> (String, Value) {
    let Value::Object(tagged) = command else {
        return (String::new(), command);
    };
    tagged
        .into_iter()
        .next()
        .expect("a command is one variant with fields")
}

fn query(fields: Value) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let Value::Object(fields) = fields else {
        return String::new();
    };
    for (name, value) in fields {
        let text = match value {
            Value::Null => continue,
            Value::String(text) => text,
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                value.to_string()
            }
        };
        query.append_pair(&name, &text);
    }
    query.finish()
}

/// Parses the command of a request.
pub fn read<C: DeserializeOwned>(
    method: &Method,
    path: &str,
    query: Option<&str>,
    body: &[u8],
) -> CommandResult<C> {
    let command = path
        .strip_prefix("/v1/")
        .and_then(|below| below.split_once('/'));
    let (group, action) = command.ok_or_else(CommandProblem::not_found)?;
    let expected = if READS.contains(&action) {
        Method::GET
    } else {
        Method::POST
    };
    if *method != expected || !is_known::<C>(group, action) {
        return Err(CommandProblem::not_found());
    }
    if *method == Method::GET {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        let fields = pairs.map(|(name, value)| (name.clone(), QueryValue { name, value }));
        let fields = MapDeserializer::<_, Error>::new(fields);
        return C::deserialize(tagged(group, tagged(action, fields)))
            .map_err(|bad| bad_query(&bad.to_string()));
    }
    from_body(group, action, body)
        .map_err(|bad| CommandProblem::bad(format!("invalid body: {bad}")))
}

/// The problem with an invalid query. The name of an unknown parameter is not repeated, because it may be a key.
fn bad_query(error: &str) -> CommandProblem {
    if !error.starts_with("unknown field ") {
        return CommandProblem::bad(format!("invalid query: {error}"));
    }
    let known = error.rsplit_once(", expected ");
    let known = known.map_or("none", |(_, known)| known.trim_start_matches("one of "));
    CommandProblem::bad(format!(
        "unknown query parameter; the parameters are {known}"
    ))
}

/// Whether there is a command with this name. No command can be parsed without fields, so every error other than an
/// unknown variant means that the command exists.
fn is_known<C: DeserializeOwned>(group: &str, action: &str) -> bool {
    let probed = C::deserialize(tagged(group, tagged(action, ())));
    !probed.is_err_and(|bad| bad.to_string().starts_with("unknown variant"))
}

fn tagged<'t, T: IntoDeserializer<'t, Error>>(tag: &'t str, content: T) -> Tagged<'t, T> {
    MapAccessDeserializer::new(MapDeserializer::new(once((tag, content))))
}

fn from_body<C: DeserializeOwned>(group: &str, action: &str, body: &[u8]) -> Result<C, BadJson> {
    let body = if body.is_empty() { b"{}" } else { body };
    let body: &RawValue = read_json(body)?;
    let tagged = format!(r#"{{"{group}":{{"{action}":{body}}}}}"#);
    read_json(tagged.as_bytes()).map_err(|BadJson { field, problem }| {
        let within = format!("{group}.{action}.");
        let field = field.and_then(|field| field.strip_prefix(&within).map(str::to_owned));
        BadJson { field, problem }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::AdminCommand;

    const APP: &str = "app_0123456789a";
    const OWNER: &str = "own_0123456789a";

    fn read_command(method: &Method, target: &str, body: &[u8]) -> CommandResult<AdminCommand> {
        let (path, query) = target
            .split_once('?')
            .map_or((target, None), |(path, query)| (path, Some(query)));
        read(method, path, query, body)
    }

    #[test]
    fn a_command_is_read_back_from_its_request() {
        let key = json!({"sha256": "0a", "name": "n", "tier": "pro"});
        for command in [
            json!({"keys": {"create": {"name": "n", "tier": "pro", "limits": {"day": 7}, "url": "https://example.org"}}}),
            json!({"keys": {"list": {"after": APP, "limit": 5}}}),
            json!({"keys": {"list": {"limit": 100}}}),
            json!({"keys": {"show": {"id": APP}}}),
            json!({"keys": {"rotate": {"id": APP, "overlap_hours": 0, "key_name": "Station", "expires_at": "2027-01-31T00:00:00Z"}}}),
            json!({"keys": {"revoke": {"id": APP, "key": "sg_live_abcd"}}}),
            json!({"keys": {"set-tier": {"id": APP, "tier": "teams"}}}),
            json!({"keys": {"set-limits": {"id": APP, "limits": {"minute": 3}, "until": "2027-01-31T00:00:00Z"}}}),
            json!({"keys": {"set-limits": {"id": APP, "limits": {"day": null}}}}),
            json!({"keys": {"set-expiry": {"id": APP, "at": null}}}),
            json!({"keys": {"set-expiry": {"id": APP, "key": "sg", "at": "2027-01-31T00:00:00Z"}}}),
            json!({"keys": {"update": {"id": APP, "name": "n", "url": null, "note": "Über"}}}),
            json!({"keys": {"requests": {"id": APP, "days": 7, "to": "2027-01-31"}}}),
            json!({"keys": {"audit": {"id": APP, "before": 9, "limit": 7}}}),
            json!({"keys": {"import": {"keys": [key, 7]}}}),
            json!({"keys": {"export": {"after": APP, "limit": 5}}}),
            json!({"accounts": {"list": {"email": "o'!#$%&'*+-/=?^_`{|}~brien@", "application": APP, "after": OWNER, "limit": 3}}}),
            json!({"accounts": {"list": {"email": "123", "limit": 3}}}),
            json!({"accounts": {"show": {"id": OWNER}}}),
            json!({"accounts": {"export": {"id": OWNER}}}),
            json!({"accounts": {"suspend": {"id": OWNER}}}),
            json!({"accounts": {"resume": {"id": OWNER}}}),
            json!({"accounts": {"set-tier": {"id": OWNER, "tier": "pro", "default": false}}}),
            json!({"accounts": {"set-limits": {"id": OWNER, "limits": {"owner_day": 9, "owner_month": null}}}}),
            json!({"accounts": {"delete": {"id": OWNER}}}),
            json!({"accounts": {"contact": {"subject": "Über", "message": "one\n\"two\"", "application": [APP], "tier": null, "account": [OWNER, OWNER], "all": true, "dry_run": true}}}),
            json!({"nodes": {"list": {}}}),
            json!({"suspects": {"list": {"days": 30}}}),
            json!({"suspects": {"show": {"id": APP}}}),
            json!({"status": {"post": {"title": "Late", "message": "One.\nTwo.", "state": "monitoring"}}}),
            json!({"status": {"post": {"incident": 7, "message": "Two."}}}),
            json!({"status": {"resolve": {"incident": 7, "message": "Over."}}}),
            json!({"status": {"list": {"limit": 5}}}),
            json!({"usage": {"export": {"month": "2026-11", "day": "2026-11-03"}}}),
        ] {
            let read: AdminCommand = serde_json::from_value(command.clone()).unwrap();
            let (method, target, body) = to_request(&read);
            let again = read_command(&method, &target, &body).unwrap();
            assert_eq!(json!(again), json!(read), "{command}");
            assert_eq!(
                method == Method::POST,
                !target.contains('?'),
                "only GET requests have a query: {target}"
            );
        }
    }

    #[test]
    fn what_a_request_leaves_out_has_the_default_of_the_command_line() {
        for (method, target, body, command) in [
            (
                Method::GET,
                "/v1/keys/list",
                "",
                json!({"keys": {"list": {"after": null, "limit": 100}}}),
            ),
            (
                Method::GET,
                "/v1/keys/requests?id=app_0123456789a",
                "",
                json!({"keys": {"requests": {"id": APP, "days": 30, "to": null}}}),
            ),
            (
                Method::POST,
                "/v1/keys/rotate",
                r#"{"id":"app_0123456789a"}"#,
                json!({"keys": {"rotate": {"id": APP, "overlap_hours": 24, "key_name": null, "expires_at": null}}}),
            ),
        ] {
            let read = read_command(&method, target, body.as_bytes()).unwrap();
            assert_eq!(json!(read), command);
        }
    }

    fn assert_refused(method: &Method, target: &str, body: &str, status: u16, error: &str) {
        let refused = read_command(method, target, body.as_bytes()).unwrap_err();
        let found = &refused.error;
        assert_eq!(refused.status, status, "{target} {body}: {found}");
        assert!(found.contains(error), "{target} {body}: {found}");
    }

    #[test]
    fn an_unknown_command_is_not_found() {
        for (method, target) in [
            (Method::GET, ""),
            (Method::GET, "/v1"),
            (Method::GET, "/v1/keys"),
            (Method::GET, "/v1/keys/"),
            (Method::GET, "/v1/key/list"),
            (Method::GET, "/v1/keys/list/x"),
            (Method::POST, "/v1/keys/list"),
            (Method::GET, "/v1/keys/create"),
            (Method::PUT, "/v1/keys/import"),
            (Method::POST, "/v1/keys/elevate"),
            (Method::POST, "/v1/status/reopen"),
        ] {
            assert_refused(&method, target, "{}", 404, "the paths are");
        }
    }

    #[test]
    fn an_invalid_field_is_named() {
        for (query, error) in [
            ("keys/show", "missing field `id`"),
            ("keys/show?id=x", "eleven letters"),
            (
                "keys/show?id=app_0123456789a&usage=true",
                "the parameters are `id`",
            ),
            ("keys/list?limit=x", "`limit` must be a number"),
            ("keys/list?limit=1&limit=2", "duplicate field"),
            ("keys/audit?before=-1", "`before` must be a number"),
            (
                "keys/requests?id=app_0123456789a&to=2027-02-30",
                "a day such as",
            ),
            ("accounts/list?after=app_0123456789a", "`own_`"),
            ("accounts/list?mail=a", "`email`"),
        ] {
            assert_refused(&Method::GET, &format!("/v1/{query}"), "", 400, error);
        }
        for (action, body, error) in [
            ("keys/create", "", "the field `name` is missing"),
            ("keys/create", "{", "incomplete JSON at byte 1"),
            (
                "keys/create",
                r#"{"name":"a","tier":"pro"}} {}"#,
                "unexpected text",
            ),
            (
                "keys/create",
                r#"{"name":"a","tier":"pro","admin":true}"#,
                "admin: unknown field",
            ),
            (
                "keys/create",
                r#"{"name":"a","tier":7}"#,
                "tier: write a string",
            ),
            (
                "keys/revoke",
                r#"{"id":"weather"}"#,
                "id: an application's id",
            ),
            (
                "keys/set-limits",
                r#"{"id":"app_0123456789a","limits":{"day":-1}}"#,
                "limits.day: write a non-negative",
            ),
            (
                "keys/set-expiry",
                r#"{"id":"app_0123456789a"}"#,
                "the field `at` is missing",
            ),
            (
                "keys/set-expiry",
                r#"{"id":"app_0123456789a","at":"soon"}"#,
                "at: write a timestamp",
            ),
            ("keys/import", r#"{"keys":{}}"#, "keys: write"),
            (
                "accounts/delete",
                r#"{"id":"own_0123456789a","force":true}"#,
                "force: unknown field",
            ),
            (
                "accounts/contact",
                r#"{"message":"m","all":true}"#,
                "the field `subject` is missing",
            ),
            (
                "status/post",
                r#"{"title":"a","message":"b","state":"post"}"#,
                "state: that is not one of",
            ),
            (
                "status/resolve",
                r#"{"incident":-1,"message":"b"}"#,
                "incident: write a non-negative",
            ),
        ] {
            assert_refused(&Method::POST, &format!("/v1/{action}"), body, 400, error);
        }
    }
}
