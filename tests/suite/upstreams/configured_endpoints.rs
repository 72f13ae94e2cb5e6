//! Endpoints that settings add: from the request to the backend, and everything that is derived from their definition.

use std::time::Duration;

use scoregate::config::{read_text, resolve};
use serde_json::json;

use crate::{
    backend::{Act, Received, json as answer, respond},
    world::World,
};

const SETTINGS: &str = r#"
[upstream]
url = "{backend}"

[endpoints.prices]
path = "/prices/:id"
summary = "Prices of one model."
parameters = ["period"]
one = true
[[endpoints.prices.fields]]
name = "modelId"
type = "string"
meaning = "Identifier of the model."
example = "m-1"
[[endpoints.prices.fields]]
name = "input"
type = "number"
unit = "US dollars per million tokens"
meaning = "Price of input tokens."
optional = true
example = 2.5
[[endpoints.prices.fields]]
name = "discounts"
type = "objects"
meaning = "Discounts by volume."
fields = [{ name = "from", type = "integer", meaning = "Number of tokens." }]

[endpoints.regions]
path = "/reference/regions"
summary = "Regions in which models are served."
parameters = [{ name = "unit", values = ["second", "token"], default = "token", meaning = "Unit of the prices." }, "limit"]
[[endpoints.regions.fields]]
name = "region"
type = "words"
meaning = "The region."
words = ["eu", "us"]

[mapping.prices]
path = "/v2/price?model={id}&range={period}"
data = "/row"
shape = "object"
[freshness.regions]
ttl = "5m"
stale_while_revalidate = "1s"
"#;
const PRICE: &str = r#"{"modelId":"m-1","input":2.50,"discounts":[]}"#;
const TOKEN: (&str, &str) = ("Authorization", "Bearer a-token-of-the-side-port");

