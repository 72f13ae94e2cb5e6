//! API keys (the format of a key and its digest), and the texts that describe an application.
//!
//! The code is pure. Keys are stored in `store` and looked up in `gateway::stages::authenticate`.

mod digest;
mod form;
mod ids;
mod printable_text;
mod website;

pub use digest::Digest;
pub use form::{KeyForm, SHOWN_CHARACTERS, shown_prefix};
pub use ids::{ApplicationId, BadId, BadOwnerId, OwnerId};
pub use printable_text::{BadText, TextFlaw, check_text, checked_message};
pub use website::{BadWebsite, check_web_address, check_website};
