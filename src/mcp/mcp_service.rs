//! Handling of requests to `/mcp`.

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{
    HeaderValue, Method, Response, StatusCode, Version,
    header::{ALLOW, CONNECTION, HOST, RETRY_AFTER},
    request::Parts,
};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::{
    bodies::{BodyFailure, Holder, RequestBody},
    gateway::{ConnectionTrust, CorsGrant, Gateway, Peer},
    instruments::{McpInstruments, McpOutcome},
    pages::MCP,
};
use scoregate_base::{address::is_own_origin, routes::EndpointTable};

use super::{
    mcp_headers::{McpHeaders, SentField},
    mcp_tool::McpTool,
    protocol::{self, PROTOCOLS, ProtocolEra},
    rpc_message::{BadMessage, CallArguments, RpcError, RpcMessage},
    rpc_reply,
    tool_result::{describe, translated},
};

const METHODS: HeaderValue = HeaderValue::from_static("POST, OPTIONS");
/// The methods and headers that pages from other origins may use.
const MCP_READING: CorsGrant = CorsGrant {
    methods: HeaderValue::from_static("POST"),
    fields: HeaderValue::from_static(
        "Authorization, Content-Type, MCP-Protocol-Version, Mcp-Method, Mcp-Name, X-API-Key, X-Request-Id",
    ),
};
const JSON: &str = "application/json";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The MCP server.
pub struct McpService {
    tools: Vec<McpTool>,
    /// The members of the tool list, as JSON.
    list: String,
    /// The name and version of the server, as JSON.
    server: String,
    /// The purpose of the tools, as JSON.
    instructions: String,
    instruments: McpInstruments,
}

/// A refusal without a JSON-RPC response: status and remedy.
type HttpRefusal = (StatusCode, &'static str);
const METHOD: HttpRefusal = (StatusCode::METHOD_NOT_ALLOWED, "Send messages with POST.");
const FOREIGN_ORIGIN: HttpRefusal = (
    StatusCode::FORBIDDEN,
    "Use a page whose origin may read this API.",
);
const NOT_JSON: HttpRefusal = (
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    "Send a body of type application/json.",
);
const NO_BODY: HttpRefusal = (
    StatusCode::BAD_REQUEST,
    "Send a complete body, without trailers.",
);
const TOO_LARGE: HttpRefusal = (StatusCode::PAYLOAD_TOO_LARGE, "Send at most 64 KiB.");
const SLOW: HttpRefusal = (StatusCode::REQUEST_TIMEOUT, "Send the body within 5 s.");
const TOO_MANY: HttpRefusal = (
    StatusCode::TOO_MANY_REQUESTS,
    "Wait a minute, then send fewer requests without a key.",
);
const BUSY: HttpRefusal = (
    StatusCode::SERVICE_UNAVAILABLE,
    "Send the message again: too many others are being received.",
);

/// A request to the service, without its body.
#[derive(Clone, Copy)]
struct McpRequest<'r> {
    head: &'r Parts,
    headers: &'r McpHeaders<'r>,
    peer: Peer,
}

/// A response and the outcome to count.
type McpReply = (Response<Full<Bytes>>, McpOutcome);

impl McpService {
    /// Maximum size of a message in bytes.
    pub const MAX_BODY: usize = 64 << 10;

    /// A service with a tool for each endpoint.
    pub fn new(endpoints: &EndpointTable, service: &str, instruments: McpInstruments) -> Self {
        let tools: Vec<McpTool> = endpoints.iter().map(McpTool::new).collect();
        let list: Vec<Value> = tools.iter().map(McpTool::description).collect();
        let server =
            json!({ "name": "scoregate", "title": service, "version": env!("CARGO_PKG_VERSION") });
        let instructions = format!(
            "{service}: benchmark data on AI models, read-only. Call get_models first; it lists the identifiers of models. A call \
             needs an API key in the header Authorization or X-API-Key, and costs as much as a request to the API."
        );
        Self {
            tools,
            list: json!(list).to_string(),
            server: server.to_string(),
            instructions: json!(instructions).to_string(),
            instruments,
        }
    }

    /// Whether this path belongs to the service.
    pub fn serves(path: &str) -> bool {
        path == MCP
    }

