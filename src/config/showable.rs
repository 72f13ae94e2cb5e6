//! Removes secrets from values of settings, for messages and for the operator.

use toml::Value;

use super::{
    settings::{ValueKind, setting_of},
    tables::UPSTREAM_HEADERS,
};

/// Placeholder for a secret, independent of its length.
const HIDDEN: &str = "…";

/// A value without secrets. In addition to secret settings, a URL can contain a password, and a mapped path or a
/// database URL can contain a fixed parameter with a credential.
pub fn showable(path: &str, value: &Value) -> Value {
    let is_secret = setting_of(path).is_some_and(|setting| setting.kind == ValueKind::Secret);
    if is_secret {
        return HIDDEN.into();
    }
    if path == UPSTREAM_HEADERS
        && let Value::Table(headers) = value
    {
        return Value::Table(
            headers
                .keys()
                .map(|name| (name.clone(), HIDDEN.into()))
                .collect(),
        );
    }
    let is_mapped = path.starts_with("mapping.") && path.rsplit('.').next() == Some("path");
    if let Value::Array(items) = value {
        let items = items.iter().map(|item| showable(path, item));
        return items.collect::<Vec<_>>().into();
    }
    let is_database = ["store.url", "store.listen_url"].contains(&path);
    match value.as_str() {
        Some(text) if is_database || is_mapped => {
            without_fixed_values(&without_password(text)).into()
        }
        Some(text) if text.contains("://") || path.starts_with("upstream.url") => {
            without_password(text).into()
        }
        Some(_) | None => value.clone(),
    }
}

/// Replaces `http://user:password@host/` with `http://…@host/`.
fn without_password(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    match authority.rsplit_once('@') {
        Some((user, _)) => {
            let host = rest.strip_prefix(user).unwrap_or_default();
            let scheme = if scheme.is_empty() {
                String::new()
            } else {
                format!("{scheme}://")
            };
            format!("{scheme}{HIDDEN}{host}")
        }
        None => address.to_owned(),
    }
}

/// Replaces `/scores?token=1234&period={period}` with `/scores?token=…&period={period}`.
fn without_fixed_values(template: &str) -> String {
    let Some((path, query)) = template.split_once('?') else {
        return template.to_owned();
    };
    let is_filled_in =
        |value: &str| value.starts_with('{') && value.find('}') == Some(value.len() - 1);
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((_, value)) if is_filled_in(value) => pair.to_owned(),
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None => HIDDEN.to_owned(),
    });
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_url_is_not_shown() {
        for (address, shown) in [
            (
                "http://user:canary@localhost:1/api",
                "http://…@localhost:1/api",
            ),
            ("https://canary@localhost", "https://…@localhost"),
            ("user:canary@localhost", "…@localhost"),
            ("http://localhost/a@b", "http://localhost/a@b"),
        ] {
            assert_eq!(
                showable("upstream.url", &address.into()),
                Value::from(shown)
            );
        }
    }
}
