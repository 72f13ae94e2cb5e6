//! The page of an application: its usage, keys, requests and fields, and a form to close it.

use super::{
    AccountSite, FormProblem, OwnedApplicationView,
    evidence_table::section as evidence,
    fields::{
        APPLICATION_FIELDS, CONFIRMATION, FinalStep, alert, application_fields, open_form,
        problem_of,
    },
    frame::{Frame, bdi, notice, section},
    keys::{KEY_FIELDS, section as keys},
    quota::{current, tier},
    usage_tables::section as requests,
};
use crate::pages::{
    html::{code, date},
    paths::ACCOUNT,
};

impl AccountSite {
    /// The page of an application.
    pub fn application(&self, view: &OwnedApplicationView<'_>) -> String {
        let at_edit = problem_of(view.problem, &APPLICATION_FIELDS);
        let at_closing = problem_of(view.problem, &CONFIRMATION);
        let is_elsewhere = at_edit.is_none()
            && at_closing.is_none()
            && problem_of(view.problem, &KEY_FIELDS).is_none();
        let name = &view.application.name;
        let body = format!(
            "<p class=\"up\"><a href=\"/account\">Your account</a></p>\n<h1>{}</h1>\n{}{}{}{}{}{}{}{}{}",
            bdi(name),
            notice(view.notice),
            alert(view.problem.filter(|_| is_elsewhere)),
            facts(view),
            section(
                "use",
                "Current usage",
                &current(name, view.usage.as_deref())
            ),
            keys(view),
            requests(view.requests, &view.days),
            evidence(view.evidence),
            edit(view, at_edit),
            closing(view, at_closing)
        );
        Frame {
            title: name,
            current: ACCOUNT,
            body: &body,
        }
        .html(self)
    }
}

fn facts(view: &OwnedApplicationView<'_>) -> String {
    let application = view.application;
    format!(
        "<dl class=\"facts\">\n<dt>Tier</dt><dd>{}</dd>\n<dt>Created</dt><dd>{}</dd>\n<dt>ID</dt><dd>{}</dd>\n</dl>\n",
        tier(&application.tier),
        date(application.created_at),
        code(&application.id.to_string())
    )
}

fn edit(view: &OwnedApplicationView<'_>, problem: Option<FormProblem<'_>>) -> String {
    let path = format!("/account/applications/{}", view.application.id);
    let form = format!(
        "{}{}{}<p><button class=\"button\">Save</button></p>\n</form>\n",
        alert(problem),
        open_form(&path, view.signed_in.csrf),
        application_fields(view.entered, problem)
    );
    section("edit", "Name and contact", &form)
}

fn closing(view: &OwnedApplicationView<'_>, problem: Option<FormProblem<'_>>) -> String {
    let step = FinalStep {
        id: "close",
        name: "Close the application",
        consequences: &[
            "All its keys stop working immediately.",
            "Its name, website and contact are removed.",
            "If it has used part of today's quota, you can create a replacement tomorrow, from 00:00 UTC.",
            "This cannot be undone.",
        ],
        confirmation: &format!("Close {}.", bdi(&view.application.name)),
        action: &format!("/account/applications/{}/close", view.application.id),
        csrf: view.signed_in.csrf,
    };
    step.html(problem)
}
