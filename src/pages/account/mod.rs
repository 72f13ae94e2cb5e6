//! The account pages as HTML: signing in, applications, keys and usage. Pure: `site` collects the contents. All text
//! that people entered is escaped.
//!
//! The pages work without JavaScript. Only the page that shows a new key has a script, which copies the key. The pages
//! load only the icon. `site` handles their paths and fields.

mod account_site;
mod application;
mod evidence_table;
mod fields;
mod frame;
mod keys;
mod overview;
mod quota;
mod sign_in;
mod usage_chart;
mod usage_tables;
mod views;
mod webhooks;

pub use account_site::{
    AccountSite, COPY_SCRIPT, STYLE, content_security_policy, policy_with_script,
};
pub use fields::{EXISTING, is_entered_by_owners};
pub use keys::{KEY_NAME, NEW_NAME, OVERLAP, REPLACE};
pub use views::{
    AccountView, ApplicationFields, FormProblem, IssuedKeyView, KeyFields, LinkForm,
    ListedApplication, MessagePage, OwnedApplicationView, SignInForm, SignedIn,
};
pub use webhooks::{ROTATED_AT, WEBHOOK, WEBHOOK_STEP, WEBHOOK_URL, last_rotation};

#[cfg(test)]
mod tests;
