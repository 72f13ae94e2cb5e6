//! Tests the account pages with ordinary and hostile values. `markup` tests the properties that all pages share,
//! `content` the contents of each page.

mod content;
mod markup;

use super::*;
use scoregate_base::{
    clock::{Day, Wall},
    evidence::{DayEvidence, DocumentMark, HourEvidence},
    keys::{ApplicationId, OwnerId},
    limits::{LimitRule, LimitStatus, OwnLimits},
    secret::Secret,
};
use scoregate_store::{
    Description, MailKind, RequestList, RequestOutcome, RequestQuery, RequestTotal,
    StoredApplication, StoredKey, StoredOwner, StoredWebhook, sample,
};

const NOON: Wall = Wall::from_seconds(20_782 * 86_400 + 43_200); // 2026-11-25T12:00:00Z
const HOSTILE: &str =
    "\"><script>alert(1)</script>' onload='x' style='y' {{csrf}} &amp; \u{202e}gpj.exe";
const CSRF: &str = "the-csrf-token";

/// Everything that the pages show.
struct Shown {
    site: AccountSite,
    owner: StoredOwner,
    application: StoredApplication,
    requests: RequestList,
    evidence: Vec<(Day, DayEvidence)>,
    /// A working webhook and a failing one.
    webhooks: [StoredWebhook; 2],
    entered: ApplicationFields,
    token: String,
    problem: Option<(Option<&'static str>, String)>,
    notice: Option<String>,
}

fn ago(seconds: u64) -> Wall {
    Wall::from_seconds(NOON.seconds() - seconds)
}

fn key(shown: &str, expires_at: Option<Wall>, revoked_at: Option<Wall>) -> StoredKey {
    StoredKey {
        name: (shown == "sg_live_9KdQ").then(|| "Station".into()),
        created_at: ago(20 * 86_400),
        expires_at,
        revoked_at,
        last_used_at: revoked_at.is_none().then(|| ago(3_600)),
        ..sample::key(shown)
    }
}

/// A day on which one document was requested 1,200 times.
fn polled() -> DayEvidence {
    let mark = DocumentMark {
        model: Some(7),
        document: 8,
    };
    let mut hour = HourEvidence::of(12);
    for _ in 0..1_200 {
        hour.delivered(mark, 3_000, false, NOON);
    }
    let mut day = DayEvidence::default();
    day.add(&hour, 10);
    day
}

fn requests(application: ApplicationId) -> RequestList {
    let total = |(ago, endpoint, outcome, requests): (u32, &'static str, RequestOutcome, u64)| {
        RequestTotal {
            day: Day::from_number(NOON.day().number() - ago),
            application,
            endpoint: endpoint.into(),
            outcome,
            requests,
        }
    };
    let totals = (0..20).flat_map(|day| {
        let many = u64::from(137 + day * 61 % 97);
        [
            (day, "models", RequestOutcome::Ok, many),
            (day, "index", RequestOutcome::NotModified, many / 3),
            (day, "drift", RequestOutcome::RateLimited, many % 11 * 4),
            (day, "alerts", RequestOutcome::ServerError, many % 7 * 2),
            (day, "none", RequestOutcome::ClientError, many % 3),
            (day, "models", RequestOutcome::Disconnected, many % 5 * 2),
        ]
    });
    RequestList {
        totals: totals.rev().map(total).collect(),
    }
}

fn webhook((id, verified_at): (&str, Option<Wall>)) -> StoredWebhook {
    StoredWebhook {
        id: id.into(),
        owner: "own_0Ab3dEf7hIj".parse().unwrap(),
        url: format!("https://hooks.example.org/{id}"),
        secret: Secret::new("whsec_canary".into()),
        old_secret: None,
        rotated_at: verified_at,
        verified_at,
        last_error: verified_at.is_none().then(|| "TLS failed".into()),
    }
}

fn site() -> AccountSite {
    let terms = [
        "Data is free to use with attribution.",
        "The source must be cited with a link wherever data is shown.",
        "Keys are personal and must not be shared or published.",
        "Limits must not be circumvented with several accounts.",
    ];
    AccountSite {
        service: "Scores".into(),
        terms: terms.map(String::from).to_vec(),
        terms_version: "2026-11-01".into(),
        terms_url: Some("https://example.org/terms".into()),
        upgrade_url: Some("https://example.org/upgrade".into()),
        plans: Vec::new(),
        contact_email: Some("support@example.org".into()),
        has_status_page: true,
        example_url: "https://scores.example.org/api/v1/models?period=24h".into(),
        applications_per_account: 3,
    }
}

impl Shown {
    fn ordinary() -> Self {
        let id: ApplicationId = "app_0Ab3dEf7hIj".parse().unwrap();
        let keys = vec![
            key("sg_live_7GhR", None, Some(ago(9_000))),
            key("sg_live_Xw03", Some(ago(86_400)), None),
            key(
                "sg_live_9KdQ",
                Some(Wall::from_seconds(NOON.seconds() + 86_400)),
                None,
            ),
            key("sg_live_a1B2", None, None),
        ];
        let application = StoredApplication {
            id,
            name: "Leaderboard of Example Labs".into(),
            description: Description {
                contact: Some("ops@example.org".into()),
                ..Description::default()
            },
            created_at: ago(30 * 86_400),
            keys,
            ..sample::application("free", &[])
        };
        let owner = StoredOwner {
            id: "own_0Ab3dEf7hIj".parse::<OwnerId>().unwrap(),
            email: "ada@example.org".into(),
            created_at: ago(30 * 86_400),
            terms_version: Some("2026-11-01".into()),
            terms_accepted_at: Some(ago(30 * 86_400)),
            own: OwnLimits::NONE,
            tier: None,
            suspended_at: None,
            notices: None,
            applications: vec![id],
        };
        let entered = ApplicationFields {
            name: "Leaderboard of Example Labs".into(),
            description: Description {
                url: Some("https://labs.example.org".into()),
                ..application.description.clone()
            },
        };
        Self {
            site: site(),
            owner,
            requests: requests(id),
            evidence: vec![(NOON.day(), polled())],
            webhooks: [("hook_1", Some(NOON)), ("hook_2", None)].map(webhook),
            application,
            entered,
            token: "t0k3n".into(),
            problem: None,
            notice: None,
        }
    }

