//! Compares the API description with the settings of the service.

use serde_json::{Value, json};

use crate::pages::{PagesConfig, SiteLinks};
use scoregate_base::routes::{Param, PublishedField, PublishedKind, Route, SourceDescription};

use super::{
    document::public_paths,
    tests::{described, validator},
    *,
};

#[test]
fn items_of_a_mapped_endpoint_are_open_objects_with_the_listed_fields() {
    let status = Route::Models
        .endpoint()
        .item
        .iter()
        .find(|field| field.name == "status")
        .unwrap();
    let listed = |name: &str, kind| PublishedField {
        name: name.into(),
        kind,
    };
    let of_models = vec![
        listed("status", PublishedKind::Standard(status)),
        listed("rank", PublishedKind::Number),
        listed("code", PublishedKind::Text),
        listed("unit", PublishedKind::Constant("\"points\"".into())),
        listed("other", PublishedKind::Any),
    ];
    let fields = [(Route::Models, of_models), (Route::Index, vec![])].into();
    let ignored = [(Route::Models, vec![Param::Period, Param::SortBy])].into();
    let config = PagesConfig {
        source: SourceDescription { fields, ignored },
        ..PagesConfig::default()
    };
    let document: Value = serde_json::from_str(&document(&config)).unwrap();
    let items = |name: &str| validator(&document, &schemas::reference("schemas", name));
    for (item, is_valid) in [
        (json!({}), true),
        (
            json!({"id": 17, "currentScore": [], "latestScore": {}}),
            true,
        ),
        (
            json!({"status": "good", "rank": null, "code": "x", "unit": "points", "other": [1]}),
            true,
        ),
        (json!({"status": "fine"}), false),
        (json!({"rank": "1"}), false),
        (json!({"code": 1}), false),
        (json!({"unit": "percent"}), false),
        (json!([]), false),
    ] {
        assert_eq!(items("ModelsItem").is_valid(&item), is_valid, "{item}");
    }
    assert!(items("IndexItem").is_valid(&json!({"value": "x", "history": 7})));
    assert!(
        !items("DriftItem").is_valid(&json!({"regime": 7})),
        "not mapped"
    );
    let ignored = "The data source ignores `period` and `sortBy`: all values return the same data.";
    let about = |path: &str| {
        document["paths"][path]["get"]["description"]
            .as_str()
            .unwrap()
    };
    assert_eq!(
        about("/models"),
        format!("`data` has any number of items. {ignored}")
    );
    assert_eq!(about("/index"), "`data` has one item.");
    assert_eq!(
        about("/models/{id}"),
        "`data` has one item. Only some tiers see `latestScore`. By default, these are the paid tiers."
    );
    let example = &document["components"]["schemas"]["ModelsAnswer"]["examples"][0];
    assert_eq!(
        example["data"],
        json!([{"status": "excellent", "unit": "points"}])
    );
    assert!(items("ModelsAnswer").is_valid(example));
}

#[test]
fn contact_terms_and_external_documentation_are_those_of_the_settings() {
    let plain = described();
    assert_eq!(plain["info"].get("contact"), None);
    assert_eq!(
        (
            plain["info"].get("termsOfService"),
            plain.get("externalDocs")
        ),
        (None, None)
    );
    let config = PagesConfig {
        base_url: Some("https://x.example/".into()),
        ..PagesConfig::default()
    };
    let own: Value = serde_json::from_str(&document(&config)).unwrap();
    assert_eq!(
        own["info"]["termsOfService"],
        "https://x.example/docs#terms"
    );
    assert_eq!(
        own["info"]["license"]["url"],
        "https://x.example/docs#terms"
    );
    assert_eq!(own["externalDocs"]["url"], "https://x.example/docs");
    let links = SiteLinks {
        contact_name: Some("API \"team\"".into()),
        contact_email: Some("api@example.org".into()),
        terms_url: Some("https://example.org/terms".into()),
        docs_url: Some("https://example.org/guide".into()),
        ..SiteLinks::default()
    };
    let config = PagesConfig {
        links,
        ..PagesConfig::default()
    };
    let set: Value = serde_json::from_str(&document(&config)).unwrap();
    assert_eq!(
        set["info"]["contact"],
        json!({ "name": "API \"team\"", "email": "api@example.org" })
    );
    assert_eq!(set["info"]["termsOfService"], "https://example.org/terms");
    assert_eq!(set["externalDocs"]["url"], "https://example.org/guide");
}

#[test]
fn public_paths_are_listed_if_they_exist() {
    let config = PagesConfig {
        status_page: true,
        base_url: Some("https://x.example".into()),
        links: SiteLinks {
            security_contact: Some("mailto:a@x.example".into()),
            ..SiteLinks::default()
        },
        ..PagesConfig::default()
    };
    let more = [
        "/status",
        "/status.atom",
        "/.well-known/api-catalog",
        "/.well-known/security.txt",
    ];
    for path in more {
        assert!(
            public_paths(&config).contains(&format!("`{path}`")),
            "{path}"
        );
        assert!(
            !public_paths(&PagesConfig::default()).contains(path),
            "{path}"
        );
    }
    let plain = "`/`, `/docs`, `/docs.md`, `/llms.txt`, `/openapi.json`, `/healthz`, `/robots.txt` and `/favicon.ico`";
    assert_eq!(public_paths(&PagesConfig::default()), plain);
}
