//! The two-form rule: two complete systems whose backends differ only in data for paid callers get the same requests
//! and return identical bytes to Free callers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use scoregate_base::clock::Wall;
use scoregate_store::{ChangeKind, Store, StoreChange, StoredKey, sample};
use tempfile::TempDir;

use crate::{
    backend::{Act, Received, json, respond},
    balances::wide,
    client::{RequestBuilder, Response},
    world::{NOON, World},
};

const ATLAS: &str = "/api/v1/models/atlas";
const FREE: &str = "an-imported-key-of-a-free-application";
const PAID: &str = "an-imported-key-of-a-paying-application";
/// A Free application for requests outside the common script.
const PROBE: &str = "an-imported-key-of-a-curious-application";
const SETTINGS: &str = "keys.accept_imported = true";

/// The field of a detail for paid callers at each refresh of the backend: the field with its comma, or nothing.
type Secrets = [&'static str; 4];

/// The same data for Free callers, in any spelling and position of the field.
const SYSTEMS: [Secrets; 6] = [
    ["", "", "", ""],
    [r#""latestScore": 81.5, "#; 4],
    [
        r#""latestScore": 81.5, "#,
        r#""latestScore": 7, "#,
        "",
        r#""latestScore": null, "#,
    ],
    ["", r#""latest\u0053core": "unavailable", "#, "", ""],
    [
        r#""\u006catestScore": 99.99999999999999999999, "#,
        "",
        r#""latestScore":1,"#,
        "",
    ],
    [
        "\"latestScore\"\n: 0.0e1 ,\t",
        "",
        "",
        r#""latestScore": 1e1, "#,
    ],
];

/// The field nested deeper in the detail, where it can have any value.
const NESTED: &str = r#""l\u0061testScore" : {"}, {\"": [1, {"latestScore": "]"}]}, "#;

/// The backend of one system. Its current refresh selects the data of paid callers; Free data changes only at the
/// last.
fn backend(secrets: Secrets, refresh: Arc<AtomicUsize>) -> impl Fn(&Received) -> Act {
    move |received| {
        let at = refresh.load(Ordering::SeqCst);
        if received.target().ends_with("/nobody") {
            return respond("404 Not Found", &[], "");
        }
        let score = if at == 3 { "80.50" } else { "80.25" };
        let padding = "steady ".repeat(100);
        let secret = if received.target().ends_with("/models/atlas") {
            secrets[at]
        } else {
            ""
        };
        let odd = if secret.is_empty() { "" } else { NESTED };
        let item = format!(
            "{{ {secret}\"id\": \"atlas\", \"n\\u00e4me\": \"Atlas\", \"currentScore\": {score}, \"parts\": [ {{{odd}\"part\": \"speed\" }} , 1.50 ], \"note\": \"{padding}\" }}"
        );
        json(&format!(
            r#"{{"generated_at":"2026-11-21T1{}:00:00Z","data":[ {item} ]}}"#,
            2 + at
        ))
    }
}

/// A data directory with both applications, under the same identifiers in every system.
async fn prepared() -> TempDir {
    let directory = TempDir::new().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let at = Wall::parse_rfc3339(NOON).unwrap();
    for (id, tier, key) in [
        ("app_00000000001", "free", FREE),
        ("app_00000000002", "pro", PAID),
        ("app_00000000003", "free", PROBE),
    ] {
        let mut what = sample::creation(
            tier,
            StoredKey {
                created_at: at,
                ..sample::key(key)
            },
        );
        if let ChangeKind::Create { own, .. } = &mut what {
            *own = wide();
        }
        let application = id.parse().unwrap();
        store
            .change(StoreChange {
                at,
                who: "test".into(),
                owner: None,
                application,
                what,
                notice: None,
            })
            .await
            .unwrap();
    }
    directory
}

/// A system and the responses of its Free callers so far.
struct System {
    world: World,
    refresh: Arc<AtomicUsize>,
    seen: Vec<(String, Response)>,
}

impl System {
    async fn start(secrets: Secrets) -> Self {
        let refresh = Arc::new(AtomicUsize::new(0));
        let world = World::on(
            prepared().await,
            SETTINGS,
            backend(secrets, Arc::clone(&refresh)),
        )
        .await;
        Self {
            world,
            refresh,
            seen: Vec::new(),
        }
    }

    fn request(&self, method: &str, target: &str, key: &str) -> RequestBuilder {
        // Request ids are also in bodies, so each is replaced by its number in the script.
        self.world
            .request(method, target)
            .key(key)
            .header("X-Request-Id", &format!("place-{:04}", self.seen.len()))
    }

    async fn free(&mut self, method: &str, target: &str, headers: &[(&str, &str)]) -> Response {
        let mut request = self.request(method, target, FREE);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let response = request.send().await;
        self.seen
            .push((format!("{method} {target} {headers:?}"), response.clone()));
        response
    }

    async fn paid(&self, target: &str) {
        assert_eq!(self.request("GET", target, PAID).send().await.status, 200);
    }

    /// The backend's next refresh, after which the documents are fetched again.
    async fn refreshed(&mut self, after: Duration, targets: &[&str]) {
        self.refresh.fetch_add(1, Ordering::SeqCst);
        self.world.pass(after);
        for target in targets {
            self.free("GET", target, &[]).await;
            self.world.settled().await;
        }
    }

    /// Sends every request for the detail that a Free caller can send.
    async fn request_all(&mut self) {
        let mut tags = vec!["*".to_owned(), "\"unknown\"".to_owned()];
        for encoding in ["identity", "gzip", "br", "gzip;q=0.2, br;q=0.1", "*;q=0"] {
            self.paid(ATLAS).await;
            for method in ["GET", "HEAD"] {
                let response = self
                    .free(method, ATLAS, &[("Accept-Encoding", encoding)])
                    .await;
                assert!(
                    !String::from_utf8(response.decoded())
                        .unwrap_or_default()
                        .contains("latest")
                );
                tags.push(response.header("etag").to_owned());
            }
        }
        let full = self
            .request("GET", ATLAS, PAID)
            .send()
            .await
            .header("etag")
            .to_owned();
        for (_, earlier) in &self.seen {
            tags.push(earlier.header("etag").to_owned());
        }
        tags.sort();
        tags.dedup();
        tags.retain(|tag| !tag.is_empty());
        for tag in &tags {
            for method in ["GET", "HEAD"] {
                self.free(
                    method,
                    ATLAS,
                    &[("If-None-Match", tag), ("Accept-Encoding", "br")],
                )
                .await;
            }
        }
        let is_of_free_form = tags.contains(&full);
        for target in [
            "/api/v1/models/nobody",
            "/api/v1/models/%00",
            "/api/v1/models?period=latest",
            "/api/v1/nothing",
            "/api/v1/me",
            "/api/v1/models",
            "/api/v1/drift/atlas",
        ] {
            self.free("GET", target, &[("Accept", "application/problem+json")])
                .await;
        }
        // The entity tag of the paid form must have no special effect for a Free caller.
        let probe = self
            .request("GET", ATLAS, PROBE)
            .header("If-None-Match", &full)
            .send()
            .await;
        assert_eq!(probe.status == 304, is_of_free_form);
        self.world.settled().await;
    }
}

async fn driven(secrets: Secrets) -> Vec<(String, Response)> {
    let mut system = System::start(secrets).await;
    // The first request of each caller leases units, so that no later request waits for a lease.
    system.paid("/api/v1/index").await;
    system.free("GET", "/api/v1/index", &[]).await;
    // A shared miss: the paid caller's fetch is shared.
    system.world.backend.hold();
    let company = system.request("GET", ATLAS, PAID).begin().await;
    system.world.backend.has_received(2).await;
    let shared = system.request("GET", ATLAS, FREE).send();
    let (shared, ()) = tokio::join!(shared, async {
        system.world.has_waiters(2).await;
        system.world.backend.open();
    });
    drop(company);
    system.seen.push(("shared".into(), shared));
    system.request_all().await;
    // Two refreshes that change only paid data, and one that changes all data.
    for after in [
        Duration::from_hours(1),
        Duration::from_hours(26),
        Duration::from_hours(1),
    ] {
        system.refreshed(after, &[ATLAS]).await;
        system.request_all().await;
    }
    // The backend is down: stale while revalidating, stale on error, expired.
    system
        .world
        .backend
        .set_script(|_| respond("500 Internal Server Error", &[], ""));
    for hours in [2, 30, 24 * 8] {
        system.world.pass(Duration::from_hours(hours));
        for encoding in ["identity", "br"] {
            system
                .free("GET", ATLAS, &[("Accept-Encoding", encoding)])
                .await;
            system.world.settled().await;
        }
    }
    system.seen
}

#[tokio::test]
async fn data_for_paid_callers_changes_no_byte_of_any_free_response() {
    let expected = driven(SYSTEMS[0]).await;
    let statuses: std::collections::BTreeSet<u16> = expected
        .iter()
        .map(|(_, response)| response.status)
        .collect();
    assert_eq!(statuses, [200, 304, 400, 403, 404, 503].into());
    for word in [
        "detail=shared",
        "hit; ttl=",
        "detail=stale",
        "detail=refreshed",
    ] {
        assert!(
            expected
                .iter()
                .any(|(_, response)| response.header("cache-status").contains(word)),
            "{word}"
        );
    }
    for secrets in &SYSTEMS[1..] {
        let seen = driven(*secrets).await;
        assert_eq!(seen.len(), expected.len(), "{secrets:?}");
        for ((step, seen), (_, expected)) in seen.iter().zip(&expected) {
            let text =
                |response: &Response| String::from_utf8_lossy(&response.decoded()).into_owned();
            assert_eq!(text(seen), text(expected), "{secrets:?}: {step}");
            assert!(
                seen.fingerprint == expected.fingerprint,
                "{secrets:?}: {step}: {:?}, not {:?}",
                seen.headers,
                expected.headers
            );
        }
    }
}
