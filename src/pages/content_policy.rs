//! `Content-Security-Policy` of the pages. The style sheet and the script of a page are inline and identified by their
//! hashes.

use data_encoding::BASE64;
use sha2::{Digest as _, Sha256};

/// The policy of files that are not HTML. Browsers display text and JSON with their own styles.
pub const FILE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/// The inline content that an HTML page may use. Everything else is blocked, except the icon and forms that are
/// sent to this service.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowedContent<'p> {
    /// The text of the page's only `style` element.
    pub style: &'p str,
    /// The text of the page's only script, which may send requests to this service.
    pub script: Option<&'p str>,
}

impl AllowedContent<'_> {
    /// The policy for the page. Computes hashes, so callers should store the result.
    pub fn policy(&self) -> String {
        format!(
            "default-src 'none'; {}style-src '{}'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
            self.script
                .map(|text| format!("script-src '{}'; connect-src 'self'; ", source(text)))
                .unwrap_or_default(),
            source(self.style),
        )
    }
}

/// The expression that allows exactly this text.
fn source(text: &str) -> String {
    format!("sha256-{}", BASE64.encode(&Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_contents_of_the_page_are_allowed() {
        // The digests of the empty string and of "abc" are from FIPS 180-4.
        let empty = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        let abc = "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=";
        let fixed = "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
        let styled = AllowedContent {
            style: "abc",
            ..AllowedContent::default()
        };
        assert_eq!(
            styled.policy(),
            format!("default-src 'none'; style-src '{abc}'; {fixed}")
        );
        let scripted = AllowedContent {
            script: Some("abc"),
            ..AllowedContent::default()
        };
        assert_eq!(
            scripted.policy(),
            format!(
                "default-src 'none'; script-src '{abc}'; connect-src 'self'; style-src '{empty}'; {fixed}"
            )
        );
    }
}
