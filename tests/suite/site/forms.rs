//! Forms: accepted requests over HTTP/1.1 and HTTP/2, and the time limit.

use std::time::Duration;

use super::browser::Browser;
use crate::{connections::http2, world::World};

#[tokio::test]
async fn only_forms_of_eight_kib_are_accepted() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::of(&world);
    ann.visit("/account/sign-in").await;
    let csrf = ann.csrf();
    let body = |length: usize| {
        let body = format!("csrf={csrf}&email=ann%40example.org&more=");
        format!("{body}{}", "x".repeat(length - body.len()))
    };
    for (length, status) in [(8_192, 200), (8_193, 413), (200_000, 413)] {
        assert_eq!(
            ann.send("POST", "/account/sign-in", Some(&body(length)))
                .await
                .status,
            status,
            "{length}"
        );
    }
    for kind in [
        "application/json",
        "multipart/form-data; boundary=x",
        "text/plain",
        "",
    ] {
        let request =
            String::from_utf8(ann.request("POST", "/account/sign-in", Some(&body(200)))).unwrap();
        let request = request.replace("application/x-www-form-urlencoded", kind);
        let mut connection = world.connect().await;
        connection.write(request.as_bytes()).await;
        assert_eq!(connection.read(false).await.unwrap().status, 415, "{kind}");
    }
}

#[tokio::test]
async fn a_form_that_does_not_arrive_is_answered_after_five_seconds() {
    let world = World::with_sign_up("").await;
    let mut connection = world.connect().await;
    let head = "POST /account/sign-in HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n\
        Content-Length: 100\r\n\r\nemail=";
    connection.write(head.as_bytes()).await;
    let begun = world.clock.mono();
    let response = {
        let mut reading = std::pin::pin!(connection.read(false));
        loop {
            tokio::select! {
                biased;
                response = &mut reading => break response.unwrap(),
                () = tokio::task::yield_now() => world.pass(Duration::from_millis(1)),
            }
        }
    };
    assert_eq!((response.status, response.closes()), (408, true));
    assert!(world.clock.mono().since(begun) >= Duration::from_secs(5));
}

#[tokio::test]
async fn methods_that_a_page_does_not_accept_are_refused() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::of(&world);
    for (method, target, allowed) in [
        ("POST", "/account", "GET, HEAD"),
        ("GET", "/account/delete", "POST"),
        ("DELETE", "/account/sign-in", "GET, HEAD, POST"),
        ("OPTIONS", "/account", "GET, HEAD"),
    ] {
        let refused = ann.send(method, target, None).await;
        assert_eq!(
            (refused.status, refused.header("allow")),
            (405, allowed),
            "{method} {target}"
        );
    }
    let head = ann.send("HEAD", "/account/sign-in", None).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[tokio::test]
async fn a_wrong_page_is_a_page_and_a_slash_at_the_end_is_redirected() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::of(&world);
    let key = world.customer("free").await.key;
    for path in [
        "/account/nothing",
        "/account//",
        "/account/sign-in/",
        "/account/applications/app_1",
    ] {
        let missing = ann.open(path).await;
        assert_eq!(
            (missing.status, missing.header("content-type")),
            (404, "text/html; charset=utf-8"),
            "{path}"
        );
        assert!(
            ann.page.contains("Page not found") && ann.page.contains("href=\"/docs\""),
            "{path}"
        );
        assert_eq!(
            ann.send("POST", path, Some("a=b")).await.status,
            404,
            "{path}"
        );
        // The same holds with a key, since this is no path of the API.
        ann.fields = vec![("Authorization", format!("Bearer {key}"))];
        assert_eq!(
            ann.open(path).await.header("content-type"),
            "text/html; charset=utf-8",
            "{path}"
        );
        ann.fields.clear();
    }
    let slash = ann.open("/account/").await;
    assert_eq!((slash.status, slash.header("location")), (308, "/account"));
    let client = world.http2_client().await;
    assert_eq!(
        client
            .request("GET", "/account/", &[])
            .await
            .unwrap()
            .status,
        308
    );
    assert_eq!(
        client
            .request("GET", "/account/nothing", &[])
            .await
            .unwrap()
            .status,
        404
    );
    for path in ["/accounts", "/account%2f", "/Account/"] {
        assert_eq!(
            world.get(path).send().await.code(),
            "api_key_required",
            "{path}"
        );
    }
}

