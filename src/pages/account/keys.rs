//! The keys of an application: the table of keys, forms to add a key, revoke a key, cancel an expiry and replace all
//! keys, and the page that shows a new key.

use super::{
    AccountSite, COPY_SCRIPT, FormProblem, IssuedKeyView, OwnedApplicationView,
    fields::{TextField, alert, checkbox, described, existing, hidden, open_form, problem_of},
    frame::{self, Frame, bdi},
};
use crate::pages::{
    html::{code_block, date, escape, stacking_table, time},
    paths::ACCOUNT,
};
use scoregate_base::clock::Wall;
use scoregate_store::{StoredApplication, StoredKey};

/// The field with the name of a key that is added.
pub const KEY_NAME: &str = "key_name";
/// The field with the name of a key that replaces others.
pub const NEW_NAME: &str = "new_name";
/// The field that says when the replaced keys expire.
pub const OVERLAP: &str = "overlap";
/// The checkbox that confirms the replacement of keys.
pub const REPLACE: &str = "replace";
/// The fields of the forms for keys.
pub const KEY_FIELDS: [&str; 5] = ["key", KEY_NAME, NEW_NAME, OVERLAP, REPLACE];
/// Maximum number of revoked and expired keys in the first table.
const FEW: usize = 3;
/// Note on the precision of last-used times. The store records only the hour.
const PRECISION: &str = "<p class=\"hint\">Last-used times are rounded down to the hour.</p>\n";
/// Choices for when replaced keys expire, each with the value that is sent and the text that is shown.
const OVERLAPS: [(&str, &str); 4] = [
    ("none", "stop working immediately"),
    ("1h", "expire in 1 hour"),
    ("1d", "expire in 1 day"),
    ("7d", "expire in 7 days"),
];
const DEFAULT_OVERLAP: &str = "1d";

/// Whether a key can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyState {
    Active,
    Expiring(Wall),
    Expired(Wall),
    Revoked(Wall),
}

impl KeyState {
    fn of(key: &StoredKey, now: Wall) -> Self {
        match (key.revoked_at, key.expires_at) {
            (Some(at), _) => Self::Revoked(at),
            (None, Some(at)) if at <= now => Self::Expired(at),
            (None, Some(at)) => Self::Expiring(at),
            (None, None) => Self::Active,
        }
    }

    fn html(self) -> String {
        match self {
            Self::Active => "<span class=\"method\">active</span>".into(),
            Self::Expiring(at) => {
                format!("<span class=\"method\">active</span> expires {}", time(at))
            }
            Self::Expired(at) => format!("<span class=\"badge\">expired</span> {}", time(at)),
            Self::Revoked(at) => format!("<span class=\"badge\">revoked</span> {}", time(at)),
        }
    }
}

/// The keys of an application that can still be used.
pub fn active_keys(application: &StoredApplication, now: Wall) -> impl Iterator<Item = &StoredKey> {
    application
        .keys
        .iter()
        .filter(move |key| key.is_active(now))
}

/// The tables of keys, newest first, and the forms for a new key.
pub fn section(view: &OwnedApplicationView<'_>) -> String {
    let now = view.signed_in.now;
    let newest_first = || view.application.keys.iter().rev();
    let (active, ended): (Vec<_>, Vec<_>) = newest_first().partition(|key| key.is_active(now));
    let (beside, apart) = if ended.len() > FEW {
        (&[][..], &ended[..])
    } else {
        (&ended[..], &[][..])
    };
    let problem = problem_of(view.problem, &KEY_FIELDS);
    let shown: Vec<&StoredKey> = active.iter().chain(beside).copied().collect();
    let first = if shown.is_empty() {
        String::new()
    } else {
        table("Keys", &shown, view) + PRECISION
    };
    let none = if active.is_empty() {
        "<p>No active keys.</p>\n"
    } else {
        ""
    };
    let rest = if apart.is_empty() {
        String::new()
    } else {
        format!(
            "<details>\n<summary>Revoked and expired keys ({})</summary>\n{}</details>\n",
            apart.len(),
            table("Revoked and expired keys", apart, view)
        )
    };
    let new = addition(view, problem) + &replacement(view, &active, problem);
    frame::section(
        "keys",
        "Keys",
        &format!("{}{none}{first}{rest}{new}", alert(problem)),
    )
}

