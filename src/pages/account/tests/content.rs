//! Tests the content of the account pages.

use super::*;

/// Asserts that a page contains each of these texts.
fn shows(html: &str, texts: &[&str]) {
    for text in texts {
        assert!(html.contains(text), "{text}: {html}");
    }
}

#[test]
fn keys_are_shown_with_their_state_and_only_active_ones_can_be_revoked() {
    let mut shown = Shown::ordinary();
    let html = shown.application();
    let rows: Vec<&str> = html
        .split("<th scope=\"row\"><code>sg_live")
        .skip(1)
        .collect();
    let states = [
        "active</span></td>",
        "active</span> expires",
        "expired</span> <time",
        "revoked</span> <time",
    ];
    for ((row, state), may_be_revoked) in rows.iter().zip(states).zip([true, true, false, false]) {
        let row = row.split_once("</tr>").unwrap().0;
        assert!(row.contains(state), "{row}");
        assert_eq!(row.contains("/revoke\""), may_be_revoked, "{row}");
        assert_eq!(row.contains("/keep\""), state.ends_with("expires"), "{row}");
    }
    shows(
        &html,
        &[
            "<code>sg_live_9KdQ…</code> <bdi>Station</bdi></th>",
            "Cancel expiry<span",
        ],
    );
    let digest = format!(
        "name=\"key\" value=\"{}\"",
        scoregate_base::keys::Digest::of("sg_live_a1B2")
    );
    shows(
        &html,
        &[
            "<th scope=\"col\">Last used</th>",
            "Last used: </span><time ",
        ],
    );
    shows(
        &html,
        &["<p class=\"hint\">Last-used times are rounded down to the hour.</p>"],
    );
    shows(
        &html,
        &[
            &digest,
            "<summary>Revoke…<span class=\"unseen\"> sg_live_a1B2</span></summary>",
        ],
    );
    assert!(!html.contains("Revoked and expired keys"));
    shown.application.keys.splice(
        0..0,
        (0..3).map(|number| key(&format!("old{number}"), Some(ago(9)), None)),
    );
    shows(
        &shown.application(),
        &[
            "<summary>Revoked and expired keys (5)</summary>",
            "<code>old0…</code>",
        ],
    );
}

#[test]
fn keys_are_added_without_and_replaced_with_a_decision_about_the_present_ones() {
    let mut shown = Shown::ordinary();
    let html = shown.application();
    shows(
        &html,
        &[
            "<option value=\"1d\" selected>expire in 1 day</option>",
            "Add a key</button>",
            "Replace all keys</button>",
            "<li><code>sg_live_a1B2…</code></li>\n<li><code>sg_live_9KdQ…</code> <bdi>Station</bdi></li>\n</ul>",
        ],
    );
    assert_eq!(html.matches(" selected>").count(), 1);
    assert!(html.contains("<details class=\"replacement\">"));
    shown.problem = Some((Some("replace"), "Check the box.".into()));
    shows(
        &shown.application(),
        &["<details class=\"replacement\" open>"],
    );
    shown.problem = None;
    shown.application.keys.truncate(2);
    let html = shown.application();
    shows(&html, &["No active keys", "Add a key</button>"]);
    assert!(!html.contains("<select") && !html.contains("Replace all keys"));
}

#[test]
fn a_new_key_is_shown_with_a_command_that_uses_it() {
    let mut shown = Shown::ordinary();
    let later = Some(Wall::from_seconds(NOON.seconds() + 60));
    let html = shown.issued("sg_live_abc", later);
    let command = "curl -H &#39;Authorization: Bearer sg_live_abc&#39; \
                   &#39;https://scores.example.org/api/v1/models?period=";
    let back = "<a class=\"button\" href=\"/account/applications/app_0Ab3dEf7hIj\">";
    shows(
        &html,
        &[
            "<code id=\"new-key\">sg_live_abc</code>",
            "data-copy=\"new-command\"",
            command,
            back,
            "The older keys work until <time",
        ],
    );
    shows(
        &shown.issued("sg_live_abc", Some(NOON)),
        &["The older keys no longer work."],
    );
    assert!(!shown.issued("sg_live_abc", None).contains("older keys"));
    shown.site.example_url = "https://x.example/'; rm".into();
    shows(
        &shown.issued("k", None),
        &["&#39;https://x.example/&#39;\\&#39;&#39;; rm&#39;"],
    );
}

