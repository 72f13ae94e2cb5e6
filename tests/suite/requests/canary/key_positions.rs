//! Every position of a request that can contain a key, on purpose or by mistake; and the search for a key in a text.

/// Length of the prefix that may be shown.
const SHOWN: usize = 12;

/// Headers that the gateway, a proxy, a browser or a tracer reads, and two unknown headers.
const NAMES: [&str; 42] = [
    "Authorization",
    "X-API-Key",
    "X-Request-Id",
    "X-Correlation-Id",
    "X-Operator",
    "traceparent",
    "tracestate",
    "baggage",
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Real-IP",
    "Via",
    "Host",
    "Cookie",
    "Referer",
    "Origin",
    "Access-Control-Request-Method",
    "Access-Control-Request-Headers",
    "User-Agent",
    "From",
    "Accept",
    "Accept-Encoding",
    "Accept-Language",
    "If-None-Match",
    "If-Match",
    "If-Modified-Since",
    "If-Range",
    "Range",
    "Cache-Control",
    "Content-Type",
    "Content-Encoding",
    "Content-Length",
    "Transfer-Encoding",
    "Expect",
    "Upgrade",
    "HTTP2-Settings",
    "TE",
    "Trailer",
    "Proxy-Authorization",
    "X-Made-Up",
];

/// A key that must not leak.
pub struct Canary {
    pub key: String,
    /// Its fragments, in lower case.
    parts: Vec<String>,
}

impl Canary {
    /// Twelve consecutive characters, plain or percent-encoded, are a leak, except for the prefix that may be
    /// shown.
    pub fn new(key: &str) -> Self {
        let secret = key[SHOWN..].to_lowercase();
        let plain = secret
            .as_bytes()
            .windows(12)
            .map(|part| String::from_utf8(part.to_vec()).unwrap());
        let parts = plain.flat_map(|part| [encoded(&part), part]).collect();
        Self {
            key: key.to_owned(),
            parts,
        }
    }

    /// Fails if a text contains the key.
    pub fn is_not_in(&self, what: &str, text: &[u8]) {
        let text = String::from_utf8_lossy(text).to_lowercase();
        let seen = self.parts.iter().find_map(|part| text.find(part.as_str()));
        if let Some(at) = seen {
            let [from, to] = [at.saturating_sub(300), (at + 100).min(text.len())];
            let around = text.get(from..to).unwrap_or(&text);
            panic!("{what} leaks {}: …{around}…", self.key);
        }
    }

    pub fn targets(&self) -> Vec<String> {
        let key = &self.key;
        let encoded = encoded(&self.key);
        let below = [
            "",
            "api/v1/",
            "api/v1/models/",
            "api/v1/models/x-",
            "api/v1/drift/",
            "docs/",
        ];
        let paths = below
            .iter()
            .flat_map(|path| [format!("/{path}{key}"), format!("/{path}{encoded}")]);
        let queries = [
            "key",
            "api_key",
            "token",
            "access_token",
            "period",
            "sortBy",
            "limit",
            "task",
        ]
        .iter()
        .flat_map(|name| {
            ["models", "incidents", "index", "me"]
                .map(|path| format!("/api/v1/{path}?{name}={key}"))
        });
        let odd = [
            format!("/api/v1/models/{key}/history"),
            format!("/api/v1/models/{key}-x"),
            format!("/api/v1/models/{key}{key}"),
            format!("/api/v1/models/{key}%00"),
            format!("/api/v1/models/{key}?period={key}"),
            format!("/api/v1/models?{key}"),
            format!("/api/v1/models?{key}={key}"),
            format!("/api/v1/models?period={encoded}&{encoded}=x"),
            format!("/docs?{key}#{key}"),
            format!("/{key}/../docs"),
            format!("//{key}"),
            format!("http://{key}/api/v1/models"),
            format!("http://{key}@localhost/api/v1/models"),
            format!("http://localhost/{key}"),
            format!("{key}:443"),
            key.clone(),
        ];
        paths.chain(queries).chain(odd).collect()
    }

    pub fn fields(&self) -> Vec<(String, String)> {
        let key = &self.key;
        let values = [
            key.clone(),
            format!("x-{key}"),
            format!("{key}.1"),
            format!("Bearer {key}"),
            format!("Basic {key}"),
            format!("\"{key}\""),
            format!("key={key}; {key}, for={key}"),
            format!("00-{key}-b7ad6b7169203331-01"),
            format!("https://{key}.example"),
        ];
        let every = |name: &&str| values.clone().map(|value| ((*name).to_owned(), value));
        let named = [
            (key.clone(), "x".to_owned()),
            (format!("X-{key}"), key.clone()),
        ];
        NAMES.iter().flat_map(every).chain(named).collect()
    }

    /// Complete HTTP/1.1 requests with the key in each position, and with it as their credential. A generated key is
    /// also recognized in other positions. In that case the credential is `another` key, or there is none.
    pub fn requests(&self, another: Option<&str>) -> Vec<String> {
        let key = &self.key;
        let own = format!("X-API-Key: {key}\r\n");
        let others =
            another.map(|other| [String::new(), format!("Authorization: Bearer {other}\r\n")]);
        let with_own_key = [own.clone(), format!("Authorization: bearer {key}\r\n{own}")];
        let mut requests = Vec::new();
        for credential in others.into_iter().flatten().chain(with_own_key) {
            let plain = format!("HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{credential}");
            requests.extend(
                self.targets()
                    .iter()
                    .map(|target| format!("GET {target} {plain}\r\n")),
            );
            for (name, value) in self.fields() {
                requests.push(format!("GET /api/v1/index {plain}{name}: {value}\r\n\r\n"));
            }
            requests.extend([
                format!("{key} /api/v1/models {plain}\r\n"),
                format!("CONNECT {key}:443 {plain}\r\n"),
                format!("OPTIONS /{key} {plain}Origin: https://{key}.example\r\n\r\n"),
                format!("HEAD /api/v1/models/x-{key} {plain}X-Request-Id: x-{key}\r\n\r\n"),
                format!("GET /{key} {plain}Accept: application/problem+json\r\nX-Request-Id: {key}-1\r\n\r\n"),
                format!("GET /{key} {plain}X-Folded: x\r\n {key}\r\n\r\n"),
                format!("POST /api/v1/models {plain}Content-Length: {}\r\n\r\n{key}", key.len()),
                format!(
                    "POST / {plain}Transfer-Encoding: chunked\r\nTrailer: X-Last\r\n\r\n1;{key}=\"{key}\"\r\nx\r\n0\r\n\
                     X-Last: {key}\r\n\r\n"
                ),
            ]);
        }
        requests.extend([
            format!("GET / HTTP/1.1\r\n{own}{own}Host: localhost\r\nConnection: close\r\nX-Request-Id: {key}\r\n\r\n"),
            format!("GET / HTTP/{key}\r\n\r\n"),
            format!("GET /{key}\r\n\r\n"),
            format!("{key}\r\n\r\n"),
            format!("GET / HTTP/1.1\r\n{key}\r\n\r\n"),
            format!("GET / HTTP/1.1\r\nHost: localhost\r\nX-Broken\u{0}: {key}\r\n\r\n"),
            format!("PROXY TCP4 {key} 127.0.0.1 1 2\r\nGET / HTTP/1.1\r\nHost: {key}\r\n\r\n"),
        ]);
        requests
    }
}

fn encoded(text: &str) -> String {
    text.bytes()
        .fold(String::new(), |text, byte| text + &format!("%{byte:02x}"))
}
