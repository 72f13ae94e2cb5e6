//! Changes by owners, some concurrent with changes by operators.

use std::time::Duration;

use futures_util::future::{join, join_all};
use tempfile::TempDir;

use crate::registry::{
    field_change::DescriptionChange,
    new_application::{KeyDetails, NewApplication},
    registrar_error::RegistrarError,
    test_gateway::{ChangingGateway, NOON, changes, registrar, station},
};
use scoregate_base::{
    clock::{Clock, Wall},
    keys::{Digest, OwnerId},
    limits::{NodeReport, NodeTotals},
};
use scoregate_store::{
    AuditQuery, Description, Ledger as _, LedgerExchange, LedgerReport, LinkAllowance, MailKind,
    NewMail, NewSignInLink, OwnerRefusal, SignIn, StoreError, StoredApplication,
};

const HOUR: Duration = Duration::from_hours(1);

async fn signed_up(gateway: &ChangingGateway, email: &str) -> OwnerId {
    let text = email.to_owned();
    let expires_at = NOON.plus(HOUR);
    let link = NewSignInLink {
        digest: Digest::of(email),
        email: text.clone(),
        mailbox: text.clone(),
        created_at: NOON,
        expires_at,
        allowance: LinkAllowance {
            since: Wall::default(),
            links: 9,
        },
    };
    let mail = NewMail {
        kind: MailKind::SignIn,
        recipient: text.clone(),
        subject: "s".into(),
        text: "t".into(),
        html: "h".into(),
        webhook: String::new(),
        message_id: text,
        created_at: NOON,
        expires_at,
    };
    assert!(gateway.store.send_link(link, mail).await.unwrap());
    let new_owner = OwnerId::mint().unwrap();
    let sign_in = SignIn {
        at: NOON,
        link: Digest::of(email),
        session: Digest::of(&format!("session of {email}")),
        expires_at,
        new_owner,
        accepted_terms: Some("1".into()),
        notice: None,
        sign_up: None,
    };
    gateway.store.sign_in(sign_in).await.unwrap();
    new_owner
}

fn site() -> NewApplication {
    let url = Some("https://ann.example.org".into());
    let description = Description {
        url,
        ..Description::default()
    };
    NewApplication {
        name: "Ann's site".into(),
        tier: "free".into(),
        description,
        ..station()
    }
}

fn is_suspended<T>(outcome: &Result<T, RegistrarError>) -> bool {
    matches!(
        outcome,
        Err(RegistrarError::Store(StoreError::Owner(
            OwnerRefusal::Suspended(_)
        )))
    )
}

fn is_unknown<T>(outcome: &Result<T, RegistrarError>) -> bool {
    matches!(
        outcome,
        Err(RegistrarError::Store(StoreError::UnknownApplication(_)))
    )
}

#[tokio::test]
async fn an_owner_gets_a_working_key_and_no_more_applications_than_allowed() {
    let directory = TempDir::new().unwrap();
    let gateway = ChangingGateway::loaded(&directory).await;
    let registrar = &gateway.registrar;
    let keys = &gateway.keys;
    let owner = signed_up(&gateway, "ann@example.org").await;
    let issued = registrar.create_for(owner, 1, site()).await.unwrap();
    assert!(keys.find(&Digest::of(issued.key.expose())).is_some());
    assert_eq!(
        gateway.owners.show(owner).await.unwrap().applications,
        [issued.application.id]
    );
    let refused = registrar.create_for(owner, 1, site()).await;
    let expected = RegistrarError::Store(OwnerRefusal::TooManyApplications(owner).into());
    assert_eq!(refused.unwrap_err().to_string(), expected.to_string());
    let url = Some("javascript:alert(1)".into());
    let script = NewApplication {
        description: Description {
            url,
            ..Description::default()
        },
        ..site()
    };
    assert!(matches!(
        registrar.create_for(owner, 2, script).await,
        Err(RegistrarError::BadText(_))
    ));

    let id = issued.application.id;
    registrar
        .rotate(owner, id, HOUR, KeyDetails::default())
        .await
        .unwrap();
    registrar.close(owner, id).await.unwrap();
    assert!(
        is_unknown(
            &registrar
                .rotate(owner, id, HOUR, KeyDetails::default())
                .await
        ),
        "a closed application"
    );
    let (records, _) = registrar
        .audit(AuditQuery {
            limit: 9,
            ..AuditQuery::default()
        })
        .await
        .unwrap();
    let by: Vec<(&str, &str)> = records
        .iter()
        .map(|one| (one.what.as_str(), one.who.as_str()))
        .collect();
    let who = format!("owner:{owner}");
    assert_eq!(
        by,
        ["close", "rotate", "create", "create_account"].map(|what| (what, who.as_str()))
    );
}

