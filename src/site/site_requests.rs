//! Requests to the site: the shell around the pages, and the steps before a page is asked.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::request::Parts;
use http::{HeaderValue, Method, Response, Version};
use http_body_util::Full;
use tokio_util::task::TaskTracker;

use crate::bodies::{BodyFailure, Holder, RequestBody};
use crate::gateway::Peer;
use crate::instruments::SiteInstruments;
use crate::pages::account::{content_security_policy, policy_with_script};
use crate::registry::{OwnerAdministration, Registrar};
use scoregate_base::clock::{Clock, Wall};
use scoregate_store::Store;

use super::form::{Form, MAX_FORM, has_form_type};
use super::form_origin::is_cross_site;
use super::site_admission::{SiteAdmission, require_encryption};
use super::site_config::SiteConfig;
use super::site_path::{SitePath, is_of_site};
use super::site_refusal::SiteRefusal;
use super::site_reply::{ResponseStyle, SiteReply, SiteResult, response};
use super::visit::Visit;

/// The pages of accounts.
pub struct Site {
    config: ArcSwap<SiteConfig>,
    pub(super) store: Arc<dyn Store>,
    pub(super) registrar: Arc<Registrar>,
    pub(super) owners: Arc<OwnerAdministration>,
    clock: Clock,
    pub(super) admission: SiteAdmission,
    pub(super) instruments: SiteInstruments,
    /// The tasks of requests. A shutdown waits for them.
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
        store: Arc<dyn Store>,
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

    /// Whether this path is one of the site. Most do not exist.
    pub fn serves(path: &str) -> bool {
        is_of_site(path)
    }

    /// Changes the settings.
    pub fn set_config(&self, config: SiteConfig) {
        self.admission
            .set_limits(config.links_per_hour, config.accounts_per_day);
        self.config.store(Arc::new(config));
    }

    /// Answers a request. Never fails and never panics: a panic becomes a 500.
    pub async fn handle(
        self: &Arc<Self>,
        head: &Parts,
        body: &mut RequestBody<'_>,
        peer: Peer,
    ) -> Response<Full<Bytes>> {
        let config = self.config.load_full();
        // On HTTP/1.1 no request follows a body: a rest that was not read could be taken for one.
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
        let response = response(answered, style, |refusal| {
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
        // Counted before any other step, so that refused requests count too.
        self.admission.count(client, now)?;
        require_encryption(peer, &config.proxies, &head.headers)?;
        let path = SitePath::parse(head.uri.path()).ok_or(SiteRefusal::UnknownPage)?;
        if !path.accepts(&head.method) {
            return Err(SiteRefusal::Method(path));
        }
        let is_form = head.method == Method::POST;
        let form = if is_form {
            read_form(config, head, body, client).await?
        } else {
            Form::default()
        };
        if is_form && path.changes_an_account() {
            self.admission.count_change(client, now)?;
        }
        let query = Form::of_query(head.uri.query().unwrap_or_default());
        let headers = head.headers.clone();
        let visit = Visit {
            config: Arc::clone(config),
            headers,
            query,
            form,
            client,
            now,
        };
        self.completed(path, is_form, visit).await
    }

    /// Answers in a task that does not end with the connection: a change that is stored must take effect here too, and a
    /// connection to the store is used to the end.
    async fn completed(
        self: &Arc<Self>,
        path: SitePath,
        is_form: bool,
        visit: Visit,
    ) -> SiteResult {
        let site = Arc::clone(self);
        let task = self.tasks.spawn(async move {
            // Taken in the task: the slot is held while the store works, also if the client leaves.
            let slot = site.admission.enter(visit.client, &site.clock).await?;
            let reply = site.reply(path, is_form, &visit).await;
            drop(slot);
            reply
        });
        task.await.unwrap_or_else(|_| {
            self.instruments.panics.increment(1);
            Err(SiteRefusal::Internal)
        })
    }

    async fn reply(&self, path: SitePath, is_form: bool, visit: &Visit) -> SiteResult {
        match (path, is_form) {
            (SitePath::AccountSlash, _) => Ok(SiteReply::moved("/account")),
            (SitePath::Account, _) => self.account_page(visit).await,
            (SitePath::SignIn, false) => self.sign_in_page(visit).await,
            (SitePath::SignIn, true) => self.request_link(visit).await,
            (SitePath::Confirm, false) => self.link_page(visit).await,
            (SitePath::Confirm, true) => self.use_link(visit).await,
            (SitePath::SignOut, _) => self.sign_out(visit).await,
            (SitePath::Notices, _) => self.choose_notices(visit).await,
            (SitePath::Webhooks, _) => self.change_webhooks(visit).await,
            (SitePath::Delete, _) => self.delete_account(visit).await,
            (SitePath::Applications, _) => self.create_application(visit).await,
            (SitePath::Application(id), false) => self.application_page(visit, id).await,
            (SitePath::Application(id), true) => self.describe_application(visit, id).await,
            (SitePath::Keys(id), _) => self.add_key(visit, id).await,
            (SitePath::Rotate(id), _) => self.rotate_key(visit, id).await,
            (SitePath::Keep(id), _) => self.keep_key(visit, id).await,
            (SitePath::Revoke(id), _) => self.revoke_key(visit, id).await,
            (SitePath::Close(id), _) => self.close_application(visit, id).await,
        }
    }
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

/// A new id: it is in the response and in the log.
fn request_id(now: Wall) -> String {
    format!("{:016x}", getrandom::u64().unwrap_or_else(|_| now.millis()))
}

/// Logs a refusal. The path has no secrets; the query may have.
fn log_refusal(refusal: SiteRefusal, request: &str, path: &str) {
    let row = refusal.row();
    if row.status.is_server_error() {
        tracing::warn!(
            request,
            reason = row.word,
            path,
            "page of an account failed"
        );
    } else {
        tracing::debug!(
            request,
            reason = row.word,
            path,
            "page of an account refused"
        );
    }
}