#[test]
fn an_application_can_be_created_while_the_account_may_have_more() {
    let mut shown = Shown::ordinary();
    let form = "action=\"/account/applications\"";
    let used = || Some(Shown::usage(1, 1));
    shows(
        &shown.account(&[]),
        &[form, "You have no applications yet."],
    );
    shows(
        &shown.account(&[used(), used()]),
        &[
            form,
            "href=\"/account/applications/app_0Ab3dEf7hIj\"",
            "2 active keys",
        ],
    );
    let full = shown.account(&[used(), used(), used()]);
    shows(&full, &["An account may have 3 applications."]);
    assert!(!full.contains(form));
    shown.site.applications_per_account = 1;
    shows(
        &shown.account(&[used()]),
        &["An account may have one application."],
    );
}

#[test]
fn a_higher_tier_is_available_by_link_or_from_the_operator() {
    let mut shown = Shown::ordinary();
    shows(
        &shown.account(&[]),
        &["<a href=\"https://example.org/upgrade\">Upgrade"],
    );
    shown.site.plans = vec![("pro".into(), "https://example.org/pro".into())];
    shows(
        &shown.account(&[]),
        &["Need higher limits? Plans: <a href=\"https://example.org/pro\">pro</a>."],
    );
    shown.site.plans.clear();
    shown.site.upgrade_url = None;
    shows(
        &shown.account(&[]),
        &["Need higher limits? Write to <a href=\"mailto:support@example.org\">"],
    );
    shown.site.contact_email = None;
    assert!(!shown.account(&[]).contains("higher limits?"));
    shown.owner.tier = Some("pro".into());
    shows(
        &shown.account(&[]),
        &["<dt>Tier of new applications</dt><dd><span class=\"tier\"><bdi>Pro</bdi>"],
    );
}

#[test]
fn webhooks_are_shown_with_their_state_and_without_their_secrets() {
    let shown = Shown::ordinary();
    let html = shown.account(&[None, None]);
    let cards: Vec<&str> = html
        .split("<p><code>https://hooks.example.org/")
        .skip(1)
        .collect();
    let [active, other] = cards[..] else {
        panic!("{html}")
    };
    shows(
        active,
        &["Active.</p>", "value=\"rotate\"", "value=\"remove\""],
    );
    let active = active.split_once("</form>").unwrap().0;
    assert!(!active.contains("failed"), "{active}");
    shows(
        other,
        &[
            "Not active: the receiver has not answered the challenge.",
            "The last message failed: TLS failed.",
        ],
    );
    assert!(
        !html.contains("canary") && !html.contains("name=\"webhook_url\""),
        "{html}"
    );
    shows(&shown.account(&[None]), &["name=\"webhook_url\""]);
    shows(
        &shown.site.webhook_secret("u", "whsec_1", true),
        &["<code>whsec_1</code>", "is sent now", "shown again"],
    );
    shows(
        &shown.site.webhook_secret("u", "whsec_1", false),
        &["For 24 hours"],
    );
}

#[test]
fn terms_are_accepted_with_a_new_account_and_after_a_change() {
    let shown = Shown::ordinary();
    let accepted = "name=\"accept_terms\" value=\"yes\" required";
    let terms = [
        accepted,
        "name=\"terms_version\" value=\"2026-11-01\"",
        "<li dir=\"auto\">Data is free to use",
    ];
    let new = shown.link(true, true);
    shows(&new, &terms);
    shows(
        &new,
        &[
            "Create account</button>",
            "value=\"t0k3n\"",
            "<a href=\"https://example.org/terms\">",
        ],
    );
    let changed = shown.link(true, false);
    shows(&changed, &terms);
    shows(&changed, &["Sign in</button>", "They have changed"]);
    let known = shown.link(false, false);
    shows(&known, &["Sign in</button>"]);
    assert!(!known.contains("terms_version") && !known.contains(accepted));
}

#[test]
fn use_is_shown_against_the_limits() {
    let shown = Shown::ordinary();
    let of = |used, limit| {
        let day = Shown::status(LimitRule::Day, used, limit);
        shown.application_with(Some(vec![day]), None)
    };
    let html = of(312, 1_000);
    shows(
        &html,
        &[
            "312 of 1,000 requests</span>",
            "max=\"1000\" low=\"800\"",
            "value=\"312\"",
            "2026-11-26 00:00 UTC",
        ],
    );
    assert!(!html.contains("used up") && !html.contains("month"));
    let month = Shown::status(LimitRule::Month, 41, 20_000);
    let html = shown.application_with(Some(vec![month]), None);
    shows(
        &html,
        &["<dt>This month</dt>", "41 of 20,000 requests</span>"],
    );
    shows(
        &of(1_000, 1_000),
        &["1,000 of 1,000 requests <span class=\"badge\">used up</span>"],
    );
    shows(
        &of(0, 0),
        &[
            "0 of 0 requests <span class=\"badge\">used up</span>",
            "max=\"1\" low=\"0\"",
        ],
    );
    shows(
        &of(u32::MAX, u32::MAX),
        &["4,294,967,295 of 4,294,967,295", "low=\"3435973836\""],
    );
    shows(
        &shown.application_with(None, None),
        &["Usage is temporarily unavailable."],
    );
}

