//! Owners of applications that the operator has created.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::browser::Browser;
use crate::{
    cli::cli_accounts::Accounts,
    mail::smtp_server::{SmtpOptions, SmtpTestServer},
    program::{BUILT_IN, Keys, Program, ProgramClient, sql},
    world::World,
};

const TOKEN: &str = "admin.token = \"a-token-of-the-side-port\"";
const BEARER: &str = "Bearer a-token-of-the-side-port";
const WEEK: Duration = Duration::from_hours(7 * 24);
const ANN: &str = "Ann@example.org";

impl World {
    /// Executes a command of the operator.
    async fn operator(&self, command: &str, body: &Value) -> Value {
        let target = format!("/v1/{command}");
        let fields = [("Authorization", BEARER)];
        let answer = self.side("POST", &target, &body.to_string(), &fields).await;
        let text = String::from_utf8_lossy(&answer.body);
        assert_eq!(answer.status, 200, "{command} {body}: {text}");
        answer.json()
    }

    /// The queued mails to an address, oldest first, on one line each. The queue is empty afterwards.
    fn taken(&self, email: &str) -> Vec<String> {
        self.rows(&format!(
            "SELECT replace(kind || ' ' || message_id || ' ' || text, char(10), ' ') FROM mail_queue
             WHERE recipient = '{email}' ORDER BY created_at, kind; DELETE FROM mail_queue"
        ))
    }
}

/// The token of the link in a text.
fn token(text: &str) -> &str {
    let (_, rest) = text.split_once("/account/confirm?token=").unwrap();
    rest.split_whitespace().next().unwrap()
}

fn header<'m>(mail: &'m Value, name: &str) -> &'m str {
    let content = mail["content"].as_str().unwrap();
    let name = format!("{name}: ");
    let line = content.split("\r\n").find(|line| line.starts_with(&name));
    line.unwrap_or_else(|| panic!("{name}{content}"))
}

#[tokio::test]
async fn an_invitation_is_repeated_with_its_id_and_its_link_is_used_once() {
    needs!("smtp");
    let acts = "drop";
    let mut server = SmtpTestServer::start(SmtpOptions {
        acts,
        ..SmtpOptions::default()
    })
    .await;
    let directory = TempDir::new().unwrap();
    let mail_server = format!("127.0.0.1:{}", server.port);
    let settings = [
        BUILT_IN[0],
        ("SCOREGATE_SITE_SIGN_UP", "true"),
        ("SCOREGATE_SERVICE_BASE_URL", "http://127.0.0.1:8080"),
        ("SCOREGATE_MAIL_SERVER", mail_server.as_str()),
        ("SCOREGATE_MAIL_TLS", "none"),
        ("SCOREGATE_MAIL_FROM", "api@example.org"),
    ];
    let program = Program::serve(directory.path(), &settings);
    let public = program.public();
    let keys = Keys(directory.path());
    let create = ["create", "--name", "Station", "--tier", "enterprise"];
    let created = keys.json(&[&create[..], &["--owner", ANN]].concat());
    let id = created["application"]["id"].as_str().unwrap().to_owned();

    // The server accepts the mail and closes the connection without a reply.
    let first = server.event("mail").await;
    let text = sql(directory.path(), "SELECT text FROM mail_queue");
    let second = server.event("mail").await;
    assert_eq!(header(&first, "Message-ID"), header(&second, "Message-ID"));
    assert_eq!(second["recipients"], json!([ANN]), "{second}");

    let listed = Accounts(directory.path()).json(&["list", "--application", &id]);
    let account = &listed["accounts"][0];
    assert_eq!(
        (&account["email"], &account["terms_version"]),
        (&json!(ANN), &Value::Null)
    );
    let client = ProgramClient::to(public).await;
    let key = created["key"].as_str().unwrap();
    assert_eq!(
        client.identity(key).await,
        Ok(("enterprise".into(), id.clone()))
    );
    let mut ann = Browser::to(public);
    let forged = token(&text).chars().rev().collect::<String>();
    let invalid = ann.open(&format!("/account/confirm?token={forged}")).await;
    assert_eq!(invalid.status, 410, "a forged link");
    let used = ann.use_link(token(&text)).await;
    assert_eq!(
        (used.status, used.header("location")),
        (303, "/account"),
        "{}",
        ann.page
    );
    ann.visit(&format!("/account/applications/{id}")).await;
    assert!(
        ann.page.contains("Station") && ann.page.contains(&key[..12]),
        "{}",
        ann.page
    );
    let link = format!("/account/confirm?token={}", token(&text));
    let again = Browser::to(public).open(&link).await;
    assert_eq!(again.status, 410, "a link that was already used");

    let (other, _) = keys.create("enterprise");
    let attached = keys.json(&["attach", &other, "ann+work@example.org"]);
    assert_eq!(attached["attached"][0]["account"], account["id"]);
    let mail = server.event("mail").await;
    let content = mail["content"].as_str().unwrap();
    assert!(
        content.contains(&other) && !content.contains("confirm"),
        "{content}"
    );
    assert_eq!(program.stop().code, Some(0));
}

