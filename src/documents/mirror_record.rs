//! Encodes a document as a record of the disk mirror. The content is the data, and the header has everything else.
//!
//! The functions are pure. Dates written by an earlier process are limited to plausible values.

use bytes::Bytes;
use http::HeaderValue;
use serde::{Deserialize, Serialize};

use super::retention::Retention;
use crate::cache::{BadContent, Document, DocumentContent, StoredDocument, Validators};
use scoregate_base::{
    clock::{Mono, Now, Wall},
    plans::{MOST_FIELD_SETS, Rights},
    routes::DocumentKey,
};
use scoregate_store::MirrorRecord;

/// The header of a record. Times are milliseconds of wall time.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RecordLabel {
    /// The backend that sent the document.
    backend: String,
    items: usize,
    generated_at: u64,
    /// The dates of the full form and the Free form, followed by the dates of the other forms if any of them differs
    /// from the Free form.
    forms: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_modified: Option<String>,
    /// The address that sent the validators.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    due: u64,
    confirmed: u64,
    /// When a refresh of the backend was last detected, or zero.
    refreshed: u64,
    uses: u32,
}

impl RecordLabel {
    /// The date of one form.
    fn date_of(&self, form: usize) -> u64 {
        let of_free = self.forms.get(1);
        self.forms
            .get(form)
            .or(of_free)
            .copied()
            .unwrap_or_default()
    }

    /// The content of the document with this header.
    fn content(self, data: Bytes) -> DocumentContent {
        DocumentContent {
            data,
            count: self.items,
            generated_at: Wall::from_millis(self.generated_at),
            stated_at: None,
            source: Validators {
                etag: header_value(self.etag),
                last_modified: header_value(self.last_modified),
                origin: self.origin.map(Into::into),
            },
        }
    }
}

fn header_value(text: Option<String>) -> Option<HeaderValue> {
    HeaderValue::try_from(text?).ok()
}

fn header_text(value: Option<&HeaderValue>) -> Option<String> {
    Some(value?.to_str().ok()?.to_owned())
}

/// A document read from its record.
#[derive(Debug)]
pub struct RestoredDocument {
    pub key: DocumentKey,
    pub stored: StoredDocument,
    /// When a refresh of the backend was last detected.
    pub refreshed_at: Mono,
}