#[tokio::test]
async fn no_request_follows_a_form_on_a_connection() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::of(&world);
    ann.visit("/account/sign-in").await;
    let hidden = "GET /account/sign-in HTTP/1.1\r\nHost: a\r\n\r\n";
    for body in [format!("csrf=1{hidden}"), hidden.to_owned()] {
        let request = ann.request("POST", "/account/sign-in", Some(&body));
        let mut connection = world.connect().await;
        connection
            .write(&[&request[..], hidden.as_bytes()].concat())
            .await;
        let response = connection.read(false).await.unwrap();
        assert_eq!((response.status, response.closes()), (403, true));
        assert!(connection.is_closed().await, "one response");
    }
}

#[tokio::test]
async fn forms_work_over_http2() {
    let world = World::with_sign_up("").await;
    let client = world.http2_client().await;
    let page = client
        .request("GET", "/account/sign-in", &[])
        .await
        .unwrap();
    let cookie = page
        .header("set-cookie")
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let mut ann = Browser::of(&world);
    ann.page = String::from_utf8(page.body).unwrap();
    let kind = ("content-type", "application/x-www-form-urlencoded");
    for number in 0..20 {
        let body = format!("csrf={}&email=ann{number}%40example.org", ann.csrf());
        let headers = [kind, ("cookie", cookie.as_str())];
        let sent = client
            .sends("POST", "/account/sign-in", &headers, body.leak().as_bytes())
            .await
            .unwrap();
        assert_eq!(sent.status, 200, "{number}");
        assert!(!sent.headers.iter().any(|(name, _)| name == "connection"));
    }
    assert_eq!(world.rows("SELECT count(*) FROM mail_queue"), ["20"]);
}

#[tokio::test]
async fn a_form_whose_length_is_not_stated_by_one_content_length_is_a_400() {
    let world = World::with_sign_up("").await;
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let next = "GET /account/sign-in HTTP/1.1\r\nHost: a\r\n\r\n";
    let chunked = format!("5\r\nemail\r\n0\r\n\r\n{next}");
    for lengths in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        "Transfer-Encoding: chunked\r\n",
    ] {
        for path in ["/account", "/account/sign-in", "/account/applications", "/"] {
            let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\n{form}{lengths}\r\n");
            for before in ["", next] {
                let mut connection = world.connect().await;
                connection
                    .write(format!("{before}{head}{chunked}").as_bytes())
                    .await;
                if !before.is_empty() {
                    assert_eq!(connection.read(false).await.unwrap().status, 200);
                }
                let refused = connection.read(false).await.unwrap();
                assert_eq!(
                    (refused.code().as_str(), refused.closes()),
                    ("bad_request", true),
                    "{head}"
                );
                assert!(connection.is_closed().await, "{head}");
            }
        }
    }
}

#[tokio::test]
async fn http2_trailers_of_a_request_for_an_account_are_a_400() {
    let world = World::with_sign_up("").await;
    let post = [("content-type", "application/x-www-form-urlencoded")];
    for method in ["GET", "POST"] {
        for trailers in [
            &[(":path", "/account/delete")][..],
            &[(":method", "DELETE"), ("x", "1")],
            &[(":status", "200")],
            &[("x-api-key", "another")],
            &[],
        ] {
            let mut head = http2::get(
                "/account/sign-in",
                if method == "POST" { &post[..] } else { &[] },
            );
            head[0].1 = method.into();
            let end = http2::END_STREAM | http2::END_HEADERS;
            let mut connection = http2::Wire::open(world.address()).await;
            let data = http2::frame(http2::DATA, 0, 1, b"email=a");
            let trailers = http2::frame(
                http2::HEADERS,
                end,
                1,
                &http2::block(&http2::fields(trailers)),
            );
            connection
                .send(&[http2::opening(1, &head, 0), data, trailers.clone()].concat())
                .await;
            let outcome = connection.stream_outcome(1).await;
            let is_refused =
                outcome.is_error() || matches!(outcome, http2::StreamOutcome::Response(400, _));
            assert!(is_refused, "{method} {trailers:?}: {outcome:?}");
        }
    }
    assert_eq!(world.rows("SELECT count(*) FROM mail_queue"), ["0"]);
}
