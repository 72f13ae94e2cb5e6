//! Deleted personal data is overwritten in the file and in its write-ahead log.

use super::*;

/// Whether the file or its log contains a string.
fn contains(directory: &TempDir, text: &str) -> bool {
    let log = directory.path().join("scoregate.db-wal");
    let bytes = [
        fs::read(file(directory)).unwrap(),
        fs::read(log).unwrap_or_default(),
    ];
    bytes.iter().any(|bytes| {
        bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    })
}

async fn delete(store: &Store, owner: OwnerId) {
    conformance::changed(store, owner, OwnerChangeKind::Delete { in_own_name: true }).await;
}

#[tokio::test]
async fn the_address_of_a_deleted_owner_is_in_neither_file_of_the_open_store() {
    let (directory, store) = fresh();
    let kept = conformance::signed_up(&store, "ann@kept.example").await;
    let mut owners = Vec::new();
    for number in 0..50 {
        let email = format!("{number}@deleted.example");
        owners.push(conformance::signed_up(&store, &email).await.id);
    }
    assert!(
        contains(&directory, "@deleted.example"),
        "the test would prove nothing"
    );
    for owner in owners {
        delete(&store, owner).await;
    }
    assert!(!contains(&directory, "@deleted.example"));
    assert!(contains(&directory, "ann@kept.example"));
    assert_eq!(store.owner(kept.id).await.unwrap(), Some(kept));
}

#[tokio::test]
async fn the_description_of_a_closed_application_is_in_neither_file_of_the_open_store() {
    let (directory, store) = fresh();
    let id = created(&store).await;
    let description = Description::from_fn(|_| Some("ann@closed.example".into()));
    let describe = ChangeKind::Describe {
        name: "Ann".into(),
        description,
    };
    make(&store, id, describe).await;
    assert!(
        contains(&directory, "ann@closed.example"),
        "the test would prove nothing"
    );
    make(&store, id, ChangeKind::Close).await;
    assert!(!contains(&directory, "ann@closed.example"));
}

#[tokio::test]
async fn a_deletion_during_a_long_read_is_overwritten_with_the_next_one() {
    let (directory, store) = fresh();
    let owner = conformance::signed_up(&store, "ann@deleted.example").await;
    let reader = Connection::open(file(&directory)).unwrap();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM owners;")
        .unwrap();
    delete(&store, owner.id).await;
    assert!(
        contains(&directory, "ann@deleted.example"),
        "the test would prove nothing"
    );
    reader.execute_batch("COMMIT").unwrap();
    store.delete_outdated().await.unwrap();
    assert!(!contains(&directory, "ann@deleted.example"));
}