#[test]
fn requests_are_shown_as_chart_and_tables() {
    let mut shown = Shown::ordinary();
    let html = shown.application();
    let day = "<tr><th scope=\"row\">2026-11-25</th><td>216</td><td>182</td><td>22</td><td>8</td><td>4</td></tr>";
    let endpoint =
        "<th scope=\"row\">other paths</th><td>21</td><td>0</td><td>0</td><td>21</td><td>0</td>";
    shows(
        &html,
        &[
            "Requests in the last 30 days</h2>",
            day,
            endpoint,
            "<code>models</code>",
        ],
    );
    shows(
        &html,
        &[
            "requests to <code>/api/v1/me</code> are included; they do not count toward the daily quota.",
        ],
    );
    assert_eq!(html.matches("<rect class=\"column\"").count(), 30);
    assert_eq!(
        html.matches("<tr><th scope=\"row\">2026-").count(),
        21,
        "days with requests, and one with evidence of use"
    );
    shown
        .requests
        .totals
        .iter_mut()
        .for_each(|total| total.requests = u64::MAX);
    shows(
        &shown.application(),
        &["18,446,744,073,709,551,615", "<span>80 E</span>"],
    );
    let none = RequestList::default();
    shows(
        &shown.application_with(None, Some(&none)),
        &["No requests yet. Requests appear here within about a minute."],
    );
    shows(
        &shown.application_with(None, None),
        &["Requests are temporarily unavailable."],
    );
}

#[test]
fn the_use_is_shown_by_day_with_advice() {
    let mut shown = Shown::ordinary();
    let row =
        "<tr><th scope=\"row\">2026-11-25</th><td>1,200</td><td>0</td><td>1,199</td><td>10 %</td>";
    shows(
        &shown.application(),
        &["How the API is used</h2>", row, "Send If-None-Match."],
    );
    shown.evidence.clear();
    shows(
        &shown.application(),
        &["An hour appears here a few minutes after it ends."],
    );
}

#[test]
fn pages_link_only_to_this_service_and_to_configured_addresses() {
    let configured = [
        "https://example.org/terms",
        "https://example.org/upgrade",
        "mailto:support@example.org",
    ];
    for (name, html) in Shown::ordinary().pages() {
        shows(
            &html,
            &[
                "<meta name=\"robots\" content=\"noindex\">",
                "<a href=\"/status\">",
                "<a href=\"/docs\">",
            ],
        );
        for tag in tags(&html) {
            assert_eq!(attribute(tag, "src"), None, "{name}");
            if let Some(href) = attribute(tag, "href") {
                assert!(
                    configured.contains(&href) || href.starts_with(['/', '#']),
                    "{name}: {href}"
                );
            }
        }
    }
    let mut shown = Shown::ordinary();
    shown.site = AccountSite {
        has_status_page: false,
        terms_url: None,
        contact_email: None,
        ..shown.site
    };
    let html = shown.account(&[]);
    assert!(
        !html.contains("/status") && !html.contains("<footer"),
        "{html}"
    );
}

#[test]
fn signing_in_again_sends_a_link_to_the_owner() {
    let shown = Shown::ordinary();
    let html = shown.site.sign_in_again(&shown.signed_in());
    shows(
        &html,
        &[
            "action=\"/account/sign-in\"",
            "<input type=\"hidden\" name=\"email\" value=\"ada@example.org\">",
        ],
    );
    let form = SignInForm {
        csrf: CSRF,
        email: "",
        problem: None,
        notice: Some("You are signed out."),
    };
    let status = "<p class=\"notice\" role=\"status\"><bdi>You are signed out.</bdi></p>";
    shows(
        &shown.site.sign_in(&form),
        &[
            status,
            "type=\"email\"",
            "autocomplete=\"email\" required",
            "15 minutes",
        ],
    );
}
