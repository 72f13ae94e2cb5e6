//! The body of a report, and the response to it.

use scoregate_base::keys::{Digest, KeyForm, check_web_address};
use serde::{Deserialize, Serialize};

/// Maximum length of a URL that is repeated in mail and in the audit trail.
const MAX_PLACE: usize = 1_000;

/// A token that was found in a public place.
#[derive(Deserialize)]
pub struct ReportedToken {
    pub token: String,
    /// The name of the pattern that matched the token.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// The URL at which the token was found.
    #[serde(default)]
    url: Option<String>,
    /// The kind of place.
    #[serde(default)]
    source: Option<String>,
}

/// The feedback about a token.
#[derive(Serialize)]
pub struct TokenLabel<'t> {
    pub token_hash: String,
    pub token_type: &'t str,
    label: &'static str,
}

impl ReportedToken {
    /// The place where the token was found: an `https` URL in visible ASCII without a user name or a key. Otherwise a
    /// text that contains only a word and a digest from the report.
    pub fn place(&self, form: &KeyForm) -> String {
        let url = self.url.as_deref().unwrap_or_default();
        let is_fit = url.starts_with("https://") && check_web_address(url).is_ok();
        if is_fit && url.len() <= MAX_PLACE && !form.is_within(url) {
            return url.to_owned();
        }
        let source = self.source.as_deref().map(str::to_ascii_lowercase);
        let source = source
            .as_deref()
            .filter(|text| {
                (1..=40).contains(&text.len())
                    && text
                        .bytes()
                        .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            })
            .unwrap_or("unknown");
        if url.is_empty() {
            format!("an address that is not stated (source: {source})")
        } else {
            format!(
                "an address that is not shown (source: {source}, SHA-256 {})",
                Digest::of(url)
            )
        }
    }

    /// The feedback for the token.
    pub fn label(&self, is_key: bool) -> TokenLabel<'_> {
        let label = if is_key {
            "true_positive"
        } else {
            "false_positive"
        };
        TokenLabel {
            token_hash: Digest::of(&self.token).to_string(),
            token_type: &self.kind,
            label,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> String {
        let token =
            serde_json::json!({"token": "x", "type": "y", "url": url, "source": "Gist_content"});
        serde_json::from_value::<ReportedToken>(token)
            .unwrap()
            .place(&KeyForm::new("sg_live", false))
    }

    #[test]
    fn a_place_is_an_inert_https_address_or_hides_the_text() {
        let long = format!("https://example.org/{}", "a".repeat(MAX_PLACE));
        for fit in [
            "https://github.com/octocat/Hello-World/blob/1234/foo/bar.txt#L1",
            long.split_at(MAX_PLACE).0,
        ] {
            assert_eq!(place(fit), fit);
        }
        for unfit in [
            "http://example.org/",
            "javascript:alert(1)",
            "https://example.org/<b>",
            "https://example.org/\r\nBcc: all@example.org",
            "https://github.com@evil.example/",
            "https://ex\u{e4}mple.org/",
            "https://example.org/\u{202e}",
            "click here",
            &format!(
                "https://example.org/?key={}",
                KeyForm::new("sg_live", false).mint().unwrap().expose()
            ),
            &long,
        ] {
            let hash = Digest::of(unfit);
            let hidden =
                format!("an address that is not shown (source: gist_content, SHA-256 {hash})");
            assert_eq!(place(unfit), hidden, "{unfit}");
        }
        assert_eq!(
            place(""),
            "an address that is not stated (source: gist_content)"
        );
    }
}
