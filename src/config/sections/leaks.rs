//! Reads `leaks.*`: the receiver of leak reports.

use std::path::PathBuf;

use crate::{
    leaks::{LeakConfig, PublishedKeys, SignerSource},
    registry::LeakAction,
};

use super::site::url;
use crate::config::{ConfigProblems, config_reader::ConfigReader};

const PUBLIC_KEYS: &str = "leaks.public_keys";

/// Reads the settings of the receiver. `None` if it is disabled.
pub(in crate::config) fn read(reading: &mut ConfigReader<'_>) -> Option<LeakConfig> {
    let action = LeakAction::parse(&reading.get::<String>("leaks.action"));
    let keys: String = reading.optional(PUBLIC_KEYS)?;
    let signers = if keys.contains("://") {
        SignerSource::Address(url(reading, PUBLIC_KEYS)?.parse().ok()?)
    } else {
        SignerSource::File(PathBuf::from(keys))
    };
    Some(LeakConfig {
        signers,
        action: action?,
    })
}

/// Reads the list of public keys into `keys`, if it is in a file. Blocks.
pub fn read_public_keys(
    signers: &SignerSource,
    keys: &PublishedKeys,
) -> Result<(), ConfigProblems> {
    signers
        .read_file(keys)
        .map_err(|reason| ConfigProblems::one(PUBLIC_KEYS, None, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::accepted;

    #[test]
    fn the_receiver_is_on_with_the_keys_in_a_file_or_at_a_url() {
        assert!(accepted("leaks.action = \"expire\"").leaks.is_none());
        let file = accepted("leaks.public_keys = \"keys.json\"").leaks.unwrap();
        assert_eq!(
            (file.signers, file.action),
            (SignerSource::File("keys.json".into()), LeakAction::Revoke)
        );
        let text =
            "leaks.public_keys = \"https://api.example.org/keys\"\nleaks.action = \"expire\"";
        let address = accepted(text).leaks.unwrap();
        assert_eq!(address.action, LeakAction::Expire);
        assert!(
            matches!(address.signers, SignerSource::Address(uri) if uri.host() == Some("api.example.org"))
        );
        let missing = SignerSource::File("/nowhere/keys.json".into());
        let problem = read_public_keys(&missing, &PublishedKeys::default())
            .unwrap_err()
            .to_string();
        assert!(
            problem.starts_with("leaks.public_keys: ") && problem.contains("/nowhere/keys.json"),
            "{problem}"
        );
    }
}