    /// The same contents, with this text in every text field.
    fn of(text: &str) -> Self {
        let mut shown = Self::ordinary();
        let some = || Some(text.to_owned());
        shown.site = AccountSite {
            service: text.into(),
            terms: vec![text.into(); 2],
            terms_version: text.into(),
            terms_url: some(),
            upgrade_url: some(),
            plans: vec![(text.into(), text.into())],
            contact_email: some(),
            example_url: text.into(),
            ..shown.site
        };
        shown.owner = StoredOwner {
            email: text.into(),
            terms_version: some(),
            tier: some(),
            ..shown.owner
        };
        shown.application.name = text.into();
        shown.application.tier = text.into();
        shown.application.description = Description::from_fn(|_| some());
        for key in &mut shown.application.keys {
            key.shown = text.into();
            key.name = some();
        }
        for webhook in &mut shown.webhooks {
            webhook.url = text.into();
            webhook.last_error = some();
        }
        for total in &mut shown.requests.totals {
            total.endpoint = text.to_owned().into();
        }
        shown.entered = ApplicationFields {
            name: text.into(),
            description: shown.application.description.clone(),
        };
        shown.token = text.into();
        shown.problem = Some((None, text.into()));
        shown.notice = some();
        shown
    }

    fn problem(&self) -> Option<FormProblem<'_>> {
        self.problem.as_ref().map(|(field, message)| FormProblem {
            field: *field,
            message,
        })
    }