fn table(name: &str, keys: &[&StoredKey], view: &OwnedApplicationView<'_>) -> String {
    let rows = keys.iter().map(|key| {
        let state = KeyState::of(key, view.signed_in.now);
        let used = key.last_used_at.map_or_else(|| "never".into(), time);
        vec![
            label(key),
            state.html()
                + &if let KeyState::Expiring(_) = state {
                    keeping(key, view)
                } else {
                    String::new()
                },
            format!("{}{}", narrow("Created"), date(key.created_at)),
            format!("{}{used}", narrow("Last used")),
            if key.is_active(view.signed_in.now) {
                revocation(key, view)
            } else {
                String::new()
            },
        ]
    });
    stacking_table(
        name,
        &["Key", "State", "Created", "Last used", "Revoke"],
        rows,
    )
}

/// The heading of a column, inside a cell, for narrow screens on which the table head is hidden.
fn narrow(head: &str) -> String {
    format!("<span class=\"narrow\">{head}: </span>")
}

/// The first characters of a key and the key's name.
fn label(key: &StoredKey) -> String {
    let name = key
        .name
        .as_deref()
        .map(|name| format!(" {}", bdi(name)))
        .unwrap_or_default();
    format!("<code>{}…</code>{name}", escape(&key.shown))
}

fn keeping(key: &StoredKey, view: &OwnedApplicationView<'_>) -> String {
    let path = format!("/account/applications/{}/keep", view.application.id);
    format!(
        "\n{}{}<button class=\"button quiet\">Cancel expiry<span class=\"unseen\"> of {}</span></button>\n</form>",
        open_form(&path, view.signed_in.csrf),
        hidden("key", &key.digest.to_string()),
        escape(&key.shown)
    )
}

fn revocation(key: &StoredKey, view: &OwnedApplicationView<'_>) -> String {
    let shown = escape(&key.shown);
    let path = format!("/account/applications/{}/revoke", view.application.id);
    format!(
        "<details>\n<summary>Revoke…<span class=\"unseen\"> {shown}</span></summary>\n\
         <p>Requests with this key are refused immediately. This cannot be undone.</p>\n{}{}\
         <button class=\"button danger\">Revoke key<span class=\"unseen\"> {shown}</span></button>\n</form>\n</details>",
        open_form(&path, view.signed_in.csrf),
        hidden("key", &key.digest.to_string())
    )
}

fn name_field(name: &'static str, value: &str, problem: Option<FormProblem<'_>>) -> String {
    let field = TextField {
        name,
        label: "Name of the new key (optional)",
        hint: "Helps to distinguish keys: for example, the program or machine that uses the key.",
        kind: "type=\"text\" maxlength=\"200\" autocomplete=\"off\"",
        value,
    };
    field.html(problem)
}

/// The form that adds a key.
fn addition(view: &OwnedApplicationView<'_>, problem: Option<FormProblem<'_>>) -> String {
    let path = format!("/account/applications/{}/keys", view.application.id);
    format!(
        "<h3>Add a key</h3>\n<p>Existing keys are not affected.</p>\n{}{}{}\
         <p><button class=\"button\">Add a key</button></p>\n</form>\n",
        open_form(&path, view.signed_in.csrf),
        existing(view.application.keys.len()),
        name_field(KEY_NAME, view.entered_keys.key_name, problem)
    )
}

