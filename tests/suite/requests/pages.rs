//! The pages that need no key, OPTIONS and HEAD.

use std::time::Duration;

use crate::world::{World, good};

const ON: &str = "service.base_url = \"https://api.example\"\nsite.security_contact = \"mailto:security@example.org\"\n\
    guard.per_minute = 1";
const PAGES: [(&str, &str); 10] = [
    ("/", "text/html; charset=utf-8"),
    ("/docs", "text/html; charset=utf-8"),
    ("/docs.md", "text/markdown; charset=utf-8"),
    ("/llms.txt", "text/plain; charset=utf-8"),
    ("/openapi.json", "application/json"),
    ("/healthz", "text/plain; charset=utf-8"),
    ("/robots.txt", "text/plain; charset=utf-8"),
    ("/favicon.ico", "image/x-icon"),
    ("/.well-known/security.txt", "text/plain; charset=utf-8"),
    (
        "/.well-known/api-catalog",
        "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"",
    ),
];

#[tokio::test]
async fn pages_need_no_key_cost_nothing_and_a_current_copy_is_a_304() {
    let world = World::with(ON, good).await;
    for (page, kind) in PAGES {
        let get = world.get(page).send().await;
        assert_eq!(
            (get.status, get.header("content-type")),
            (200, kind),
            "{page}"
        );
        assert!(!get.body.is_empty(), "{page}");
        assert_eq!(
            get.number("content-length"),
            get.body.len() as u64,
            "{page}"
        );
        assert_eq!(get.number("x-ratelimit-remaining"), 1, "{page}");
        let head = world.request("HEAD", &format!("{page}?x")).send().await;
        assert_eq!((head.status, head.body.len()), (200, 0), "{page}");
        for name in [
            "content-type",
            "content-length",
            "etag",
            "link",
            "cache-control",
        ] {
            assert_eq!(head.header(name), get.header(name), "{page} {name}");
        }
        let etag = get.header("etag");
        assert_eq!(etag.is_empty(), page == "/healthz", "{page}: {etag}");
        let methods: &[&str] = if etag.is_empty() {
            &[]
        } else {
            &["GET", "HEAD"]
        };
        for method in methods {
            let request = world.request(method, page).header("If-None-Match", etag);
            let current = request.send().await;
            assert_eq!((current.status, current.body.len()), (304, 0), "{page}");
            for name in ["etag", "link"] {
                assert_eq!(current.header(name), get.header(name), "{page} {name}");
            }
        }
    }
    let pages = "scoregate_requests_total{endpoint=\"page\",class=\"2xx\"}";
    assert_eq!(world.counted(pages).await, 20);
    assert!(world.backend.received().is_empty());
}

#[tokio::test]
async fn pages_are_compressed_for_clients_that_accept_it() {
    let world = World::with_status("", good).await;
    for page in ["/", "/docs", "/openapi.json", "/status"] {
        let plain = world.get(page).send().await;
        assert_eq!(plain.header("content-encoding"), "", "{page}");
        let mut tags = vec![plain.header("etag").to_owned()];
        for (accepted, encoding) in [
            ("gzip", "gzip"),
            ("gzip, deflate, br", "br"),
            ("br;q=0, *", "gzip"),
        ] {
            let send = async |method: &str, tag: &str| {
                let request = world
                    .request(method, page)
                    .header("Accept-Encoding", accepted);
                request.header("If-None-Match", tag).send().await
            };
            let response = send("GET", "\"other\"").await;
            assert_eq!(
                (response.status, response.header("content-encoding")),
                (200, encoding),
                "{page}"
            );
            assert!(
                response.header("vary").starts_with("Accept-Encoding"),
                "{page}"
            );
            assert_eq!(response.decoded(), plain.body, "{page} {encoding}");
            assert!(
                response.body.len() * 2 < plain.body.len(),
                "{page} {encoding}: {}",
                response.body.len()
            );
            let head = send("HEAD", "\"other\"").await;
            assert_eq!(
                head.number("content-length"),
                response.body.len() as u64,
                "{page}"
            );
            let tag = response.header("etag");
            assert_eq!(send("GET", tag).await.status, 304, "{page} {encoding}");
            tags.push(tag.to_owned());
        }
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(
            tags.len(),
            3,
            "{page}: each encoding has its own entity tag"
        );
    }
}

#[tokio::test]
async fn pages_of_an_address_are_limited_by_their_bytes_and_nothing_else_is() {
    let world = World::with("guard.per_minute = 1", good).await;
    let key = world.customer("pro").await.key;
    let size = world
        .get("/openapi.json")
        .send()
        .await
        .body
        .len()
        .div_ceil(1024);
    // The limit is 15 MiB a minute, and one page has been sent.
    for _ in 1..15 * 1024 / size {
        assert_eq!(world.get("/openapi.json").send().await.status, 200);
    }
    let mut connection = world.connect().await;
    let refused = connection.send(world.get("/openapi.json")).await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (429, "too_many_refusals")
    );
    assert_eq!(refused.header("x-ratelimit-resource"), "guard");
    // The exhausted limit is not the guard, which counts requests.
    assert_eq!(
        (
            refused.json().get("limit"),
            refused.number("x-ratelimit-remaining")
        ),
        (None, 1)
    );
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with("Wait ")
            && message.contains(" This address has downloaded too many pages."),
        "{message}"
    );
    assert_eq!(refused.number("retry-after"), 1);
    // The connection is still open, and requests without a large body are answered.
    let etag = connection
        .send(world.request("HEAD", "/openapi.json"))
        .await
        .header("etag")
        .to_owned();
    let known = connection
        .send(world.get("/openapi.json").header("If-None-Match", &etag))
        .await;
    assert_eq!(known.status, 304);
    assert_eq!(connection.send(world.get("/healthz")).await.status, 200);
    assert_eq!(
        connection
            .send(world.get("/api/v1/models").key(&key))
            .await
            .status,
        200
    );
    // The guard for refused requests is separate.
    assert_eq!(connection.send(world.get("/nothing")).await.status, 401);
    world.pass(Duration::from_secs(refused.number("retry-after")));
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(world.get("/openapi.json").send().await.status);
    }
    assert_eq!(
        (statuses[0], statuses[2]),
        (200, 429),
        "the limit allows one or two pages per second"
    );
    assert!(world.refused("too_many_refusals").await >= 2);
}