    fn signed_in(&self) -> SignedIn<'_> {
        SignedIn {
            csrf: CSRF,
            owner: &self.owner,
            now: NOON,
        }
    }

    fn status(rule: LimitRule, used: u32, limit: u32) -> LimitStatus {
        LimitStatus {
            rule,
            limit,
            window_seconds: 60,
            remaining: limit - used,
            reset: NOON.day().end(),
            full_in: std::time::Duration::ZERO,
            wait: std::time::Duration::ZERO,
        }
    }

    fn usage(day_used: u32, minute_used: u32) -> Vec<LimitStatus> {
        vec![
            Self::status(LimitRule::Minute, minute_used, 10),
            Self::status(LimitRule::Day, day_used, 1_000),
        ]
    }

    fn link(&self, needs_terms: bool, is_new: bool) -> String {
        self.link_of(needs_terms, is_new, false)
    }

    fn link_of(&self, needs_terms: bool, is_new: bool, is_invited: bool) -> String {
        let token = &self.token;
        let email = &self.owner.email;
        self.site.link(&LinkForm {
            csrf: CSRF,
            token,
            email,
            needs_terms,
            is_new,
            is_invited,
            problem: self.problem(),
        })
    }

    fn account(&self, usages: &[Option<Vec<LimitStatus>>]) -> String {
        let list = |usage: &Option<Vec<LimitStatus>>| ListedApplication {
            application: &self.application,
            usage: usage.clone(),
        };
        let applications: Vec<_> = usages.iter().map(list).collect();
        self.site.account(&AccountView {
            notices: &[MailKind::Quota80],
            signed_in: self.signed_in(),
            applications: &applications,
            webhooks: self.webhooks.get(..usages.len().min(2)),
            entered: &self.entered,
            problem: self.problem(),
            notice: self.notice.as_deref(),
        })
    }

    fn application(&self) -> String {
        self.application_with(Some(Self::usage(312, 4)), Some(&self.requests))
    }

    fn application_with(
        &self,
        usage: Option<Vec<LimitStatus>>,
        requests: Option<&RequestList>,
    ) -> String {
        let last = NOON.day();
        let days = RequestQuery {
            application: self.application.id,
            first: Day::from_number(last.number() - 29),
            last,
        };
        self.site.application(&OwnedApplicationView {
            signed_in: self.signed_in(),
            application: &self.application,
            usage,
            requests,
            days,
            evidence: Some(&self.evidence),
            entered: &self.entered,
            entered_keys: KeyFields {
                key_name: &self.entered.name,
                new_name: &self.entered.name,
                overlap: &self.entered.name,
            },
            problem: self.problem(),
            notice: self.notice.as_deref(),
        })
    }

    fn issued(&self, key: &str, others_end_at: Option<Wall>) -> String {
        let signed_in = self.signed_in();
        let application = &self.application;
        self.site.issued_key(&IssuedKeyView {
            signed_in,
            application,
            key,
            others_end_at,
        })
    }

    /// All pages with their names.
    fn pages(&self) -> Vec<(&'static str, String)> {
        let email = self.owner.email.as_str();
        let notice = self.notice.as_deref();
        let sign_in = SignInForm {
            csrf: CSRF,
            email,
            problem: self.problem(),
            notice,
        };
        let paragraphs = ["The link has expired, or it was used.", email];
        let message = MessagePage {
            title: "The link is not valid",
            paragraphs: &paragraphs,
            link: Some(("/account/sign-in", email)),
        };
        let used_up = Some(Self::usage(1_000, 10));
        vec![
            ("sign-in", self.site.sign_in(&sign_in)),
            ("link-sent", self.site.link_sent(email)),
            ("link-new", self.link(true, true)),
            ("link-invited", self.link_of(true, true, true)),
            ("link-changed", self.link(true, false)),
            ("link", self.link(false, false)),
            ("account-new", self.account(&[])),
            ("account", self.account(&[Some(Self::usage(312, 4)), None])),
            (
                "account-full",
                self.account(&[Some(Self::usage(850, 0)), used_up, None]),
            ),
            ("application", self.application()),
            (
                "application-new",
                self.application_with(None, Some(&RequestList::default())),
            ),
            (
                "issued",
                self.issued(
                    &format!("sg_live_{}", "a1B2".repeat(9)),
                    Some(Wall::from_seconds(NOON.seconds() + 86_400)),
                ),
            ),
            (
                "webhook-secret",
                self.site
                    .webhook_secret(&self.webhooks[0].url, &self.token, true),
            ),
            ("again", self.site.sign_in_again(&self.signed_in())),
            ("message", self.site.message(&message)),
        ]
    }
}

/// The tags of a page, without `<` and `>`. Everything outside templates is escaped, so neither character occurs in a
/// value.
fn tags(html: &str) -> Vec<&str> {
    let html = html.split_once("</style>").unwrap().1;
    html.split('<')
        .skip(1)
        .map(|rest| rest.split_once('>').unwrap().0)
        .collect()
}

/// A tag's attributes that have values.
fn attributes(tag: &str) -> Vec<(&str, &str)> {
    let mut rest = tag;
    let mut attributes = Vec::new();
    while let Some((before, after)) = rest.split_once("=\"") {
        let (value, after) = after.split_once('"').unwrap();
        attributes.push((before.rsplit([' ', '\n']).next().unwrap(), value));
        rest = after;
    }
    attributes
}

fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    attributes(tag)
        .into_iter()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}
