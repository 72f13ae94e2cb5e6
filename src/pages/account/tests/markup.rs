//! Tests the markup of all account pages: escaping, policy, forms, labels, headings.

use std::collections::HashSet;

use data_encoding::BASE64;
use sha2::{Digest as _, Sha256};

use super::*;

/// The problems that the tested pages show: one without a field, and one for each field.
fn problems() -> Vec<Option<&'static str>> {
    let fields = [
        "email",
        "accept_terms",
        "name",
        "url",
        "contact",
        "confirm",
        "overlap",
        "key",
        "key_name",
        "new_name",
        "replace",
        "webhook_url",
    ];
    [None].into_iter().chain(fields.map(Some)).collect()
}

/// All pages, with ordinary and hostile values and with each problem.
fn all_pages() -> Vec<(&'static str, String)> {
    let mut pages = Shown::ordinary().pages();
    for text in [HOSTILE, &"\u{1f9ea}W".repeat(100), ""] {
        for field in problems() {
            let mut shown = Shown::of(text);
            shown.problem = Some((field, text.to_owned()));
            pages.extend(shown.pages());
        }
    }
    pages
}

#[test]
fn pages_contain_no_script_of_others_and_no_inline_style_whatever_people_enter() {
    for (name, html) in all_pages() {
        assert_eq!(html.matches("<style>").count(), 1, "{name}");
        assert_eq!(
            html.matches("<script").count(),
            usize::from(name == "issued"),
            "{name}"
        );
        for tag in tags(&html) {
            assert!(!tag.starts_with("iframe"), "{name}: <{tag}>");
            assert!(
                !tag.starts_with("script") || (name == "issued" && tag == "script"),
                "{name}: <{tag}>"
            );
            for (attribute, value) in attributes(tag) {
                assert!(
                    attribute != "style" && !attribute.starts_with("on"),
                    "{name}: <{tag}>"
                );
                assert!(!value.contains('<'), "{name}: <{tag}>");
            }
        }
    }
}

#[test]
fn texts_are_escaped_and_none_is_taken_for_a_placeholder() {
    let escaped = "&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&#39; onload=&#39;x&#39; style=&#39;y&#39; {{csrf}} &amp;amp; ";
    for (name, html) in Shown::of(HOSTILE).pages() {
        assert!(html.contains(escaped), "{name}: {html}");
        assert_eq!(
            html.matches("{{").count(),
            html.matches("{{csrf}}").count(),
            "{name}"
        );
        assert!(
            !html.contains("{{csrf}} & ") && !html.contains(&format!("{CSRF} &amp;")),
            "{name}"
        );
    }
    for (name, html) in Shown::ordinary().pages() {
        assert!(!html.contains("{{"), "{name}: {html}");
    }
}

#[test]
fn the_policy_allows_the_style_sheet_of_every_page_and_the_script() {
    for (name, html) in Shown::ordinary().pages() {
        // Browsers hash the text between the tags.
        let style = html
            .split_once("<style>")
            .unwrap()
            .1
            .split_once("</style>")
            .unwrap()
            .0;
        let script = html
            .split_once("<script>")
            .map(|(_, rest)| rest.split_once("</script>").unwrap().0);
        let hash = |text: &str| BASE64.encode(&Sha256::digest(text.as_bytes()));
        let allowed = |text| format!("script-src 'sha256-{}'; connect-src 'self'; ", hash(text));
        let expected = format!(
            "default-src 'none'; {}style-src 'sha256-{}'; img-src 'self'; form-action 'self'; base-uri 'none'; \
             frame-ancestors 'none'",
            script.map(allowed).unwrap_or_default(),
            hash(style)
        );
        let policy = if name == "issued" {
            policy_with_script()
        } else {
            content_security_policy()
        };
        assert_eq!(policy, expected, "{name}");
    }
    // The script contains no character that could start a tag. The tests of tags rely on this.
    assert!(!COPY_SCRIPT.contains('<'));
    // The style sheet loads nothing.
    assert!(!STYLE.contains("url(") && !STYLE.contains("@import") && !STYLE.contains('<'));
}

