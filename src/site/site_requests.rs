//! Request handling of the site: the steps before a page handler runs, and the wrapper around it.

use std::{net::IpAddr, panic::AssertUnwindSafe, sync::Arc};

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use http::{HeaderValue, Method, Response, Version, request::Parts};
use http_body_util::Full;
use tokio_util::task::TaskTracker;

use crate::{
    bodies::{BodyFailure, Holder, RequestBody},
    gateway::Peer,
    instruments::SiteInstruments,
    pages::account::{content_security_policy, policy_with_script},
    registry::{OwnerAdministration, Registrar},
};
use scoregate_base::{
    clock::{Clock, Wall},
    keys::ApplicationId,
};
use scoregate_store::Store;

use super::{
    form::{Form, MAX_FORM, has_form_type},
    form_origin::is_cross_site,
    site_admission::{SiteAdmission, require_encryption},
    site_config::SiteConfig,
    site_refusal::SiteRefusal,
    site_reply::{ResponseStyle, SiteReply, SiteResult, response},
    visit::Visit,
};

/// The common prefix of the paths of all pages.
const ACCOUNT: &str = "/account";

/// A function that answers requests for a page or submissions of its form.
type PageHandler = for<'s> fn(&'s Site, &'s Visit) -> BoxFuture<'s, SiteResult>;

/// A path of the site.
struct SitePage {
    /// The path below `/account`. `*` stands for the id of an application.
    path: &'static str,
    /// Whether the form changes an account. Forms for signing in and out do not.
    changes_an_account: bool,
    page: Option<PageHandler>,
    form: Option<PageHandler>,
}

/// Declares the rows: the path, whether the form changes an account, and the handlers.
macro_rules! pages {
    ($($path:literal $changes:literal $(GET $page:ident)? $(POST $form:ident)?;)+) => {
        static PAGES: &[SitePage] = &[$(SitePage {
            path: $path,
            changes_an_account: $changes,
            page: pages!(@ $($page)?),
            form: pages!(@ $($form)?),
        }),+];
    };
    (@) => { None };
    (@ $handler:ident) => { Some(|site, visit| site.$handler(visit).boxed()) };
}

pages! {
    "" false GET account_page;
    "/" false GET moved_to_account;
    "/sign-in" false GET sign_in_page POST request_link;
    "/confirm" false GET link_page POST use_link;
    "/sign-out" false POST sign_out;
    "/notices" true POST choose_notices;
    "/webhooks" true POST change_webhooks;
    "/usage" false GET usage_file;
    "/delete" true POST delete_account;
    "/applications" true POST create_application;
    "/applications/*" true GET application_page POST describe_application;
    "/applications/*/keys" true POST add_key;
    "/applications/*/rotate" true POST rotate_key;
    "/applications/*/keep" true POST keep_key;
    "/applications/*/revoke" true POST revoke_key;
    "/applications/*/close" true POST close_application;
}

/// The account pages.
pub struct Site {
    config: ArcSwap<SiteConfig>,
    pub(super) store: Store,
    pub(super) registrar: Arc<Registrar>,
    pub(super) owners: Arc<OwnerAdministration>,
    clock: Clock,
    pub(super) admission: SiteAdmission,
    pub(super) instruments: SiteInstruments,
    /// The tasks that handle requests. A shutdown waits for them.
    tasks: TaskTracker,
    policy: HeaderValue,
    policy_with_script: HeaderValue,
}

impl Site {
    /// Maximum size of a body in bytes.
    pub const MAX_BODY: usize = MAX_FORM;

    /// A site with these settings.
    pub fn new(
        config: SiteConfig,
        store: Store,
        registrar: Arc<Registrar>,
        owners: Arc<OwnerAdministration>,
        clock: Clock,
        instruments: SiteInstruments,
        tasks: TaskTracker,
    ) -> Self {
        let admission = SiteAdmission::new(config.links_per_hour, config.accounts_per_day);
        let [policy, policy_with_script] = [content_security_policy(), policy_with_script()]
            .map(|policy| HeaderValue::try_from(policy).expect("the policy is visible ASCII"));
        Self {
            config: ArcSwap::from_pointee(config),
            store,
            registrar,
            owners,
            clock,
            admission,
            instruments,
            tasks,
            policy,
            policy_with_script,
        }
    }

