//! Files that programs read without a key: `security.txt`, the API catalog, `robots.txt`.

use crate::{
    client::Response,
    world::{World, good},
};

const SECURITY_TXT: &str = "/.well-known/security.txt";
const API_CATALOG: &str = "/.well-known/api-catalog";
const ON: &str = "service.base_url = \"https://api.example\"\nsite.security_contact = \"mailto:security@example.org\"\n\
    site.terms_url = \"https://example.org/terms\"\n";

fn text(response: &Response) -> &str {
    std::str::from_utf8(&response.body).unwrap()
}

#[tokio::test]
async fn pages_that_are_not_configured_are_unknown_paths_and_not_linked() {
    let world = World::new().await;
    let key = world.customer("free").await.key;
    for path in [
        SECURITY_TXT,
        API_CATALOG,
        "/account",
        "/account/sign-in",
        "/account/confirm",
        "/status",
        "/status.atom",
    ] {
        assert_eq!(
            world.get(path).send().await.code(),
            "api_key_required",
            "{path}"
        );
        assert_eq!(world.get_by(&key, path).await.code(), "not_found", "{path}");
    }
    for path in ["/", "/docs"] {
        let response = world.get(path).send().await;
        for link in ["href=\"/status\"", "/account"] {
            assert!(!text(&response).contains(link), "{path} {link}");
        }
    }
}

#[tokio::test]
async fn the_proof_for_the_registry_of_tools_is_the_setting_and_is_reloaded() {
    let mut world = World::with("", good).await;
    let path = "/.well-known/mcp-registry-auth";
    assert_eq!(world.get(path).send().await.status, 401);
    for proof in ["v=MCPv1; k=ed25519; p=AAAA", "v=MCPv1; k=ed25519; p=BBBB"] {
        let settings = format!("mcp.registry_auth = \"{proof}\"");
        world.reload(&settings).await.unwrap();
        let response = world.get(path).send().await;
        assert_eq!((response.status, text(&response)), (200, proof));
        assert_eq!(response.header("content-type"), "text/plain; charset=utf-8");
    }
}

#[tokio::test]
async fn start_page_and_documentation_are_markdown_for_clients_that_prefer_it() {
    let world = World::new().await;
    let markdown = world.get("/docs.md").send().await;
    for path in ["/", "/docs"] {
        for (accept, kind) in [
            ("text/markdown", "text/markdown; charset=utf-8"),
            (
                "text/markdown, text/html, */*",
                "text/markdown; charset=utf-8",
            ),
            ("text/html, text/markdown;q=0.9", "text/html; charset=utf-8"),
            ("text/html, */*;q=0.8", "text/html; charset=utf-8"),
            ("*/*", "text/html; charset=utf-8"),
        ] {
            let page = world.get(path).header("Accept", accept).send().await;
            assert_eq!(
                (page.status, page.header("content-type")),
                (200, kind),
                "{accept}"
            );
            assert!(page.header("vary").ends_with(", Accept"), "{accept}");
            assert_eq!(
                page.body == markdown.body,
                kind.starts_with("text/markdown")
            );
        }
    }
    let llms = world
        .get("/llms.txt")
        .header("Accept", "text/markdown")
        .send()
        .await;
    assert_eq!(llms.header("content-type"), "text/plain; charset=utf-8");
}

#[tokio::test]
async fn the_default_license_names_the_service_and_its_address() {
    let world = World::with(
        "service.name = \"Scores\"\nservice.base_url = \"https://api.example/api/v1\"",
        good,
    )
    .await;
    let free = world.customer("free").await;
    for path in ["/api/v1/models", "/api/v1/me"] {
        assert_eq!(
            world.get_as(&free, path).await.json()["license"],
            "Benchmark data by Scores (https://api.example). Attribution with a link to the service is required wherever the data \
             is displayed."
        );
    }
}

#[tokio::test]
async fn discovery_catalog_links_to_pages_that_exist() {
    let on = "site.status_page = true\nmcp.enabled = true\nsite.docs_url = \"https://example.org/guide\"";
    let settings = format!("{ON}{on}");
    let world = World::with(&settings, good).await;
    let response = world.get(API_CATALOG).send().await;
    assert_eq!(
        response.header("link"),
        "</.well-known/api-catalog>; rel=\"api-catalog\""
    );
    let catalog: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
    let api = &catalog["linkset"][1];
    assert_eq!(api["anchor"], "https://api.example/api/v1");
    assert_eq!(
        catalog["linkset"][0]["item"][1]["href"],
        "https://api.example/mcp"
    );
    assert_eq!(
        api["service-doc"][1]["href"],
        "https://api.example/llms.txt"
    );
    assert_eq!(api["service-doc"][2]["href"], "https://example.org/guide");
    assert_eq!(
        api["terms-of-service"][0]["href"],
        "https://example.org/terms"
    );
    for relation in ["service-desc", "service-doc", "status"] {
        let href = api[relation][0]["href"].as_str().unwrap();
        let page = world
            .get(href.strip_prefix("https://api.example").unwrap())
            .send()
            .await;
        let kind = api[relation][0]["type"].as_str().unwrap();
        assert!(
            page.status == 200 && page.header("content-type").starts_with(kind),
            "{href}"
        );
    }
}

#[tokio::test]
async fn discovery_settings_are_in_the_api_description_and_are_reloaded() {
    let mut world = World::with(
        &format!("{ON}site.contact_email = \"api@example.org\""),
        good,
    )
    .await;
    let read = async |world: &World| -> serde_json::Value {
        serde_json::from_slice(&world.get("/openapi.json").send().await.body).unwrap()
    };
    let description = read(&world).await;
    assert_eq!(description["info"]["contact"]["email"], "api@example.org");
    assert_eq!(
        description["info"]["termsOfService"],
        "https://example.org/terms"
    );
    assert!(
        description["info"]["description"]
            .as_str()
            .unwrap()
            .contains("`/.well-known/security.txt`")
    );
    let changed = world
        .reload("site.contact_name = \"API team\"\n")
        .await
        .unwrap();
    assert!(
        changed.at_once.contains(&"site.contact_name".to_owned()),
        "{changed:?}"
    );
    assert_eq!(
        read(&world).await["info"]["contact"],
        serde_json::json!({ "name": "API team" })
    );
    assert_eq!(
        world.get(SECURITY_TXT).send().await.code(),
        "api_key_required"
    );
}