    /// Answers a request. `may_continue` states whether another request may follow on the same HTTP/1.1 connection.
    pub async fn handle(
        &self,
        gateway: &ArcSwap<Gateway>,
        head: &Parts,
        body: &mut RequestBody<'_>,
        peer: Peer,
        trust: &ConnectionTrust,
        may_continue: bool,
    ) -> Response<Full<Bytes>> {
        // The same gateway is used for the whole request, even if the settings change while the body arrives.
        let gateway = gateway.load_full();
        let is_http1 = head.version < Version::HTTP_2;
        let has_body = !body.is_at_end();
        let headers = McpHeaders::of(&head.headers);
        let request = McpRequest {
            head,
            headers: &headers,
            peer,
        };
        let received = receive(&gateway, request, body).await;
        let has_arrived = matches!(received, Received::Message(_));
        let (mut response, outcome) = match received {
            Received::Message(message) => self.answer(&gateway, request, &message, trust).await,
            Received::Preflight => preflight(),
            Received::Refused(refusal) => (
                refused(refusal, head.method == Method::HEAD),
                McpOutcome::Rejected,
            ),
        };
        self.instruments.answered(outcome);
        if let Some(cors) = gateway
            .cors
            .as_ref()
            .filter(|_| headers.origin.first.is_some())
        {
            let is_options = head.method == Method::OPTIONS;
            cors.write_with(
                &head.headers,
                &MCP_READING,
                is_options,
                response.headers_mut(),
            );
        }
        // Unread bytes of a body could be parsed as the next request.
        if is_http1 && has_body && !(has_arrived && may_continue) {
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    /// Answers a message. All messages except calls take a token from the guard. Calls are limited by the gateway.
    async fn answer(
        &self,
        gateway: &Gateway,
        request: McpRequest<'_>,
        bytes: &[u8],
        trust: &ConnectionTrust,
    ) -> McpReply {
        let McpRequest {
            head,
            headers,
            peer,
        } = request;
        let read = RpcMessage::read(bytes).and_then(|message| {
            let era = ProtocolEra::of(&message, headers)?;
            Ok((era, message))
        });
        let reply = match read {
            Err(BadMessage { id, error }) => failed(id, &error, StatusCode::BAD_REQUEST),
            Ok((era, message)) => match (message.id, &*message.method) {
                (None, _) => accepted(),
                (Some(id), "tools/call") => match self.call(&message) {
                    Ok((tool, target)) => {
                        let response = gateway.call(head, &target, peer, trust).await;
                        return translated(id, tool.endpoint, response).await;
                    }
                    Err(error) => failed(Some(id), &error, StatusCode::OK),
                },
                (Some(id), _) => self.described(gateway, id, era, &message),
            },
        };
        let client = gateway.proxies.client(peer.address, &head.headers);
        let is_allowed = gateway.guard.take(client, gateway.clock.now());
        if is_allowed {
            reply
        } else {
            (refused(TOO_MANY, false), McpOutcome::Rejected)
        }
    }

    /// Answers a method that describes this server.
    fn described(
        &self,
        gateway: &Gateway,
        id: &str,
        era: ProtocolEra,
        message: &RpcMessage<'_>,
    ) -> McpReply {
        let Self {
            list,
            server,
            instructions,
            ..
        } = self;
        // Only this part differs between responses. All other parts were built at startup.
        let ttl = ttl_millis(gateway);
        let versions = json!(PROTOCOLS);
        let cached =
            format!("\"resultType\":\"complete\",\"cacheScope\":\"private\",\"ttlMs\":{ttl}");
        let tools = "\"capabilities\":{\"tools\":{}},\"instructions\":";
        let result = match (&*message.method, era) {
            ("tools/list", _) => format!("{{\"tools\":{list},{cached}}}"),
            ("server/discover", ProtocolEra::Stateless) => format!(
                "{{\"supportedVersions\":{versions},{tools}{instructions},\"_meta\":{{\"{SERVER_INFO}\":{server}}},{cached}}}"
            ),
            ("initialize", ProtocolEra::Handshake) => {
                let version = protocol::agreed(message.params.protocol_version.as_deref());
                format!(
                    "{{\"protocolVersion\":\"{version}\",{tools}{instructions},\"serverInfo\":{server}}}"
                )
            }
            ("ping", ProtocolEra::Handshake) => "{}".to_owned(),
            (_, era) => {
                let error =
                    RpcError::new(RpcError::METHOD_NOT_FOUND, "This server has only tools.");
                let is_stateless = era == ProtocolEra::Stateless;
                let status = if is_stateless {
                    StatusCode::NOT_FOUND
                } else {
                    StatusCode::OK
                };
                return failed(Some(id), &error, status);
            }
        };
        (
            json_response(rpc_reply::result(id, result.as_bytes())),
            McpOutcome::Listed,
        )
    }

    /// The tool of a call and the target of the corresponding request.
    fn call(&self, message: &RpcMessage<'_>) -> Result<(&McpTool, String), RpcError> {
        let name = message.params.name.as_deref().unwrap_or_default();
        let tool = self.tools.iter().find(|tool| tool.name == name);
        let tool = tool.ok_or_else(|| {
            RpcError::new(RpcError::INVALID_PARAMS, "Call a tool from tools/list.")
        })?;
        let none = CallArguments::new();
        let target = tool
            .target(message.params.arguments.as_ref().unwrap_or(&none))
            .map_err(|message| RpcError::new(RpcError::INVALID_PARAMS, message))?;
        Ok((tool, target))
    }
}

/// Reads the message of a request. If the body does not arrive together with the head, the request holds a token from the
/// guard until the body has arrived.
async fn receive(
    gateway: &Gateway,
    request: McpRequest<'_>,
    body: &mut RequestBody<'_>,
) -> Received {
    let head = request.head;
    if let Some(refusal) = refusal(gateway, request, body) {
        return Received::Refused(refusal);
    }
    if head.method == Method::OPTIONS {
        return Received::Preflight;
    }
    if let Some(read) = body.arrived(McpService::MAX_BODY) {
        return Received::from_read(read);
    }
    let client = gateway.proxies.client(request.peer.address, &head.headers);
    if !gateway.guard.take(client, gateway.clock.now()) {
        return Received::Refused(TOO_MANY);
    }
    let application = gateway.application(head).map(Holder::Application);
    let holder = application.unwrap_or(Holder::Client(client));
    let read = body.rest(McpService::MAX_BODY, holder).await;
    // The token is lost only if the client sends the body too slowly.
    if read != Err(BodyFailure::Slow) {
        gateway.guard.give_back(client);
    }
    Received::from_read(read)
}

/// The refusal of a request whose body is not read. A request without a body takes a token from the guard.
fn refusal(
    gateway: &Gateway,
    request: McpRequest<'_>,
    body: &RequestBody<'_>,
) -> Option<HttpRefusal> {
    let McpRequest {
        head,
        headers,
        peer,
    } = request;
    let refusal = match head.method {
        _ if !is_origin_allowed(gateway, head, headers.origin) => Some(FOREIGN_ORIGIN),
        Method::POST if !is_json(headers.content_type) => Some(NOT_JSON),
        Method::POST if body.exceeds(McpService::MAX_BODY) => Some(TOO_LARGE),
        Method::POST => return None,
        Method::OPTIONS => None,
        _ => Some(METHOD),
    };
    let client = gateway.proxies.client(peer.address, &head.headers);
    if gateway.guard.take(client, gateway.clock.now()) {
        refusal
    } else {
        Some(TOO_MANY)
    }
}

/// A request whose body has been read.
enum Received {
    Message(Vec<u8>),
    Preflight,
    Refused(HttpRefusal),
}

impl Received {
    fn from_read(read: Result<Vec<u8>, BodyFailure>) -> Self {
        match read {
            Ok(message) => Self::Message(message),
            Err(failure) => Self::Refused(unread(failure)),
        }
    }
}

/// The time in milliseconds for which lists may be cached: until the next expected refresh of the data. A restart may
/// change lists earlier.
fn ttl_millis(gateway: &Gateway) -> u128 {
    let now = gateway.clock.now().wall;
    gateway
        .engine
        .documents
        .next_refresh(now)
        .map_or(0, |at| at.since(now).as_millis())
}

/// The refusal of a message that could not be read.
const fn unread(failure: BodyFailure) -> HttpRefusal {
    match failure {
        BodyFailure::Broken | BodyFailure::Trailers => NO_BODY,
        BodyFailure::TooLarge => TOO_LARGE,
        BodyFailure::Slow => SLOW,
        BodyFailure::Busy => BUSY,
    }
}

/// Whether pages from this origin may send requests. The origin must be this service, or be allowed by CORS.
/// Programs other than browsers send no origin.
fn is_origin_allowed(gateway: &Gateway, head: &Parts, origin: SentField<'_>) -> bool {
    let Some(sent) = origin.first else {
        return true;
    };
    if origin.is_repeated {
        return false;
    }
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| head.uri.authority().map(http::uri::Authority::as_str));
    let root = gateway.notice.links.root();
    let is_own = sent
        .to_str()
        .is_ok_and(|origin| is_own_origin(origin, root, host));
    let cors = gateway.cors.as_ref();
    is_own || cors.is_some_and(|cors| cors.allows(&head.headers).is_some())
}

fn is_json(content_type: SentField<'_>) -> bool {
    let value = content_type
        .first
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = value.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case(JSON)
}

fn json_response(body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    describe(response.headers_mut(), &body);
    *response.body_mut() = Full::new(body);
    response
}

fn failed(id: Option<&str>, error: &RpcError, status: StatusCode) -> McpReply {
    let mut response = json_response(rpc_reply::error(id, error));
    *response.status_mut() = status;
    (response, McpOutcome::Rejected)
}

/// The response to a notification.
fn accepted() -> McpReply {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::ACCEPTED;
    (response, McpOutcome::Listed)
}

fn preflight() -> McpReply {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(ALLOW, METHODS);
    (response, McpOutcome::Preflight)
}

fn refused(refusal: HttpRefusal, is_head: bool) -> Response<Full<Bytes>> {
    let (status, remedy) = refusal;
    let mut response = json_response(rpc_reply::error(
        None,
        &RpcError::new(RpcError::INVALID_REQUEST, remedy),
    ));
    *response.status_mut() = status;
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, METHODS);
    }
    if matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    ) {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("60"));
    }
    if is_head {
        *response.body_mut() = Full::default();
    }
    response
}
