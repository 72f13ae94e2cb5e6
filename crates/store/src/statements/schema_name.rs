//! Database names that need no quotes in a statement.

use std::fmt;

/// The name of a schema, which needs no quotes in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaName(String);

/// The name of a role, which needs no quotes in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleName(String);

/// The string is not a name that can be used without quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name has 1 to 63 lower-case letters, digits and underscores, and begins with a letter")]
pub struct BadName;

impl SchemaName {
    /// Parses the name of a schema.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        plain_name(text).map(Self)
    }

    /// A statement with every `{schema}` replaced by the name.
    pub(crate) fn statement(&self, text: &str) -> String {
        text.replace("{schema}", &self.0)
    }
}

impl RoleName {
    /// Parses the name of a role.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        plain_name(text).map(Self)
    }
}

impl fmt::Display for RoleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn plain_name(text: &str) -> Result<String, BadName> {
    let is_valid = (1..=63).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && text.starts_with(|first: char| first.is_ascii_lowercase());
    is_valid.then(|| text.into()).ok_or(BadName)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_name_needs_no_quotes() {
        assert_eq!(
            SchemaName::parse("gate_2")
                .unwrap()
                .statement("{schema}.keys"),
            "gate_2.keys"
        );
        for bad in ["", "2gate", "Gate", "gate;drop", "_gate", &"x".repeat(64)] {
            assert_eq!(SchemaName::parse(bad), Err(BadName), "{bad}");
        }
    }
}
