//! The fields of submitted forms and of queries.

use http::{HeaderMap, header::CONTENT_TYPE};

use crate::pages::account::EXISTING;

use super::site_refusal::SiteRefusal;

/// Maximum size of a form.
pub const MAX_FORM: usize = 8 * 1_024;
/// Maximum number of fields.
const MAX_FIELDS: usize = 16;

/// The fields of a form.
#[derive(Clone, Debug, Default)]
pub struct Form(Vec<(String, String)>);

impl Form {
    /// Parses a form.
    pub fn parse(body: &[u8]) -> Result<Self, SiteRefusal> {
        let mut fields = form_urlencoded::parse(body).into_owned();
        let form: Vec<(String, String)> = fields.by_ref().take(MAX_FIELDS).collect();
        if fields.next().is_some() {
            Err(SiteRefusal::NotAForm)
        } else {
            Ok(Self(form))
        }
    }

    /// The fields of a query. Fields beyond the maximum number are ignored.
    pub fn of_query(query: &str) -> Self {
        Self(
            form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .take(MAX_FIELDS)
                .collect(),
        )
    }

    /// The value of a field without surrounding spaces; empty if the field is missing or repeated.
    pub fn field(&self, name: &str) -> &str {
        let mut values = self
            .0
            .iter()
            .filter(|(field, _)| field == name)
            .map(|(_, value)| value.trim());
        match (values.next(), values.next()) {
            (Some(value), None) => value,
            _ => "",
        }
    }

    /// The number of keys or applications that existed when the form was rendered. If a form is submitted twice, the
    /// number is from before the first submission.
    pub fn existing(&self) -> Option<usize> {
        self.field(EXISTING).parse().ok()
    }

    /// Whether a checkbox is set.
    pub fn is_set(&self, name: &str) -> bool {
        self.field(name) == "yes"
    }
}

/// Whether the body of a request is a form.
pub fn has_form_type(headers: &HeaderMap) -> bool {
    let Some(kind) = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
    else {
        return false;
    };
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_and_a_repeated_field_is_missing() {
        let form =
            Form::parse(b"email=a%2Bb%40example.org&name=+two+words+&twice=1&twice=2&box=yes")
                .unwrap();
        assert_eq!(form.field("email"), "a+b@example.org");
        assert_eq!(form.field("name"), "two words");
        assert_eq!((form.field("twice"), form.field("other")), ("", ""));
        assert!(form.is_set("box") && !form.is_set("name"));
        assert_eq!(
            Form::parse(&[0xff, b'%', b'=', b'%', b'z'])
                .unwrap()
                .field("\u{fffd}%"),
            "%z"
        );
        assert_eq!(
            Form::of_query(&format!("token=x{}", "&a=".repeat(99))).field("token"),
            "x"
        );
        assert_eq!(
            Form::parse("a=&".repeat(17).as_bytes()).unwrap_err(),
            SiteRefusal::NotAForm
        );
    }
}