#[tokio::test]
async fn pages_load_nothing_and_cannot_be_framed() {
    let world = World::new().await;
    for (page, forms) in [
        ("/", "form-action 'self'"),
        ("/docs", "form-action 'self'"),
        ("/openapi.json", "form-action 'none'"),
    ] {
        let response = world.get(page).send().await;
        let policy = response.header("content-security-policy");
        for part in [
            "default-src 'none'",
            "base-uri 'none'",
            forms,
            "frame-ancestors 'none'",
        ] {
            assert!(
                policy.split("; ").any(|known| known == part),
                "{page}: {policy}"
            );
        }
        let of = |name: &str| {
            policy
                .split("; ")
                .find(|part| part.starts_with(name))
                .unwrap_or_default()
        };
        assert_eq!(
            of("script-src").starts_with("script-src 'sha256-"),
            page == "/docs",
            "{page}: {policy}"
        );
        assert_eq!(
            of("connect-src"),
            if page == "/docs" {
                "connect-src 'self'"
            } else {
                ""
            },
            "{page}"
        );
        if page != "/openapi.json" {
            assert!(
                of("style-src").starts_with("style-src 'sha256-"),
                "{page}: {policy}"
            );
        }
        assert_eq!(
            response.header("x-content-type-options"),
            "nosniff",
            "{page}"
        );
        assert_eq!(response.header("referrer-policy"), "no-referrer", "{page}");
    }
    assert_eq!(
        world
            .get("/healthz")
            .send()
            .await
            .header("x-content-type-options"),
        "nosniff"
    );
}

#[tokio::test]
async fn pages_docs_with_a_slash_redirects_permanently_to_docs() {
    let world = World::with("guard.per_minute = 1", good).await;
    let mut connection = world.connect().await;
    for method in ["GET", "HEAD"] {
        for target in ["/docs/", "/docs/?api_key=secret"] {
            let response = connection.send(world.request(method, target)).await;
            assert_eq!(
                (response.status, response.header("location")),
                (308, "/docs"),
                "{method} {target}"
            );
            assert_eq!(
                (response.body.len(), response.number("content-length")),
                (0, 0)
            );
            assert_eq!(
                response.number("x-ratelimit-remaining"),
                1,
                "it costs nothing"
            );
        }
    }
    assert_eq!(
        connection
            .send(world.request("OPTIONS", "/docs/"))
            .await
            .status,
        204
    );
    assert_eq!(
        connection
            .send(world.request("POST", "/docs/"))
            .await
            .code(),
        "method_not_allowed"
    );
    assert_eq!(
        world
            .counted("scoregate_requests_total{endpoint=\"page\",class=\"3xx\"}")
            .await,
        4
    );
}

#[tokio::test]
async fn pages_the_icon_is_an_image_that_browsers_cache() {
    let world = World::new().await;
    let response = world.get("/favicon.ico").send().await;
    // An icon file with a single image of 16 by 16 pixels with 32 bits each, which fills the rest of the file.
    assert_eq!(response.body[..8], [0, 0, 1, 0, 1, 0, 16, 16]);
    let [length, at] =
        [14, 18].map(|from| u32::from_le_bytes(response.body[from..from + 4].try_into().unwrap()));
    assert_eq!((length + at) as usize, response.body.len());
    assert_eq!(response.header("cache-control"), "private, max-age=86400");
    let docs = String::from_utf8(world.get("/docs").send().await.body).unwrap();
    assert!(docs.contains("<link rel=\"icon\" href=\"/favicon.ico\">"));
}

#[tokio::test]
async fn the_docs_of_a_gateway_on_loopback_show_the_address_of_its_port_instead_of_a_placeholder() {
    let docs = async |settings: &str| {
        let world = World::with(settings, good).await;
        let body = world.get("/docs").send().await.body;
        (String::from_utf8(body).unwrap(), world.running.public)
    };
    let (local, port) = docs("").await;
    assert!(local.contains(&format!("http://{port}/api/v1")) && !local.contains("YOUR-HOST"));
    let (proxied, port) = docs("proxies.trusted = [\"127.0.0.1\"]").await;
    assert!(proxied.contains("https://YOUR-HOST/api/v1") && !proxied.contains(&port.to_string()));
    let (named, port) = docs("service.base_url = \"https://api.example\"").await;
    assert!(named.contains("https://api.example/api/v1") && !named.contains(&port.to_string()));
}