#[test]
fn forms_are_sent_to_this_service_with_their_csrf_token() {
    let mut seen = HashSet::new();
    for (name, html) in all_pages() {
        // The first form is the search in the header.
        for form in html.split("<form ").skip(2) {
            let form = form.split_once("</form>").unwrap().0;
            let (tag, content) = form.split_once('>').unwrap();
            let action = attribute(tag, "action").unwrap();
            if action == "/account/usage" {
                // The form downloads a file and changes nothing.
                assert!(attribute(tag, "method").is_none() && !content.contains(CSRF));
                continue;
            }
            assert_eq!(attribute(tag, "method"), Some("post"), "{name}");
            let token = format!("<input type=\"hidden\" name=\"csrf\" value=\"{CSRF}\">");
            assert_eq!(content.matches(&token).count(), 1, "{name}: {action}");
            let buttons = match action {
                "/account/sign-out" => 2,
                "/account/confirm" => 1 + content.matches("name=\"stop\"").count(),
                "/account/webhooks" => content.matches("name=\"step\"").count().max(1),
                _ => 1,
            };
            assert_eq!(content.matches("<button").count(), buttons);
            let content = format!("</style>{content}");
            let names = tags(&content)
                .into_iter()
                .filter_map(|tag| attribute(tag, "name"));
            seen.insert(format!("{action} {}", names.collect::<Vec<_>>().join(" ")));
        }
    }
    let app = "/account/applications/app_0Ab3dEf7hIj";
    let expected = [
        "/account/sign-in csrf email".into(),
        "/account/confirm csrf token".into(),
        "/account/confirm csrf token terms_version accept_terms".into(),
        "/account/confirm csrf token terms_version accept_terms stop".into(),
        "/account/applications csrf existing name url contact".into(),
        "/account/sign-out csrf everywhere".into(),
        "/account/notices csrf quota_80 quota_100 key_expires key_changed new_sign_in".into(),
        "/account/webhooks csrf webhook_url".into(),
        "/account/webhooks csrf webhook rotated_at step step".into(),
        "/account/delete csrf confirm".into(),
        format!("{app} csrf name url contact"),
        format!("{app}/keys csrf existing key_name"),
        format!("{app}/rotate csrf existing new_name overlap replace"),
        format!("{app}/keep csrf key"),
        format!("{app}/revoke csrf key"),
        format!("{app}/close csrf confirm"),
    ];
    assert_eq!(seen, HashSet::from(expected));
}

#[test]
fn the_header_marks_one_link_on_every_page_but_a_message() {
    for (name, html) in Shown::ordinary().pages() {
        let marked = html.matches(" aria-current=\"page\"").count();
        assert_eq!(marked, usize::from(name != "message"), "{name}");
    }
}

#[test]
fn fields_have_labels_ids_are_unique_and_references_lead_to_them() {
    for (name, html) in all_pages() {
        let tags = tags(&html);
        let ids: Vec<&str> = tags.iter().filter_map(|tag| attribute(tag, "id")).collect();
        let unique: HashSet<&str> = ids.iter().copied().collect();
        assert_eq!(unique.len(), ids.len(), "{name}: {ids:?}");
        for tag in &tags {
            for reference in ["for", "aria-labelledby", "aria-describedby"] {
                let to = attribute(tag, reference)
                    .into_iter()
                    .flat_map(str::split_whitespace);
                to.for_each(|id| assert!(unique.contains(id), "{name}: <{tag}>"));
            }
            let is_field = (tag.starts_with("input") && attribute(tag, "type") != Some("hidden"))
                || tag.starts_with("select");
            let is_labelled = |id| tags.iter().any(|tag| attribute(tag, "for") == Some(id));
            assert!(
                !is_field || is_labelled(attribute(tag, "id").unwrap()),
                "{name}: <{tag}>"
            );
            assert!(
                !tag.starts_with("meter") || attribute(tag, "aria-label").is_some(),
                "{name}: <{tag}>"
            );
        }
    }
}

#[test]
fn headings_skip_no_level_and_every_page_has_one_of_the_first() {
    for (name, html) in all_pages() {
        let levels: Vec<u32> = html
            .split("<h")
            .skip(1)
            .filter_map(|rest| rest.chars().next()?.to_digit(10))
            .collect();
        assert_eq!(
            levels.iter().filter(|level| **level == 1).count(),
            1,
            "{name}"
        );
        assert!(
            levels.first() == Some(&1) && levels.windows(2).all(|pair| pair[1] <= pair[0] + 1),
            "{name}: {levels:?}"
        );
    }
}

#[test]
fn a_problem_is_shown_once_and_at_its_field() {
    for field in problems() {
        let mut shown = Shown::ordinary();
        shown.problem = Some((field, "Write a name.".into()));
        for (name, html) in shown.pages() {
            if ["link-sent", "issued", "webhook-secret", "again", "message"].contains(&name) {
                continue;
            }
            let alert =
                "<p class=\"problem\" role=\"alert\" id=\"problem\" dir=\"auto\">Write a name.</p>";
            assert_eq!(html.matches(alert).count(), 1, "{name}, {field:?}");
            assert_eq!(
                html.matches("Write a name.").count(),
                1,
                "{name}, {field:?}"
            );
            let wrong: Vec<_> = tags(&html)
                .into_iter()
                .filter(|tag| tag.contains("aria-invalid=\"true\""))
                .collect();
            let has_field =
                field.is_some_and(|field| html.contains(&format!("id=\"field-{field}\"")));
            assert_eq!(wrong.len(), usize::from(has_field), "{name}, {field:?}");
            for tag in wrong {
                assert_eq!(attribute(tag, "name"), field, "{name}");
                assert!(
                    attribute(tag, "aria-describedby")
                        .unwrap()
                        .starts_with("problem"),
                    "{name}: <{tag}>"
                );
            }
        }
    }
}