#[tokio::test]
async fn mail_about_an_application_goes_to_the_invited_address_until_it_stops_it() {
    let world = World::with_sign_up(TOKEN).await;
    let id = world.customer("enterprise").await.id;
    let attach = json!({"id": id, "email": ANN});
    world.operator("keys/attach", &attach).await;
    let invitation = world.taken(ANN).pop().unwrap();
    let rotate = json!({"id": id});
    world.operator("keys/rotate", &rotate).await;
    let contact = json!({"subject": "s", "message": "m", "application": [id]});
    let sent = world.operator("accounts/contact", &contact).await;
    assert_eq!(
        (&sent["accounts"], &sent["unreached"]),
        (&json!(1), &json!([]))
    );
    let mails = world.taken(ANN);
    let kinds = mails.iter().map(|mail| mail.split(' ').next().unwrap());
    assert_eq!(kinds.collect::<Vec<_>>(), ["key_changed", "notice"]);
    for mail in &mails {
        let stop = "at http://127.0.0.1:8080/account. If you have no account, you can request a link there to stop all mail.";
        assert!(mail.contains(stop), "{mail}");
    }

    // A sign-in link leads to the same page as the invitation.
    let mut ann = Browser::of(&world);
    let links = [ann.request_link(ANN).await, token(&invitation).to_owned()];
    for link in &links {
        ann.visit(&format!("/account/confirm?token={link}")).await;
        assert!(ann.page.contains("Create account</button>"), "{}", ann.page);
        assert!(ann.page.contains("name=\"stop\""), "{}", ann.page);
    }
    let stopped = ann
        .submit("/account/confirm", &[("token", &links[1]), ("stop", "yes")])
        .await;
    assert_eq!(
        (stopped.status, stopped.header("location")),
        (303, "/account/sign-in?done=stopped")
    );
    world.taken(ANN);
    world.operator("keys/rotate", &rotate).await;
    let sent = world.operator("accounts/contact", &contact).await;
    assert_eq!(
        sent["unreached"][0]["reason"],
        "the invited address has unsubscribed"
    );
    assert_eq!((&sent["queued"], world.taken(ANN).len()), (&json!(0), 0));
    ann.use_link(&links[1]).await;
    world.operator("keys/rotate", &rotate).await;
    assert_eq!(world.taken(ANN).len(), 1, "an owner chooses notices");
}

#[tokio::test]
async fn an_invitation_ends_after_a_week_and_can_be_repeated() {
    let world = World::with_sign_up(TOKEN).await;
    let id = world.customer("enterprise").await.id;
    let attach = json!({"id": id, "email": ANN});
    world.operator("keys/attach", &attach).await;
    let first = world.taken(ANN).pop().unwrap();
    let side = |body: &Value| body.to_string();
    let fields = [("Authorization", BEARER)];
    let again = world
        .side("POST", "/v1/keys/attach", &side(&attach), &fields)
        .await;
    assert_eq!(again.status, 409);
    world.pass(WEEK + Duration::from_secs(1));
    let mut ann = Browser::of(&world);
    let ended = ann
        .open(&format!("/account/confirm?token={}", token(&first)))
        .await;
    assert_eq!(ended.status, 410, "an expired link");
    world.operator("keys/attach", &attach).await;
    let second = world.taken(ANN).pop().unwrap();
    assert_ne!(token(&first), token(&second));
    assert_eq!(ann.use_link(token(&second)).await.status, 303);
}

#[tokio::test]
async fn contacts_that_are_addresses_are_attached_together() {
    let world = World::with_sign_up(TOKEN).await;
    let mut ids = Vec::new();
    for contact in ["ann@example.org", "Ann+x@example.org", "call us", ""] {
        let id = world.customer("enterprise").await.id;
        let contact = (!contact.is_empty()).then_some(contact);
        let update = json!({"id": id, "contact": contact});
        world.operator("keys/update", &update).await;
        ids.push(id);
    }
    let bob = world.customer("enterprise").await.id;
    world
        .operator(
            "keys/attach",
            &json!({"id": bob, "email": "bob@example.org"}),
        )
        .await;
    world.taken("");
    for (is_dry, accounts) in [(true, 0), (false, 2), (false, 0)] {
        let body = json!({"from_contact": true, "dry_run": is_dry});
        let answer = world.operator("keys/attach", &body).await;
        let results = answer["attached"].as_array().unwrap();
        let has_account = |result: &&Value| !result["account"].is_null();
        assert_eq!(
            results.iter().filter(has_account).count(),
            accounts,
            "{answer}"
        );
        let wrong: Vec<_> = results
            .iter()
            .filter(|result| !result["problem"].is_null())
            .collect();
        assert_eq!((wrong.len(), &wrong[0]["email"]), (1, &json!("call us")));
    }
    let queued = "SELECT count(*) FROM mail_queue WHERE recipient LIKE 'ann%'";
    assert_eq!(
        world.rows(queued),
        ["2"],
        "an invitation, and a mail without a link"
    );
    let contact = json!({"subject": "s", "message": "m", "tier": "enterprise"});
    let sent = world.operator("accounts/contact", &contact).await;
    let unowned = sent["unreached"].as_array().unwrap();
    let mut expected = [ids[2].to_string(), ids[3].to_string()];
    expected.sort();
    let listed: Vec<_> = unowned
        .iter()
        .map(|one| one["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        (listed, &sent["accounts"]),
        (expected.iter().map(String::as_str).collect(), &json!(2))
    );
    world.operator("keys/detach", &json!({"id": bob})).await;
    assert_eq!(
        world.rows("SELECT count(*) FROM owners WHERE email = 'bob@example.org'"),
        ["0"]
    );
}