    /// Whether this path belongs to the site. Most such paths do not exist.
    pub fn serves(path: &str) -> bool {
        path.strip_prefix(ACCOUNT)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Changes the settings.
    pub fn set_config(&self, config: SiteConfig) {
        self.admission
            .set_limits(config.links_per_hour, config.accounts_per_day);
        self.config.store(Arc::new(config));
    }

    /// Answers a request. Always returns a response: a panic in a handler is answered with 500.
    pub async fn handle(
        self: &Arc<Self>,
        head: &Parts,
        body: &mut RequestBody<'_>,
        peer: Peer,
    ) -> Response<Full<Bytes>> {
        let config = self.config.load_full();
        // On HTTP/1.1 no request follows a body, because leftover bytes could be parsed as the next request.
        let closes = head.version < Version::HTTP_2 && !body.is_at_end();
        let answered = AssertUnwindSafe(self.answer(&config, head, body, peer))
            .catch_unwind()
            .await;
        let answered = answered.unwrap_or_else(|_| {
            self.instruments.panics.increment(1);
            Err(SiteRefusal::Internal)
        });
        self.respond(&config, answered, head, closes)
    }

    fn respond(
        &self,
        config: &SiteConfig,
        answered: SiteResult,
        head: &Parts,
        closes: bool,
    ) -> Response<Full<Bytes>> {
        let request_id = request_id(self.clock.now().wall);
        if let Err(refusal) = &answered {
            log_refusal(*refusal, &request_id, head.uri.path());
        }
        let has_script = answered.as_ref().is_ok_and(SiteReply::has_script);
        let policy = if has_script {
            &self.policy_with_script
        } else {
            &self.policy
        };
        let policy = policy.clone();
        let is_https = config.is_https();
        let style = ResponseStyle {
            request_id,
            is_head: head.method == Method::HEAD,
            policy,
            is_https,
            closes,
        };
        let response = response(answered, &style, |refusal| {
            config.pages.message(&refusal.row().page)
        });
        self.instruments.answered(response.status());
        response
    }

    /// The steps in order.
    async fn answer(
        self: &Arc<Self>,
        config: &Arc<SiteConfig>,
        head: &Parts,
        body: &mut RequestBody<'_>,
        peer: Peer,
    ) -> SiteResult {
        let now = self.clock.now();
        let client = config.proxies.client(peer.address, &head.headers);
        // The request is counted before any other step, so that refused requests count too.
        self.admission.count(client, now)?;
        require_encryption(peer, &config.proxies, &head.headers)?;
        let (page, application) = find(head.uri.path()).ok_or(SiteRefusal::UnknownPage)?;
        let is_form = head.method == Method::POST;
        let handler = page
            .handler(&head.method)
            .ok_or(SiteRefusal::Method(page.methods()))?;
        let form = if is_form {
            read_form(config, head, body, client).await?
        } else {
            Form::default()
        };
        if is_form && page.changes_an_account {
            self.admission.count_change(client, now)?;
        }
        let query = Form::of_query(head.uri.query().unwrap_or_default());
        let headers = head.headers.clone();
        let visit = Visit {
            config: Arc::clone(config),
            headers,
            query,
            application,
            form,
            client,
            now,
        };
        self.completed(handler, visit).await
    }

    /// Answers in a task that continues after the client disconnects. A stored change must take effect in this process,
    /// and a store operation must be completed.
    async fn completed(self: &Arc<Self>, handler: PageHandler, visit: Visit) -> SiteResult {
        let site = Arc::clone(self);
        let task = self.tasks.spawn(async move {
            // The slot is taken in the task, so it is held while the store works, even if the client disconnects.
            let slot = site.admission.enter(visit.client, &site.clock).await?;
            let reply = handler(&site, &visit).await;
            drop(slot);
            reply
        });
        task.await.unwrap_or_else(|_| {
            self.instruments.panics.increment(1);
            Err(SiteRefusal::Internal)
        })
    }

    #[expect(clippy::unused_async, reason = "all handlers are asynchronous")]
    async fn moved_to_account(&self, _: &Visit) -> SiteResult {
        Ok(SiteReply::moved(ACCOUNT))
    }
}

impl SitePage {
    /// The accepted methods, as in an `Allow` header.
    const fn methods(&self) -> &'static str {
        match (self.page, self.form) {
            (Some(_), Some(_)) => "GET, HEAD, POST",
            (Some(_), None) => "GET, HEAD",
            (None, _) => "POST",
        }
    }

