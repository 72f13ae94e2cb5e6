//! The page of an account: applications, a form for a new application, the account itself, and its deletion.

use super::{
    AccountSite, AccountView, FormProblem, ListedApplication,
    fields::{
        APPLICATION_FIELDS, CONFIRMATION, FinalStep, alert, application_fields, existing,
        open_form, optional_box, problem_of,
    },
    frame::{Frame, bdi, mail_link, notice, section},
    keys::active_keys,
    quota::{current, tier},
    webhooks::{WEBHOOK_URL, webhooks},
};
use crate::pages::{
    html::{date, link},
    paths::ACCOUNT,
};
use scoregate_store::NOTICES;

impl AccountSite {
    /// The page of an account.
    pub fn account(&self, view: &AccountView<'_>) -> String {
        let may_add = view.applications.len()
            < usize::try_from(self.applications_per_account).unwrap_or(usize::MAX);
        let at_creation = problem_of(view.problem, &APPLICATION_FIELDS).filter(|_| may_add);
        let at_webhooks = problem_of(view.problem, &[WEBHOOK_URL]);
        let at_deletion = problem_of(view.problem, &CONFIRMATION);
        let elsewhere = view.problem.filter(|_| {
            [at_creation, at_webhooks, at_deletion]
                .iter()
                .all(Option::is_none)
        });
        let creation = if may_add {
            new_application(view, at_creation)
        } else {
            limit_reached(self)
        };
        let body = format!(
            "<h1>Your account</h1>\n{}{}{}{creation}{}{}{}{}{}",
            notice(view.notice),
            alert(elsewhere),
            section(
                "applications",
                "Applications",
                &format!("{}{}", applications(view), upgrade(self))
            ),
            usage(),
            notices(view),
            webhooks(view, at_webhooks),
            account(view),
            deletion(view, at_deletion)
        );
        Frame {
            title: "Your account",
            current: ACCOUNT,
            body: &body,
        }
        .html(self)
    }
}

fn applications(view: &AccountView<'_>) -> String {
    if view.applications.is_empty() {
        return "<p>You have no applications yet. Create one to get a key.</p>\n".into();
    }
    let cards: String = view
        .applications
        .iter()
        .map(|listed| card(listed, view))
        .collect();
    format!("<ul class=\"cards\">\n{cards}</ul>\n")
}

fn card(listed: &ListedApplication<'_>, view: &AccountView<'_>) -> String {
    let application = listed.application;
    let keys = match active_keys(application, view.signed_in.now).count() {
        0 => "no active key".into(),
        1 => "1 active key".into(),
        count => format!("{count} active keys"),
    };
    format!(
        "<li class=\"card\">\n<h3><a href=\"/account/applications/{}\">{}</a> {}</h3>\n<p class=\"hint\">{keys}</p>\n{}</li>\n",
        application.id,
        bdi(&application.name),
        tier(&application.tier),
        current(&application.name, listed.usage.as_deref())
    )
}

/// A paragraph that says how to get higher limits.
fn upgrade(site: &AccountSite) -> String {
    if !site.plans.is_empty() {
        let plans: Vec<String> = site
            .plans
            .iter()
            .map(|(tier, url)| link(url, tier))
            .collect();
        return format!("<p>Need higher limits? Plans: {}.</p>\n", plans.join(", "));
    }
    match (&site.upgrade_url, &site.contact_email) {
        (Some(url), _) => {
            format!(
                "<p>Need higher limits? {}.</p>\n",
                link(url, "Upgrade to a higher tier")
            )
        }
        (None, Some(email)) => format!(
            "<p>Need higher limits? Write to {}.</p>\n",
            mail_link(email)
        ),
        (None, None) => String::new(),
    }
}

