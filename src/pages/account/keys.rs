//! The keys of an application: their table, revoking one, creating one, and the page that shows a new one.

use super::fields::{EXISTING, alert, described, existing, hidden, open_form, problem_of};
use super::frame::{self, Frame, bdi};
use super::{AccountSite, FormProblem, IssuedKeyView, OwnedApplicationView};
use crate::clock::Wall;
use crate::pages::colour::CodeLanguage;
use crate::pages::html::{code_block, date, escape, stacking_table, time};
use crate::store::{StoredApplication, StoredKey};

/// The fields of the forms for keys.
pub(super) const KEY_FIELDS: [&str; 3] = ["key", "overlap", EXISTING];
/// Maximum number of keys that can no longer be used in the first table.
const FEW: usize = 3;
/// The store has only the hour of the last use.
const PRECISION: &str = "<p class=\"hint\">Last-used times are rounded down to the hour.</p>\n";
/// Choices for the existing keys when one is created, as sent and as shown.
const OVERLAPS: [(&str, &str); 4] = [
    ("none", "stop working immediately"),
    ("1h", "work for 1 more hour"),
    ("1d", "work for 1 more day"),
    ("7d", "work for 7 more days"),
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
            Self::Expiring(at) => format!("<span class=\"method\">active</span> expires {}", time(at)),
            Self::Expired(at) => format!("<span class=\"badge\">expired</span> {}", time(at)),
            Self::Revoked(at) => format!("<span class=\"badge\">revoked</span> {}", time(at)),
        }
    }
}

/// The keys that can be used.
pub(super) fn active_keys(application: &StoredApplication, now: Wall) -> impl Iterator<Item = &StoredKey> {
    application.keys.iter().filter(move |key| key.is_active(now))
}

/// The tables of the keys, newest first, and the form for a new one.
pub(super) fn section(view: &OwnedApplicationView<'_>) -> String {
    let now = view.signed_in.now;
    let newest_first = || view.application.keys.iter().rev();
    let (active, ended): (Vec<_>, Vec<_>) = newest_first().partition(|key| key.is_active(now));
    let (beside, apart) = if ended.len() > FEW { (&[][..], &ended[..]) } else { (&ended[..], &[][..]) };
    let problem = problem_of(view.problem, &KEY_FIELDS);
    let shown: Vec<&StoredKey> = active.iter().chain(beside).copied().collect();
    let first = if shown.is_empty() { String::new() } else { table("Keys", &shown, view) + PRECISION };
    let none = if active.is_empty() { "<p>No active keys.</p>\n" } else { "" };
    let rest = if apart.is_empty() {
        String::new()
    } else {
        format!(
            "<details>\n<summary>Revoked and expired keys ({})</summary>\n{}</details>\n",
            apart.len(),
            table("Revoked and expired keys", apart, view)
        )
    };
    let new = new_key(view, !active.is_empty(), problem);
    frame::section("keys", "Keys", &format!("{}{none}{first}{rest}{new}", alert(problem)))
}

fn table(name: &str, keys: &[&StoredKey], view: &OwnedApplicationView<'_>) -> String {
    let rows = keys.iter().map(|key| {
        let state = KeyState::of(key, view.signed_in.now);
        let used = key.last_used_at.map_or_else(|| "never".into(), time);
        vec![
            format!("<code>{}…</code>", escape(&key.shown)),
            state.html(),
            format!("{}{}", narrow("Created"), date(key.created_at)),
            format!("{}{used}", narrow("Last used")),
            if key.is_active(view.signed_in.now) { revocation(key, view) } else { String::new() },
        ]
    });
    stacking_table(name, &["Key", "State", "Created", "Last used", "Revoke"], rows)
}

