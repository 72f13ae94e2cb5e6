//! The span of a request: its name and its attributes, according to the OpenTelemetry semantic conventions for HTTP.
//!
//! As in the access log, only parsed values are taken from the request, so no secret can reach a span. `exchange`
//! decides which requests are sampled.

use std::borrow::Cow;

use http::{Method, StatusCode};

use crate::instruments::{CacheOutcome, RequestSubject};
use scoregate_base::{
    clock::Mono,
    keys::ApplicationId,
    routes::{DocumentKey, codes::ErrorCode},
};
use scoregate_observe::traces::{RequestSpan, SpanAttribute};

/// The error of a request whose client disconnected.
const DISCONNECTED: &str = "client_disconnected";

/// A finished request.
#[derive(Clone, Debug)]
pub struct TracedRequest<'x> {
    pub(crate) is_encrypted: bool,
    pub(crate) subject: RequestSubject,
    pub(crate) document: Option<&'x DocumentKey>,
    /// `None` if the client disconnected before the response.
    pub(crate) status: Option<StatusCode>,
    pub(crate) code: Option<ErrorCode>,
    pub(crate) outcome: Option<CacheOutcome>,
    pub(crate) application: Option<ApplicationId>,
    pub(crate) request_id: &'x str,
}

impl TracedRequest<'_> {
    /// Records the span.
    pub(crate) fn end(&self, span: &RequestSpan, ended: Mono) {
        let has_failed = self.status.is_none_or(|status| status.is_server_error());
        span.end(
            ended,
            self.name(span.method()),
            self.attributes(span.method(), has_failed),
            has_failed,
        );
    }

    fn route(&self) -> Option<String> {
        match self.subject {
            RequestSubject::Endpoint(route) => Some(route.endpoint().documented_path()),
            RequestSubject::Page | RequestSubject::Options | RequestSubject::Nothing => None,
        }
    }

    /// The method and the route, never the path.
    fn name(&self, method: &'static str) -> Cow<'static, str> {
        self.route()
            .map_or(method.into(), |route| format!("{method} {route}").into())
    }

    fn path_and_query(&self) -> [Option<String>; 2] {
        let Some(document) = self.document else {
            return [None, None];
        };
        let address = document.address();
        match address.split_once('?') {
            Some((path, query)) => [Some(path.to_owned()), Some(query.to_owned())],
            None => [Some(address), None],
        }
    }

    fn attributes(
        &self,
        method: &'static str,
        has_failed: bool,
    ) -> Vec<(&'static str, SpanAttribute)> {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        let [path, query] = self.path_and_query();
        let code = self.code.map(|code| code.row().word);
        let failure = has_failed.then(|| code.unwrap_or(DISCONNECTED));
        let status = self.status.map(|status| status.as_u16());
        let application = self.application.map(|id| id.to_string());
        let attributes = [
            ("http.request.method", Some(method.into())),
            ("url.scheme", Some(scheme.into())),
            ("http.route", self.route().map(Into::into)),
            ("url.path", path.map(Into::into)),
            ("url.query", query.map(Into::into)),
            ("http.response.status_code", status.map(Into::into)),
            ("scoregate.error_code", code.map(Into::into)),
            ("error.type", failure.map(Into::into)),
            (
                "scoregate.cache",
                self.outcome.map(|outcome| outcome.as_str().into()),
            ),
            ("scoregate.application", application.map(Into::into)),
            (
                "scoregate.request_id",
                Some(self.request_id.to_owned().into()),
            ),
        ];
        let present = attributes.into_iter();
        present
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }
}

/// The name of the method. Requests with a method other than GET or HEAD are refused before a span begins.
pub fn method(method: &Method) -> &'static str {
    if *method == Method::HEAD {
        "HEAD"
    } else {
        "GET"
    }
}
