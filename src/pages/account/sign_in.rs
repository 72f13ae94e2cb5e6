//! Signing in and signing up with a link that is sent by email.

use super::{
    AccountSite, FormProblem, LinkForm, SignInForm, SignedIn,
    fields::{TextField, alert, checkbox, hidden, open_form, problem_of},
    frame::{Frame, bdi, notice},
};
use crate::pages::{
    html::{escape, link as anchor},
    paths::{ACCOUNT, ACCOUNT_SIGN_IN as SIGN_IN},
};

const CONFIRM: &str = "/account/confirm";

const HOW_LINKS_WORK: &str = "The link works once and expires in 15 minutes. There is no password.";

impl AccountSite {
    /// The page with the form for an email address, for signing up and signing in.
    pub fn sign_in(&self, form: &SignInForm<'_>) -> String {
        let email = TextField {
            name: "email",
            label: "Email address",
            hint: "",
            kind: "type=\"email\" maxlength=\"254\" autocomplete=\"email\" required",
            value: form.email,
        };
        let body = format!(
            "<h1>Sign in or sign up</h1>\n{}<p class=\"lede\">Enter your email address. We will send you a link \
             to sign in. If you do not have an account, the link creates one. Accounts and keys are free.</p>\n\
             {}{}{}<p><button class=\"button\">Send the link</button></p>\n</form>\n\
             <p class=\"note\">{HOW_LINKS_WORK}</p>\n",
            notice(form.notice),
            alert(form.problem),
            open_form(SIGN_IN, form.csrf),
            email.html(form.problem)
        );
        Frame {
            title: "Sign in or sign up",
            current: SIGN_IN,
            body: &body,
        }
        .html(self)
    }

    /// The page that is shown after the email address was submitted.
    pub fn link_sent(&self, email: &str) -> String {
        let body = format!(
            "<h1>Check your email</h1>\n<p class=\"lede\">To continue, open the link we send to {}.</p>\n\
             <p>{HOW_LINKS_WORK}</p>\n<ul>\n<li>Nothing has arrived after a few minutes? Check your spam folder. \
             We limit how many links we send to one address.</li>\n\
             <li>Wrong address? {}.</li>\n</ul>\n",
            bdi(email),
            anchor(SIGN_IN, "Enter it again")
        );
        Frame {
            title: "Check your email",
            current: SIGN_IN,
            body: &body,
        }
        .html(self)
    }

    /// The page to which an email link leads.
    pub fn link(&self, form: &LinkForm<'_>) -> String {
        let (title, button) = if form.is_new {
            ("Create your account", "Create account")
        } else {
            ("Sign in", "Sign in")
        };
        let intent = if form.is_new {
            "Your account will have the address"
        } else {
            "You are signing in as"
        };
        let terms = if form.needs_terms {
            terms(self, form)
        } else {
            String::new()
        };
        let stop = if form.is_invited {
            "\n<button class=\"button quiet\" name=\"stop\" value=\"yes\" formnovalidate>Stop all mail to this address</button>"
        } else {
            ""
        };
        let body = format!(
            "<h1>{title}</h1>\n<p class=\"lede\">{intent} {}.</p>\n{}{}{}{terms}<p class=\"actions\"><button class=\"button\">{button}</button>{stop}</p>\n\
             </form>\n<p class=\"note\">Pressing the button uses up the link. If the address is not yours, close this page.</p>\n",
            bdi(form.email),
            alert(form.problem),
            open_form(CONFIRM, form.csrf),
            hidden("token", form.token)
        );
        Frame {
            title,
            current: SIGN_IN,
            body: &body,
        }
        .html(self)
    }
}

/// The terms, with the checkbox that accepts them.
fn terms(site: &AccountSite, form: &LinkForm<'_>) -> String {
    let changed = if form.is_new {
        ""
    } else {
        "<p>They have changed since you accepted them.</p>\n"
    };
    let items = site
        .terms
        .iter()
        .map(|term| format!("<li dir=\"auto\">{}</li>\n", escape(term)));
    let items: Vec<String> = items.collect();
    let complete = site.terms_url.as_deref().map_or_else(String::new, |url| {
        format!(
            "<p>Read the full {}.</p>\n",
            anchor(url, "terms of service")
        )
    });
    let problem: Option<FormProblem<'_>> = problem_of(form.problem, &["accept_terms"]);
    let label = format!(
        "I accept the terms of use (version {}).",
        bdi(&site.terms_version)
    );
    format!(
        "<h2>Terms of use</h2>\n{changed}<ol>\n{}</ol>\n{complete}{}{}",
        items.concat(),
        hidden("terms_version", &site.terms_version),
        checkbox("accept_terms", &label, problem)
    )
}

impl AccountSite {
    /// The page that asks to sign in again before a step that cannot be undone.
    pub fn sign_in_again(&self, signed_in: &SignedIn<'_>) -> String {
        let body = format!(
            "<h1>Sign in again</h1>\n<p class=\"lede\">This step cannot be undone, and you signed in more than 15 minutes ago. \
             To continue, sign in again. We will send a link to {}.</p>\n<p>{HOW_LINKS_WORK} Then repeat the step. Nothing has \
             been changed.</p>\n{}{}<p class=\"actions\"><button class=\"button\">Send the link</button> {}</p>\n</form>\n",
            bdi(&signed_in.owner.email),
            open_form(SIGN_IN, signed_in.csrf),
            hidden("email", &signed_in.owner.email),
            "<a class=\"button quiet\" href=\"/account\">Cancel</a>"
        );
        Frame {
            title: "Sign in again",
            current: ACCOUNT,
            body: &body,
        }
        .html(self)
    }
}