/// The reason why a record is unusable.
#[derive(Debug, thiserror::Error)]
pub enum UnusableRecord {
    #[error("the file name is not a document name")]
    Name,
    #[error("its header cannot be read: {0}")]
    Label(#[from] serde_json::Error),
    #[error("it is from another backend")]
    Backend,
    #[error(transparent)]
    Content(#[from] BadContent),
}

/// Encodes a document. `content` is omitted for a document that was only confirmed.
pub fn write(
    key: &DocumentKey,
    stored: &StoredDocument,
    refreshed_at: Mono,
    backend: &str,
    now: Now,
) -> MirrorRecord {
    let document = &stored.document;
    let dates = document.dates();
    let has_more = dates.iter().skip(2).any(|date| Some(date) != dates.get(1));
    let at = |mono: Mono| now.wall_at(mono).millis();
    let Validators {
        etag,
        last_modified,
        origin,
    } = document.source();
    let writing = RecordLabel {
        backend: backend.to_owned(),
        items: document.items(),
        generated_at: document.generated_at().millis(),
        forms: dates
            .iter()
            .take(if has_more { MOST_FIELD_SETS } else { 2 })
            .map(|at| at.millis())
            .collect(),
        etag: header_text(etag.as_ref()),
        last_modified: header_text(last_modified.as_ref()),
        origin: origin.as_deref().map(str::to_owned),
        due: at(stored.due),
        confirmed: at(stored.confirmed),
        refreshed: at(refreshed_at),
        uses: stored.uses(),
    };
    let label = serde_json::to_string(&writing).expect("strings and numbers are always valid JSON");
    MirrorRecord {
        name: key.address(),
        label,
        // Only the full form is stored. The other forms are built from it.
        content: document.form(Rights::PAID).data().clone(),
    }
}

/// Decodes a document.
pub fn read(
    record: &MirrorRecord,
    backend: &str,
    retention: &Retention,
    now: Now,
) -> Result<RestoredDocument, UnusableRecord> {
    let key = DocumentKey::at(&record.name, &retention.endpoints).ok_or(UnusableRecord::Name)?;
    let writing: RecordLabel = serde_json::from_str(&record.label)?;
    if writing.backend != backend {
        return Err(UnusableRecord::Backend);
    }
    let dates = std::array::from_fn(|form| Wall::from_millis(writing.date_of(form)));
    let [due, confirmed, refreshed] =
        [writing.due, writing.confirmed, writing.refreshed].map(Wall::from_millis);
    let uses = writing.uses;
    let content = writing.content(record.content.clone());
    let document = Document::with_dates(content, &retention.label(&key), dates, None)?;
    // If the clock has been set back, the document must not stay fresh for longer than its original lifetime.
    let due = due.min(now.wall.plus(due.since(confirmed)));
    let confirmed = confirmed.min(now.wall);
    let [due, confirmed, refreshed_at] =
        [due, confirmed, refreshed.min(now.wall)].map(|wall| now.mono_at(wall));
    let stored = StoredDocument::restored(document, [due, due, confirmed], uses);
    Ok(RestoredDocument {
        key,
        stored,
        refreshed_at,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cache::{ContentCoding, StaleWindows};
    use crate::documents::retention::Lifetime;
    use scoregate_base::plans::FieldSets;
    use scoregate_base::routes::{EndpointTable, ModelId, Period, Query, Route};

    const NOON: u64 = 1_795_262_400;
    const HOUR: Duration = Duration::from_hours(1);

    fn at(seconds: u64, running: u64) -> Now {
        Now {
            wall: Wall::from_seconds(NOON + seconds),
            mono: Mono::from_nanos(running * 1_000_000_000),
        }
    }

    fn stored(key: &DocumentKey, now: Now) -> StoredDocument {
        let etag = Some(HeaderValue::from_static("\"v1\""));
        let source = Validators {
            etag,
            last_modified: None,
            origin: Some("one:80".into()),
        };
        let data = r#"[{"id":"atlas","latestScore":81.50,"currentScore":80.250}]"#.into();
        let content = DocumentContent {
            data,
            count: 1,
            generated_at: now.wall,
            stated_at: None,
            source,
        };
        let free_at = Wall::from_seconds(NOON - 60);
        let dates = [now.wall, free_at, free_at, free_at];
        let document =
            Document::with_dates(content, &retention("Cite us.").label(key), dates, None).unwrap();
        let due = now.mono.plus(HOUR);
        StoredDocument::restored(document, [due, due, now.mono], 7)
    }

    fn retention(license: &str) -> Retention {
        let windows = StaleWindows {
            while_revalidate: HOUR,
            if_error: HOUR,
        };
        Retention {
            lifetime: Lifetime { windows, ttl: None },
            by_endpoint: Vec::new(),
            endpoints: EndpointTable::default(),
            cadence: HOUR,
            fetch_timeout: HOUR,
            probing: true,
            polls_when_idle: false,
            license: license.into(),
            field_sets: FieldSets::default(),
            tool_result: None,
        }
    }

    fn key() -> DocumentKey {
        DocumentKey::new(
            Route::Model,
            ModelId::new("atlas"),
            Query::default(),
            Period::Day,
        )
    }

    #[test]
    fn a_record_is_decoded_with_the_same_wall_times() {
        let before = at(0, 50_000);
        let after = at(600, 1_000_000);
        let stored = stored(&key(), before);
        let refreshed = Mono::from_nanos(before.mono.nanos() - 1_000_000_000);
        let record = write(&key(), &stored, refreshed, "b", before);
        assert_eq!(record.name, "/api/v1/models/atlas");
        let opened = read(&record, "b", &retention("Cite us."), after).unwrap();
        assert_eq!(opened.key, key());
        for rights in [Rights::FREE, Rights::PAID] {
            let old = stored.document.form(rights);
            let new = opened.stored.document.form(rights);
            let [old_body, new_body] = [old, new].map(|form| form.choose(ContentCoding::Identity));
            assert_eq!(
                (&old_body.body, &old_body.etag),
                (&new_body.body, &new_body.etag)
            );
            assert_eq!(old_body.last_modified, new_body.last_modified);
        }
        let document = &stored.document;
        let again = &opened.stored.document;
        assert_eq!(
            (document.source(), document.generated_at()),
            (again.source(), again.generated_at())
        );
        assert_eq!((document.items(), opened.stored.uses()), (again.items(), 7));
        let ago = |mono: Mono| after.mono.since(mono);
        assert_eq!(opened.stored.due.since(after.mono), Duration::from_mins(50));
        assert_eq!(ago(opened.stored.confirmed), Duration::from_mins(10));
        assert_eq!(
            ago(opened.refreshed_at),
            Duration::from_mins(10) + Duration::from_secs(1)
        );
    }

    #[test]
    fn clock_set_back_does_not_extend_freshness() {
        let record = write(
            &key(),
            &stored(&key(), at(86_400, 50_000)),
            Mono::default(),
            "b",
            at(86_400, 50_000),
        );
        let now = at(0, 50_000);
        let opened = read(&record, "b", &retention(""), now).unwrap();
        assert_eq!(
            (opened.stored.due.since(now.mono), opened.stored.confirmed),
            (HOUR, now.mono)
        );
    }

    #[test]
    fn an_invalid_record_is_unusable() {
        let good = || {
            write(
                &key(),
                &stored(&key(), at(0, 50_000)),
                Mono::default(),
                "b",
                at(0, 50_000),
            )
        };
        let refused = |record: MirrorRecord, backend: &str| {
            read(&record, backend, &retention(""), at(0, 50_000))
                .unwrap_err()
                .to_string()
        };
        assert!(read(&good(), "b", &retention(""), at(0, 50_000)).is_ok());
        assert!(refused(good(), "c").contains("another backend"));
        for name in [
            "",
            "/api/v1/models",
            "/api/v1/models/..",
            "/api/v1/drift/%41",
        ] {
            assert!(
                refused(
                    MirrorRecord {
                        name: name.into(),
                        ..good()
                    },
                    "b"
                )
                .contains("not a document name"),
                "{name}"
            );
        }
        for label in ["", "{}", "[]", r#"{"backend":"b","due":-1}"#] {
            assert!(
                refused(
                    MirrorRecord {
                        label: label.into(),
                        ..good()
                    },
                    "b"
                )
                .contains("header cannot be read"),
                "{label}"
            );
        }
        for content in ["", "[", r#"[{"a":1,"a":2}]"#] {
            assert!(
                read(
                    &MirrorRecord {
                        content: content.into(),
                        ..good()
                    },
                    "b",
                    &retention(""),
                    at(0, 50_000)
                )
                .is_err(),
                "{content}"
            );
        }
    }
}