/// The head of a column, for narrow screens, where the heads are hidden.
fn narrow(head: &str) -> String {
    format!("<span class=\"narrow\">{head}: </span>")
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

fn new_key(view: &OwnedApplicationView<'_>, has_active: bool, problem: Option<FormProblem<'_>>) -> String {
    let path = format!("/account/applications/{}/rotate", view.application.id);
    let form = open_form(&path, view.signed_in.csrf) + &existing(view.application.keys.len());
    if !has_active {
        return format!(
            "{form}{}<p><button class=\"button\">Create a key</button></p>\n</form>\n",
            hidden("overlap", "none")
        );
    }
    let option = |(value, label): &(&str, &str)| {
        let selected = if *value == DEFAULT_OVERLAP { " selected" } else { "" };
        format!("<option value=\"{value}\"{selected}>{label}</option>\n")
    };
    let options: String = OVERLAPS.iter().map(option).collect();
    format!(
        "<h3>New key</h3>\n<p>Replace your keys regularly, and immediately if one may have been exposed.</p>\n{form}\
         <p class=\"field\"><label for=\"field-overlap\">Existing keys</label>\n\
         <select id=\"field-overlap\" name=\"overlap\"{}>\n{options}</select>\n\
         <span class=\"hint\" id=\"hint-overlap\">Keys that expire sooner are not extended.</span></p>\n\
         <p><button class=\"button\">Create a new key</button></p>\n</form>\n",
        described("overlap", true, problem)
    )
}

/// The page with a new key.
pub(super) fn issued(site: &AccountSite, view: &IssuedKeyView<'_>) -> String {
    let older = view.others_end_at.map_or_else(String::new, |at| {
        if at > view.signed_in.now {
            format!("<p>The older keys work until {}. Replace them before then.</p>\n", time(at))
        } else {
            "<p>The older keys no longer work.</p>\n".into()
        }
    });
    let curl = format!(
        "curl -H {} {}",
        shell_word(&format!("Authorization: Bearer {}", view.key)),
        shell_word(&site.example_url)
    );
    let body = format!(
        "<h1>New key</h1>\n<p class=\"lede\">For {}.</p>\n\
         <p class=\"warning\"><strong>Copy the key now.</strong> It will not be shown again: the service stores only a \
         hash of it.</p>\n\
         <p class=\"issued\"><code>{}</code></p>\n<p class=\"hint\">Click the key to select all of it. Keep it secret: anyone who \
         has it can use your quota.</p>\n{older}\
         <h2>Try it</h2>\n<div class=\"example\">{}</div>\n\
         <p><a class=\"button\" href=\"/account/applications/{}\">I have copied the key</a></p>\n",
        bdi(&view.application.name),
        escape(view.key),
        code_block("A request with the new key", CodeLanguage::Hash, &curl),
        view.application.id
    );
    Frame { title: "New key", is_signed_in: true, body: &body }.html(site)
}

/// A text as one word of a POSIX shell.
fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Digest;

    #[test]
    fn a_key_is_active_until_it_expires_and_a_revoked_one_is_not() {
        let at = Wall::from_seconds;
        let key = |expires_at, revoked_at| StoredKey {
            digest: Digest::of("x"),
            shown: "x".into(),
            created_at: at(1),
            expires_at,
            revoked_at,
            last_used_at: None,
        };
        for (expires, revoked, expected) in [
            (None, None, KeyState::Active),
            (Some(at(10)), None, KeyState::Expired(at(10))),
            (Some(at(11)), None, KeyState::Expiring(at(11))),
            (Some(at(11)), Some(at(5)), KeyState::Revoked(at(5))),
        ] {
            let key = key(expires, revoked);
            assert_eq!(KeyState::of(&key, at(10)), expected);
            assert_eq!(key.is_active(at(10)), matches!(expected, KeyState::Active | KeyState::Expiring(_)));
        }
    }

    #[test]
    fn a_quote_does_not_end_a_word_of_the_shell() {
        assert_eq!(shell_word("a'b; c"), "'a'\\''b; c'");
    }
}
