//! Conformance checks of the owner search.

use super::*;

pub async fn found_owners(store: &Store, query: OwnerQuery) -> Vec<OwnerId> {
    let owners = store.owners(query).await.unwrap();
    owners.iter().map(|owner| owner.id).collect()
}

/// A query for the first owners.
pub fn first(limit: usize) -> OwnerQuery {
    OwnerQuery {
        limit,
        ..OwnerQuery::default()
    }
}

fn with_email(email: &str) -> OwnerQuery {
    OwnerQuery {
        email: Some(email.into()),
        ..first(9)
    }
}

fn with_application(application: ApplicationId) -> OwnerQuery {
    OwnerQuery {
        application: Some(application),
        ..first(9)
    }
}

pub async fn owners_are_found_by_address_and_application_in_pages(store: &Store) {
    let mut all = Vec::new();
    for name in ["Ann", "bob", "cat"] {
        all.push(signed_up(store, &format!("{name}@example.org")).await.id);
    }
    let bob = all[1];
    let application = application_of(store, bob, 1).await;
    all.sort();
    let second_page = OwnerQuery {
        after: Some(all[1]),
        ..first(2)
    };
    for (query, expected) in [
        (with_email("example.org"), &all[..]),
        (with_email("BOB@"), &[bob]),
        (with_email("%"), &[]),
        (with_email("_ob@"), &[]),
        (with_application(application), &[bob]),
        (with_application(an_id()), &[]),
        (first(2), &all[..2]),
        (second_page, &all[2..]),
    ] {
        assert_eq!(
            found_owners(store, query.clone()).await,
            expected,
            "{query:?}"
        );
    }
}

pub async fn an_owner_is_found_by_the_address_without_its_tag(store: &Store) {
    signed_up(store, "bob@example.org").await;
    for (email, mailbox) in [
        ("Ann+x@example.org", "ann@example.org"),
        ("o'%_+y@a.example", "o'%_@a.example"),
    ] {
        send_to(store, email, mailbox).await;
        let (owner, is_new) = signed_in(store, using(email, email)).await;
        assert!(is_new);
        for text in [email, mailbox, &mailbox.to_uppercase()] {
            assert_eq!(
                found_owners(store, with_email(text)).await,
                [owner.id],
                "{text}"
            );
        }
    }
}
