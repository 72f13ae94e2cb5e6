//! Forms and their fields, including the problem with a submitted form.

use super::{ApplicationFields, FormProblem, frame::section};
use crate::pages::html::escape;

/// The hidden field with the number of existing keys or applications, in forms that create a key or an application.
pub const EXISTING: &str = "existing";

/// Names of the fields of an application.
pub const APPLICATION_FIELDS: [&str; 4] = ["name", "url", "contact", EXISTING];

/// Names of the fields of a step that cannot be undone.
pub const CONFIRMATION: [&str; 1] = ["confirm"];

/// Whether owners enter a column of the description. Operators enter the other columns.
pub fn is_entered_by_owners(column: &str) -> bool {
    APPLICATION_FIELDS.contains(&column)
}

pub struct TextField<'a> {
    pub name: &'static str,
    pub label: &'static str,
    pub hint: &'static str,
    /// The HTML attributes for the kind of the field.
    pub kind: &'static str,
    pub value: &'a str,
}

/// A step that cannot be undone, with its consequences and the form that confirms it. The texts are HTML.
pub struct FinalStep<'a> {
    pub id: &'static str,
    pub name: &'static str,
    pub consequences: &'a [&'static str],
    /// The label of the checkbox.
    pub confirmation: &'a str,
    pub action: &'a str,
    pub csrf: &'a str,
}

/// The beginning of a form. `action` is a path of this service.
pub fn open_form(action: &str, csrf: &str) -> String {
    format!(
        "<form method=\"post\" action=\"{}\">\n{}",
        escape(action),
        hidden("csrf", csrf)
    )
}

/// The hidden field with the number of existing keys or applications.
pub fn existing(count: usize) -> String {
    hidden(EXISTING, &count.to_string())
}

pub fn hidden(name: &str, value: &str) -> String {
    format!(
        "<input type=\"hidden\" name=\"{name}\" value=\"{}\">\n",
        escape(value)
    )
}

/// The problem, if it concerns one of these fields.
pub fn problem_of<'a>(
    problem: Option<FormProblem<'a>>,
    fields: &[&str],
) -> Option<FormProblem<'a>> {
    problem.filter(|problem| problem.field.is_some_and(|field| fields.contains(&field)))
}

/// The problem as a message above a form.
pub fn alert(problem: Option<FormProblem<'_>>) -> String {
    problem.map_or_else(String::new, |problem| {
        let message = escape(problem.message);
        format!("<p class=\"problem\" role=\"alert\" id=\"problem\" dir=\"auto\">{message}</p>\n")
    })
}

impl TextField<'_> {
    pub fn html(&self, problem: Option<FormProblem<'_>>) -> String {
        let name = self.name;
        let value = escape(self.value);
        let has_hint = !self.hint.is_empty();
        let hint = format!(
            "\n<span class=\"hint\" id=\"hint-{name}\">{}</span>",
            self.hint
        );
        format!(
            "<p class=\"field\"><label for=\"field-{name}\">{}</label>\n\
             <input id=\"field-{name}\" name=\"{name}\" value=\"{value}\" {} dir=\"auto\"{}>{}</p>\n",
            self.label,
            self.kind,
            described(name, has_hint, problem),
            if has_hint { &hint } else { "" }
        )
    }
}

/// A checkbox that must be checked. The label is HTML.
pub fn checkbox(name: &str, label: &str, problem: Option<FormProblem<'_>>) -> String {
    optional_box(
        name,
        label,
        &format!(" required{}", described(name, false, problem)),
    )
}

/// A checkbox with additional attributes. The label is HTML.
pub fn optional_box(name: &str, label: &str, attributes: &str) -> String {
    format!(
        "<p class=\"check\"><input type=\"checkbox\" id=\"field-{name}\" name=\"{name}\" value=\"yes\"{attributes}>\n\
         <label for=\"field-{name}\">{label}</label></p>\n"
    )
}

impl FinalStep<'_> {
    /// The step as a section. It is open if there is a problem with the step.
    pub fn html(&self, problem: Option<FormProblem<'_>>) -> String {
        let open = if problem.is_some() { " open" } else { "" };
        let consequences = self.consequences.join("</li>\n<li>");
        let content = format!(
            "<details class=\"danger\"{open}>\n<summary>{0}…</summary>\n<ul>\n<li>{consequences}</li>\n</ul>\n{1}{2}{3}\
             <p><button class=\"button danger\">{0}</button></p>\n</form>\n</details>\n",
            self.name,
            alert(problem),
            open_form(self.action, self.csrf),
            checkbox("confirm", self.confirmation, problem)
        );
        section(self.id, self.name, &content)
    }
}

/// The attributes that relate a field to its hint and its problem.
pub fn described(name: &str, has_hint: bool, problem: Option<FormProblem<'_>>) -> String {
    let is_wrong = problem.is_some_and(|problem| problem.field == Some(name));
    let by = [
        is_wrong.then(|| "problem".to_owned()),
        has_hint.then(|| format!("hint-{name}")),
    ];
    let by: Vec<String> = by.into_iter().flatten().collect();
    let invalid = if is_wrong {
        " aria-invalid=\"true\""
    } else {
        ""
    };
    if by.is_empty() {
        String::new()
    } else {
        format!("{invalid} aria-describedby=\"{}\"", by.join(" "))
    }
}

pub fn application_fields(entered: &ApplicationFields, problem: Option<FormProblem<'_>>) -> String {
    let fields = [
        TextField {
            name: "name",
            label: "Name",
            hint: "",
            kind: "type=\"text\" maxlength=\"200\" autocomplete=\"off\" required",
            value: &entered.name,
        },
        TextField {
            name: "url",
            label: "Website (optional)",
            hint: "Must start with <code>https://</code> or <code>http://</code>.",
            kind: "type=\"url\" maxlength=\"200\" autocomplete=\"url\"",
            value: text(entered.description.url.as_ref()),
        },
        TextField {
            name: "contact",
            label: "Contact (optional)",
            hint: "How we can reach the people who run the application, such as an email address.",
            kind: "type=\"text\" maxlength=\"200\" autocomplete=\"off\"",
            value: text(entered.description.contact.as_ref()),
        },
    ];
    fields.iter().map(|field| field.html(problem)).collect()
}

fn text(column: Option<&String>) -> &str {
    column.map_or("", String::as_str)
}