#[tokio::test]
async fn an_owner_changes_no_application_of_another_owner() {
    let directory = TempDir::new().unwrap();
    let gateway = ChangingGateway::loaded(&directory).await;
    let registrar = &gateway.registrar;
    let ann = signed_up(&gateway, "ann@example.org").await;
    let bob = signed_up(&gateway, "bob@example.org").await;
    let id = registrar
        .create_for(ann, 1, site())
        .await
        .unwrap()
        .application
        .id;
    let before = registrar.show(id).await.unwrap();
    let name = DescriptionChange {
        name: Some("Bob's".into()),
        ..DescriptionChange::default()
    };
    assert!(is_unknown(
        &registrar.rotate(bob, id, HOUR, KeyDetails::default()).await
    ));
    assert!(is_unknown(&registrar.revoke(bob, id, None).await));
    assert!(is_unknown(&registrar.describe(bob, id, name).await));
    assert!(is_unknown(&registrar.close(bob, id).await));
    assert_eq!(registrar.show(id).await.unwrap(), before);
}

#[tokio::test]
async fn no_key_of_a_suspended_owner_works_whatever_the_owner_does_meanwhile() {
    for round in 0..8 {
        let directory = TempDir::new().unwrap();
        let one = ChangingGateway::loaded(&directory).await;
        let other = ChangingGateway::loaded(&directory).await;
        let owner = signed_up(&one, "ann@example.org").await;
        let id = one
            .registrar
            .create_for(owner, 9, site())
            .await
            .unwrap()
            .application
            .id;
        let rotations = join_all((0..20).map(|_| {
            other
                .registrar
                .rotate(owner, id, HOUR, KeyDetails::default())
        }));
        let creations = join_all((0..4).map(|_| other.registrar.create_for(owner, 9, site())));
        let suspension = async {
            for _ in 0..round {
                tokio::task::yield_now().await;
            }
            one.owners.suspend("a test", owner).await.unwrap();
        };
        join(join(rotations, creations), suspension).await;
        assert!(is_suspended(
            &other
                .registrar
                .rotate(owner, id, HOUR, KeyDetails::default())
                .await
        ));
        assert!(is_suspended(
            &other.registrar.create_for(owner, 9, site()).await
        ));
        assert!(is_suspended(&other.owners.delete(owner, owner).await));
        other.keeper.follow_changes().await;
        for application in one.registrar.list(None, 99).await.unwrap().applications {
            for key in &application.keys {
                assert!(key.revoked_at.is_some(), "round {round}: {application:?}");
                let found = other.keys.find(&key.digest);
                assert!(found.is_none_or(|found| found.expires_at == Some(Wall::default())));
            }
        }
    }
}

#[tokio::test]
async fn current_use_is_known_without_a_key_in_memory() {
    let directory = TempDir::new().unwrap();
    let gateway = ChangingGateway::loaded(&directory).await;
    let running = &gateway.registrar;
    let id = running
        .create("a test", site())
        .await
        .unwrap()
        .application
        .id;
    let totals = NodeReport {
        known: NodeTotals::default(),
        granted: 7,
        quota: 10,
    };
    let reports = vec![LedgerReport::of_units(id, NOON.day(), totals)];
    let exchange = LedgerExchange {
        node: 7,
        today: NOON.day(),
        reports,
    };
    gateway.store.exchange(exchange).await.unwrap();
    let stored = running.show(id).await.unwrap();
    let new = running.current_use(&stored).unwrap();
    let limits = gateway
        .keys
        .find(&stored.keys[0].digest)
        .unwrap()
        .account
        .terms()
        .limits;
    let [minute, day] = new[..] else {
        panic!("{new:?}")
    };
    assert_eq!(
        (day.remaining, day.limit),
        (limits.day, limits.day),
        "this gateway knows no grant"
    );
    assert_eq!(
        (minute.remaining, minute.limit),
        (limits.minute, limits.minute)
    );
    assert_eq!(day.reset.rfc3339(), "2025-11-22T00:00:00Z");

    let clock = Clock::manual(NOON).0;
    let stopped = registrar(&changes(&gateway.store, None, None, &clock));
    let used = stopped.current_use(&stored).unwrap();
    assert_eq!(used[1].remaining, limits.day - 7);
    let moved = StoredApplication {
        tier: "a tier nobody configured".into(),
        ..stored
    };
    assert_eq!(stopped.current_use(&moved), None);
}
