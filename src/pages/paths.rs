//! Paths of the pages.

pub(super) const DOCS: &str = "/docs";
pub(super) const OPENAPI: &str = "/openapi.json";
pub(super) const STATUS: &str = "/status";
/// Paths of accounts begin with this.
pub(super) const ACCOUNT: &str = "/account";
pub(super) const ACCOUNT_SIGN_IN: &str = "/account/sign-in";
