//! The text of a secret.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use zeroize::Zeroizing;

/// Text that only [`Secret::expose`] returns.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps the text.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// A new token: 256 random bits in base64url.
    pub fn mint() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self::new(BASE64URL_NOPAD.encode(&bytes)))
    }

    /// The text itself. The caller is responsible for its use.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print_itself() {
        assert_eq!(
            format!("{:?}", Some(Secret::new("sg_live_x".into()))),
            "Some([secret])"
        );
    }
}
