//! Panics leak no key: in the message, the backtrace, the logs and the response.

use std::{
    backtrace::Backtrace,
    io::Write,
    net::Ipv4Addr,
    panic::{set_hook, take_hook},
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::Request;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use pollster::block_on as wait;
use scoregate::{
    gateway::{AccessLog, ConnectionTrust, LogSampling, Peer},
    upstream::{Upstream, UpstreamFuture as Answered, UpstreamRequest},
};
use scoregate_observe::telemetry::{access_log_writer::AccessLogWriter, metrics::Counter};
use tracing::{
    Dispatch,
    dispatcher::{set_default, with_default},
};

use crate::{in_process_upstream::behind, world::World};

use super::key_positions::Canary;

/// The test fails if the log is not written within this time.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Captured output.
#[derive(Clone, Default)]
struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl CapturedLog {
    fn all(&self) -> Vec<u8> {
        self.0.lock().clone()
    }
}

impl Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Captures the panic messages of all tests, which are also printed as usual.
fn panics() -> CapturedLog {
    static CAPTURED: OnceLock<CapturedLog> = OnceLock::new();
    let listen = || {
        let output = CapturedLog::default();
        let default_hook = take_hook();
        let to = output.clone();
        set_hook(Box::new(move |panic| {
            drop(write!(
                to.clone(),
                "{panic}\n{}\n",
                Backtrace::force_capture()
            ));
            default_hook(panic);
        }));
        output
    };
    CAPTURED.get_or_init(listen).clone()
}

/// An in-process backend that panics with everything it received.
struct PanickingUpstream;

impl Upstream for PanickingUpstream {
    fn fetch<'a>(&'a self, request: UpstreamRequest<'a>) -> Answered<'a> {
        Box::pin(async move { panic!("unexpected upstream request {request:?}") })
    }

    fn address(&self) -> String {
        "in a test".into()
    }

    fn lists_all_models(&self) -> bool {
        false
    }
}

/// The fields of a request that contains the key in every position.
fn fields(key: &str) -> [(&'static str, String); 7] {
    [
        ("x-api-key", key.to_owned()),
        ("x-request-id", format!("x-{key}")),
        ("user-agent", key.to_owned()),
        ("cookie", format!("key={key}")),
        ("referer", format!("https://localhost/{key}")),
        ("traceparent", format!("00-{key}-1-01")),
        ("x-made-up", key.to_owned()),
    ]
}

/// The response to a request whose handler panics. No handler panics on a runtime. Without a runtime, starting the
/// fetch panics.
async fn outside_of_any_runtime(world: &World, canary: &Canary, events: &Dispatch) -> Vec<u8> {
    let gateway = world.running.gateway();
    let events = events.clone();
    let key = &canary.key;
    let mut request =
        Request::get(format!("/api/v1/providers?{key}={key}")).header("host", "localhost");
    for (name, value) in fields(key) {
        request = request.header(name, value);
    }
    let (head, ()) = request.body(()).unwrap().into_parts();
    let peer = Peer {
        address: Ipv4Addr::LOCALHOST.into(),
        is_encrypted: false,
        is_tool_call: false,
    };
    let handle = move || {
        with_default(&events, || {
            wait(gateway.handle(&head, false, peer, &ConnectionTrust::default()))
        })
    };
    let (head, body) = std::thread::spawn(handle).join().unwrap().into_parts();
    assert_eq!(head.status, 500);
    [
        format!("{:?}", head.headers).as_bytes(),
        &body.collect().await.unwrap().to_bytes(),
    ]
    .concat()
}

#[tokio::test]
async fn a_panic_leaks_no_key_in_its_message_backtrace_response_or_log() {
    for json in [false, true] {
        let panics = panics();
        let events = CapturedLog::default();
        let log_lines = CapturedLog::default();
        let to = events.clone();
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
        let events_to = Dispatch::new(subscriber.with_writer(move || to.clone()).finish());
        let _listening = set_default(&events_to);
        let mut world = World::new().await;
        let customer = world.paid().await;
        let canary = Canary::new(&customer.key);
        let lines =
            Arc::new(AccessLogWriter::start(json, Counter::noop(), log_lines.clone()).unwrap());
        let log = AccessLog::new(
            lines,
            LogSampling {
                slow: Duration::ZERO,
                one_in: 1,
            },
        );
        let stop = behind(&mut world, Arc::new(PanickingUpstream), log).await;
        let named = format!("/api/v1/models/x-{}", canary.key);
        for (target, status) in [
            ("/api/v1/index", 502),
            ("/api/v1/alerts", 502),
            (&named, 404),
        ] {
            let mut request = world.get(&format!("{target}?{key}={key}", key = canary.key));
            for (name, value) in fields(&canary.key) {
                request = request.header(name, &value);
            }
            let response = request.send().await;
            assert_eq!(response.status, status, "{target}");
            canary.is_not_in(target, format!("{:?}", response.headers).as_bytes());
            canary.is_not_in(target, &response.body);
        }
        canary.is_not_in(
            "the 500",
            &outside_of_any_runtime(&world, &canary, &events_to).await,
        );
        assert_eq!(world.counted("scoregate_panics_total").await, 3);
        world
            .running
            .gateway()
            .recorders
            .request_log
            .finish(TIMEOUT);
        for (what, text, words) in [
            (
                "a panic",
                &panics,
                "unexpected upstream request UpstreamRequest",
            ),
            ("a panic", &panics, "there is no reactor running"),
            ("the log", &events, "a fetch panicked"),
            ("the access log", &log_lines, "internal_error"),
        ] {
            let text = text.all();
            assert!(
                String::from_utf8_lossy(&text).contains(words),
                "{what}: {words} is missing"
            );
            canary.is_not_in(what, &text);
        }
        canary.is_not_in("/metrics", world.scrape().await.as_bytes());
        stop.cancel();
    }
}