fn backend(received: &Received) -> Act {
    if received.target().contains("/v2/price?model=m-1&") {
        return answer(&format!(r#"{{"row":{PRICE}}}"#));
    }
    if received.target().contains("/reference/regions?limit=") {
        return answer(r#"{"data":[{"region":"eu"}]}"#);
    }
    respond(
        "404 Not Found",
        &[("content-type", "application/json")],
        r#"{"error":"no such model"}"#,
    )
}

async fn world() -> World {
    World::with(SETTINGS, backend).await
}

async fn world_with_a_token() -> World {
    World::with(
        &format!("admin.token = \"a-token-of-the-side-port\"\n{SETTINGS}"),
        backend,
    )
    .await
}

#[tokio::test]
async fn a_configured_endpoint_is_mapped_cached_and_priced_like_a_compiled_one() {
    let world = world().await;
    let customer = world.paid().await;
    let before = world.left(&customer);
    let first = world
        .get_as(&customer, "/api/v1/prices/m-1?period=7d")
        .await;
    let body = String::from_utf8(first.body.clone()).unwrap();
    assert!(
        first.status == 200 && body.ends_with(&format!(r#","data":[{PRICE}]}}"#)),
        "{body}"
    );
    assert_eq!(
        (first.json()["period"].as_str(), &first.json()["sort_by"]),
        (Some("7d"), &json!(null))
    );
    assert!(
        world.backend.received()[0]
            .target()
            .ends_with("/v2/price?model=m-1&range=7d")
    );

    let again = world
        .get_as(&customer, "/api/v1/prices/m-1?period=7d&limit=x")
        .await;
    assert!(
        again.header("cache-status").contains("; hit"),
        "an unknown parameter is not part of a document key"
    );
    assert_eq!(again.body, first.body);
    let known = world.get("/api/v1/prices/m-1?period=7d").key(&customer.key);
    let known = known
        .header("If-None-Match", first.header("etag"))
        .send()
        .await;
    assert_eq!(known.status, 304);
    assert_eq!(world.backend.received().len(), 1);
    assert_eq!(
        before.spent(world.left(&customer)),
        (3, 2, 0),
        "two responses with data and a 304"
    );

    // Models that are in no list are fetched at most once a second.
    world.pass(Duration::from_secs(1));
    let default = world.get_as(&customer, "/api/v1/prices/m-1").await;
    assert_eq!(
        (default.status, default.json()["period"].as_str()),
        (200, Some("latest"))
    );
    let regions = world.get_as(&customer, "/api/v1/reference/regions").await;
    assert_eq!(
        (&regions.json()["count"], &regions.json()["period"]),
        (&json!(1), &json!(null))
    );
    assert!(
        world.backend.received()[2]
            .target()
            .ends_with("/reference/regions?limit=50&unit=token")
    );
    let series = "scoregate_requests_total{endpoint=\"prices\",class=\"2xx\"}";
    assert_eq!(world.counted(series).await, 3);
}

#[tokio::test]
async fn a_configured_endpoint_refuses_what_a_compiled_one_refuses() {
    let world = world().await;
    let free = world.free().await;
    let paid = world.paid().await;
    for (customer, target, status, code) in [
        (&paid, "/prices/m-1?period=7D", 400, "invalid_period"),
        (
            &paid,
            "/prices/m-1?period=7d&period=7d",
            400,
            "invalid_period",
        ),
        (&paid, "/prices/m%00?period=7d", 400, "invalid_model_id"),
        (&paid, "/reference/regions?limit=0", 400, "invalid_limit"),
        (
            &paid,
            "/reference/regions?unit=Token",
            400,
            "invalid_parameter",
        ),
        (
            &paid,
            "/reference/regions?unit=token&unit=token",
            400,
            "invalid_parameter",
        ),
        (
            &paid,
            "/reference/regions?unit=&limit=0",
            400,
            "invalid_limit",
        ),
        (&free, "/prices/m-1?period=latest", 403, "plan_required"),
        (&paid, "/prices/m-1/", 404, "not_found"),
        (&paid, "/reference", 404, "not_found"),
        (&paid, "/prices/m-2", 404, "model_not_found"),
    ] {
        let got = world.get_as(customer, &format!("/api/v1{target}")).await;
        assert_eq!(
            (got.status, got.code().as_str()),
            (status, code),
            "{target}"
        );
    }
    assert_eq!(
        world.get("/api/v1/prices/m-1").send().await.code(),
        "api_key_required"
    );
    assert_eq!(
        world.backend.received().len(),
        1,
        "only the unknown model is fetched"
    );
}

#[tokio::test]
async fn values_of_an_own_parameter_are_different_documents_and_its_default_is_that_of_a_request_without_it()
 {
    let world = world_with_a_token().await;
    let customer = world.paid().await;
    let get = async |query: &str| {
        world
            .get_as(&customer, &format!("/api/v1/reference/regions{query}"))
            .await
    };
    for (query, sent) in [
        ("", "limit=50&unit=token"),
        ("?unit=second", "limit=50&unit=second"),
        ("?unit=second&limit=7", "limit=7&unit=second"),
    ] {
        assert!(
            get(query).await.header("cache-status").contains("fwd=miss"),
            "{query}"
        );
        let received = world.backend.received();
        assert!(received.last().unwrap().target().ends_with(sent), "{query}");
    }
    for query in [
        "?unit=token",
        "?unit=%74oken",
        "?limit=50&unit=token&x=y",
        "?unit=second",
        "?unit=second&limit=7",
    ] {
        assert!(
            get(query).await.header("cache-status").contains("; hit"),
            "{query}"
        );
    }
    let refused = get("?unit=hour").await;
    let body = refused.json();
    assert_eq!(
        (body["param"].as_str(), &body["allowed"]),
        (Some("unit"), &json!(["second", "token"]))
    );

    let purge = r#"{"documents":"/api/v1/reference/regions?unit=second","hard":true}"#;
    let purged = world.side("POST", "/v1/cache/purge", purge, &[TOKEN]).await;
    assert_eq!(
        (purged.status, &purged.json()["purged"]),
        (200, &json!(2)),
        "{purged:?}"
    );
    assert!(get("").await.header("cache-status").contains("; hit"));

    let world = world.restarted().await;
    let before = world.backend.received().len();
    assert_eq!(
        world
            .get_as(&customer, "/api/v1/reference/regions")
            .await
            .status,
        200
    );
    assert_eq!(
        world.backend.received().len(),
        before,
        "the document is found by its name on disk"
    );
}

#[tokio::test]
async fn documents_of_other_definitions_are_not_served_after_a_restart() {
    let world = world().await;
    let customer = world.paid().await;
    world
        .get_as(&customer, "/api/v1/prices/m-1?period=1m")
        .await;
    let more = "admin.token = \"a-token-of-the-side-port\"\n[endpoints.other]\npath = \"/other\"\nsummary = \"Another one.\"\n\
                fields = [{ name = \"a\", type = \"string\", meaning = \"A.\" }]";
    let world = world.restarted_with(more).await;
    let after = world
        .get_as(&customer, "/api/v1/prices/m-1?period=1m")
        .await;
    assert_eq!((after.status, world.backend.received().len()), (200, 2));

    let identity = |settings: &str| {
        let settings = settings.replace("{backend}", "http://127.0.0.1:4000");
        resolve(&read_text(&settings).unwrap())
            .unwrap()
            .upstream
            .identity()
    };
    assert_eq!(identity(SETTINGS), identity(SETTINGS));
    assert_ne!(
        identity(SETTINGS),
        identity(&with_paid_fields()),
        "a field that became restricted to paid callers"
    );
}

#[tokio::test]
async fn configured_endpoints_are_described_like_compiled_ones() {
    let world = world().await;
    let description = world.get("/openapi.json").send().await.json();
    let prices = &description["paths"]["/prices/{id}"];
    assert_eq!(prices["get"]["operationId"], "prices");
    assert_eq!(prices["get"]["summary"], "Prices of one model.");
    let item = &description["components"]["schemas"]["PricesItem"];
    assert_eq!(
        item["properties"]["input"]["description"],
        "Price of input tokens. Unit: US dollars per million tokens."
    );
    assert_eq!(
        item["properties"]["discounts"]["items"]["properties"]["from"]["type"],
        "integer"
    );
    let regions = &description["components"]["schemas"]["RegionsItem"]["properties"]["region"];
    assert_eq!(regions["enum"], json!(["eu", "us"]));
    let parameters = &description["paths"]["/reference/regions"]["get"]["parameters"];
    let unit = parameters
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "unit")
        .unwrap();
    assert_eq!(
        unit["schema"],
        json!({ "type": "string", "enum": ["second", "token"], "default": "token" })
    );
    assert_eq!(unit["description"], "Unit of the prices. Default: `token`.");
    let params = &description["components"]["schemas"]["Error"]["properties"]["param"]["enum"];
    assert_eq!(*params, json!(["id", "limit", "period", "sortBy", "unit"]));
    let docs = String::from_utf8(world.get("/docs").send().await.body).unwrap();
    for part in [
        "id=\"endpoint-prices\"",
        "Prices of one model.",
        "US dollars per million tokens",
        "2.5",
        "unit=token",
    ] {
        assert!(docs.contains(part), "{part}");
    }
}

fn with_paid_fields() -> String {
    let rebate = r#", { name = "rebate", type = "number", meaning = "Rebate.", paid = true }]"#;
    let margin = "[[endpoints.prices.fields]]\nname = \"margin\"\ntype = \"number\"\nmeaning = \"Margin.\"\npaid = true\n";
    let settings = SETTINGS.replace(
        "meaning = \"Number of tokens.\" }]",
        &format!("meaning = \"Number of tokens.\" }}{rebate}"),
    );
    settings.replace(
        "[endpoints.regions]",
        &format!("{margin}[endpoints.regions]"),
    )
}

#[tokio::test]
async fn a_time_for_paid_callers_is_not_the_time_of_the_free_form() {
    let settings = with_paid_fields().replace("margin", "lastUpdated");
    let row = r#"{"row":{"modelId":"m-1","discounts":[],"lastUpdated":"2026-11-21T11:37:00Z"}}"#;
    let world = World::with(
        &settings.replace(
            "type = \"number\"\nmeaning = \"Margin",
            "type = \"time\"\nmeaning = \"Margin",
        ),
        move |_| answer(row),
    )
    .await;
    let customer = world.free().await;
    let got = world
        .get_as(&customer, "/api/v1/prices/m-1?period=7d")
        .await;
    assert_eq!(
        (got.status, got.json()["generated_at"].as_str()),
        (200, Some("2026-11-21T12:00:00Z"))
    );
    assert!(!got.header("last-modified").contains("11:37"));
}