    fn handler(&self, method: &Method) -> Option<PageHandler> {
        match method.as_str() {
            "GET" | "HEAD" => self.page,
            "POST" => self.form,
            _ => None,
        }
    }
}

/// The row for exactly this path, and the application in the path.
fn find(path: &str) -> Option<(&'static SitePage, Option<ApplicationId>)> {
    let rest = path.strip_prefix(ACCOUNT)?;
    let Some(one) = rest.strip_prefix("/applications/") else {
        let page = PAGES.iter().find(|page| page.path == rest)?;
        return Some((page, None));
    };
    let (id, form) = one.split_at_checked(one.find('/').unwrap_or(one.len()))?;
    let id = id.parse().ok()?;
    Some((
        PAGES
            .iter()
            .find(|page| page.path.strip_prefix("/applications/*") == Some(form))?,
        Some(id),
    ))
}

/// Reads a form that a page of this site has sent.
async fn read_form(
    config: &SiteConfig,
    head: &Parts,
    body: &mut RequestBody<'_>,
    client: IpAddr,
) -> SiteResult<Form> {
    if is_cross_site(&head.headers, &config.root) {
        return Err(SiteRefusal::CrossSite);
    }
    if !has_form_type(&head.headers) {
        return Err(SiteRefusal::NotAForm);
    }
    let read = body.read(MAX_FORM, Holder::Client(client)).await;
    let bytes = read.map_err(|failure| match failure {
        BodyFailure::Broken => SiteRefusal::NotAForm,
        BodyFailure::Trailers => SiteRefusal::Trailers,
        BodyFailure::TooLarge => SiteRefusal::TooLarge,
        BodyFailure::Slow => SiteRefusal::Slow,
        BodyFailure::Busy => SiteRefusal::Busy,
    })?;
    Form::parse(&bytes)
}

/// A new request id, for the response and the log.
fn request_id(now: Wall) -> String {
    format!("{:016x}", getrandom::u64().unwrap_or_else(|_| now.millis()))
}

/// Logs a refusal. Only the path is logged, because the query may contain secrets.
fn log_refusal(refusal: SiteRefusal, request: &str, path: &str) {
    let row = refusal.row();
    if row.status.is_server_error() {
        tracing::warn!(
            request,
            reason = row.word,
            path,
            "request for an account page failed"
        );
    } else {
        tracing::debug!(
            request,
            reason = row.word,
            path,
            "request for an account page refused"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_matched_exactly() {
        let id = ApplicationId::mint().unwrap();
        for (path, found) in [
            ("/account".to_owned(), Some("")),
            ("/account/".into(), Some("/")),
            ("/accounts".into(), None),
            ("/account/sign-in".into(), Some("/sign-in")),
            ("/account/sign-in/".into(), None),
            ("/account/Sign-in".into(), None),
            (
                format!("/account/applications/{id}"),
                Some("/applications/*"),
            ),
            (format!("/account/applications/{id}/"), None),
            (
                format!("/account/applications/{id}/rotate"),
                Some("/applications/*/rotate"),
            ),
            (format!("/account/applications/{id}/rotate/x"), None),
            ("/account/applications/app_1".into(), None),
            ("/account/applications/*".into(), None),
            ("/account/applications/".into(), None),
        ] {
            let row = find(&path);
            assert_eq!(row.map(|(page, _)| page.path), found, "{path}");
            let of_path = row.and_then(|(_, application)| application);
            assert_eq!(
                of_path.is_some(),
                found.is_some_and(|row| row.contains('*'))
            );
            assert_eq!(Site::serves(&path), path != "/accounts", "{path}");
        }
        assert!(!Site::serves("/account%2f") && !Site::serves("/api/v1/account"));
    }

    #[test]
    fn methods_are_case_sensitive_words() {
        let accepts = |path: &str, method: &str| {
            let (page, _) = find(path).unwrap();
            Method::from_bytes(method.as_bytes())
                .is_ok_and(|method| page.handler(&method).is_some())
        };
        let sign_in = "/account/sign-in";
        assert!(accepts(sign_in, "HEAD") && accepts(sign_in, "POST"));
        assert!(!accepts("/account/delete", "GET") && !accepts("/account", "POST"));
        for odd in ["get", "POST, ", "GET, HEAD", ""] {
            assert!(!accepts(sign_in, odd), "{odd}");
        }
    }
}