fn new_application(view: &AccountView<'_>, problem: Option<FormProblem<'_>>) -> String {
    let form = format!(
        "<p>Keys belong to an application. A new application comes with its first key, which is shown once.</p>\n{}{}{}{}\
         <p><button class=\"button\">Create application</button></p>\n</form>\n",
        alert(problem),
        open_form("/account/applications", view.signed_in.csrf),
        existing(view.signed_in.owner.applications.len()),
        application_fields(view.entered, problem)
    );
    section("new", "New application", &form)
}

fn limit_reached(site: &AccountSite) -> String {
    let allowed = match site.applications_per_account {
        1 => "one application".into(),
        count => format!("{count} applications"),
    };
    format!(
        "<p class=\"note\">An account may have {allowed}. To create another, close one first. If that one has used part of today's \
         quota, you can create another tomorrow, from 00:00 UTC.</p>\n"
    )
}

/// A form for the usage of a month.
fn usage() -> String {
    section(
        "usage",
        "Usage by month",
        "<p>The number of responses with data for each application and day, as CSV. A day is listed two days after it ends, \
         and for 92 days.</p>\n<form action=\"/account/usage\">\n<label for=\"month\">Month (UTC)</label>\n\
         <input id=\"month\" name=\"month\" placeholder=\"2026-11\" pattern=\"[0-9]{4}-[0-9]{2}\" required>\n\
         <p><button class=\"button\">Download</button></p>\n</form>\n",
    )
}

fn notices(view: &AccountView<'_>) -> String {
    let default = match view.signed_in.owner.notices {
        Some(_) => "",
        None => {
            "<p class=\"hint\">Until you save a choice, notices are sent only for applications in paid tiers.</p>\n"
        }
    };
    let form = format!(
        "<p>We send these to your email address.</p>\n{}{}{default}\
         <p><button class=\"button\">Save the choice</button></p>\n</form>\n",
        open_form("/account/notices", view.signed_in.csrf),
        NOTICES
            .iter()
            .map(|row| {
                let checked = if view.notices.contains(&row.kind) {
                    " checked"
                } else {
                    ""
                };
                optional_box(row.kind.word(), row.label, checked)
            })
            .collect::<String>()
    );
    section("notices", "Notices by email", &form)
}

fn account(view: &AccountView<'_>) -> String {
    let owner = view.signed_in.owner;
    let new_tier = owner
        .tier
        .as_deref()
        .map(|name| format!("<dt>Tier of new applications</dt><dd>{}</dd>\n", tier(name)));
    let content = format!(
        "<dl class=\"facts\">\n<dt>Email address</dt><dd>{}</dd>\n<dt>Created</dt><dd>{}</dd>\n{}\
         <dt>Terms of use</dt><dd>version {}, accepted {}</dd>\n</dl>\n{}\
         <p class=\"actions\"><button class=\"button quiet\">Sign out</button>\n\
         <button class=\"button quiet\" name=\"everywhere\" value=\"yes\">Sign out everywhere</button></p>\n</form>\n",
        bdi(&owner.email),
        date(owner.created_at),
        new_tier.unwrap_or_default(),
        bdi(owner.terms_version.as_deref().unwrap_or_default()),
        owner.terms_accepted_at.map(date).unwrap_or_default(),
        open_form("/account/sign-out", view.signed_in.csrf)
    );
    section("account", "Account", &content)
}

fn deletion(view: &AccountView<'_>, problem: Option<FormProblem<'_>>) -> String {
    let email = bdi(&view.signed_in.owner.email);
    let step = FinalStep {
        id: "delete",
        name: "Delete the account",
        consequences: &[
            "All keys of your applications stop working immediately.",
            "Your email address and the names, websites and contacts of your applications are removed.",
            "The audit trail is kept, without this personal data.",
            "If an application has used part of today's quota, a new account with your address can create an application tomorrow, from 00:00 UTC.",
            "To enforce this, a SHA-256 hash of your address is kept until then.",
            "This cannot be undone.",
        ],
        confirmation: &format!("Delete the account of {email} and all its applications."),
        action: "/account/delete",
        csrf: view.signed_in.csrf,
    };
    step.html(problem)
}