/// The form that replaces the active keys, which it lists.
fn replacement(
    view: &OwnedApplicationView<'_>,
    active: &[&StoredKey],
    problem: Option<FormProblem<'_>>,
) -> String {
    if active.is_empty() {
        return String::new();
    }
    let path = format!("/account/applications/{}/rotate", view.application.id);
    let open = if problem_of(problem, &[NEW_NAME, OVERLAP, REPLACE]).is_some() {
        " open"
    } else {
        ""
    };
    let entered = view.entered_keys.overlap;
    let is_choice = OVERLAPS.iter().any(|(value, _)| *value == entered);
    let chosen = if is_choice { entered } else { DEFAULT_OVERLAP };
    let ending = active
        .iter()
        .map(|key| label(key))
        .collect::<Vec<_>>()
        .join("</li>\n<li>");
    format!(
        "<details class=\"replacement\"{open}>\n<summary>Replace all keys…</summary>\n\
         <p>Replace your keys regularly, and immediately if one may have been exposed. A new key is created, and these keys stop \
         working:</p>\n<ul>\n<li>{ending}</li>\n</ul>\n{}{}{}\
         <p class=\"field\"><label for=\"field-overlap\">The existing keys</label>\n\
         <select id=\"field-overlap\" name=\"overlap\"{}>\n{}</select>\n\
         <span class=\"hint\" id=\"hint-overlap\">Keys that expire sooner are not extended. An expiry can be cancelled until it \
         has passed.</span></p>\n{}\
         <p><button class=\"button\">Replace all keys</button></p>\n</form>\n</details>\n",
        open_form(&path, view.signed_in.csrf),
        existing(view.application.keys.len()),
        name_field(NEW_NAME, view.entered_keys.new_name, problem),
        described(OVERLAP, true, problem),
        OVERLAPS
            .iter()
            .map(|(value, label)| {
                let selected = if *value == chosen { " selected" } else { "" };
                format!("<option value=\"{value}\"{selected}>{label}</option>\n")
            })
            .collect::<String>(),
        checkbox(
            REPLACE,
            "The keys listed above stop working at that time.",
            problem
        )
    )
}

impl AccountSite {
    /// The page that shows a new key.
    pub fn issued_key(&self, view: &IssuedKeyView<'_>) -> String {
        let older = view.others_end_at.map_or_else(String::new, |at| {
            if at > view.signed_in.now {
                format!(
                    "<p>The older keys work until {}. Replace them before then.</p>\n",
                    time(at)
                )
            } else {
                "<p>The older keys no longer work.</p>\n".into()
            }
        });
        let curl = format!(
            "curl -H {} {}",
            shell_word(&format!("Authorization: Bearer {}", view.key)),
            shell_word(&self.example_url)
        );
        let body = format!(
            "<h1>New key</h1>\n<p class=\"lede\">For {}.</p>\n\
             <p class=\"warning\"><strong>Copy the key now.</strong> It will not be shown again: the service stores only a \
             hash of it.</p>\n\
             <p class=\"issued\"><code id=\"new-key\">{}</code></p>\n<p class=\"hint\">Click the key to select all of it. Keep it secret: \
             anyone who has it can use your quota.</p>\n{}{older}\
             <h2>Try it</h2>\n<div class=\"example\" id=\"new-command\">{}</div>\n{}\
             <p id=\"copied\" role=\"status\"></p>\n\
             <p><a class=\"button\" href=\"/account/applications/{}\">I have copied the key</a></p>\n\
             <script>{COPY_SCRIPT}</script>\n",
            bdi(&view.application.name),
            escape(view.key),
            copy_button("new-key", "Copy the key", "The key is copied."),
            code_block("A request with the new key", &curl),
            copy_button("new-command", "Copy the command", "The command is copied."),
            view.application.id
        );
        Frame {
            title: "New key",
            current: ACCOUNT,
            body: &body,
        }
        .html(self)
    }
}

/// A button that copies the text of an element. The script makes the button visible.
fn copy_button(of: &str, name: &str, done: &str) -> String {
    format!(
        "<p><button type=\"button\" class=\"button quiet\" data-copy=\"{of}\" data-done=\"{done}\" hidden>{name}</button></p>\n"
    )
}

/// Quotes a string as one word for a POSIX shell.
fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use scoregate_store::sample;

    #[test]
    fn a_key_is_active_until_it_expires_and_a_revoked_one_is_not() {
        let at = Wall::from_seconds;
        let key = |expires_at, revoked_at| StoredKey {
            expires_at,
            revoked_at,
            ..sample::key("x")
        };
        for (expires, revoked, expected) in [
            (None, None, KeyState::Active),
            (Some(at(10)), None, KeyState::Expired(at(10))),
            (Some(at(11)), None, KeyState::Expiring(at(11))),
            (Some(at(11)), Some(at(5)), KeyState::Revoked(at(5))),
        ] {
            let key = key(expires, revoked);
            assert_eq!(KeyState::of(&key, at(10)), expected);
            assert_eq!(
                key.is_active(at(10)),
                matches!(expected, KeyState::Active | KeyState::Expiring(_))
            );
        }
    }

    #[test]
    fn a_quote_does_not_end_a_word_of_the_shell() {
        assert_eq!(shell_word("a'b; c"), "'a'\\''b; c'");
    }
}
