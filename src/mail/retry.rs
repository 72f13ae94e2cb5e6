//! Decides whether an email is removed or sent again after an attempt. The functions are pure.

use std::{fmt::Display, time::Duration};

use crate::instruments::MailResult;
use scoregate_base::clock::Wall;
use scoregate_store::{ClaimedMail, MailAttempt, MailOutcome};

use super::failure::MailFailure;

/// Delay before the second attempt. It doubles with each further attempt.
const FIRST_DELAY: Duration = Duration::from_secs(5);
/// Maximum delay. It is short, because sign-in links expire within minutes and must be sent soon after a server has recovered.
const MAX_DELAY: Duration = Duration::from_mins(5);

/// Delay after the failed attempt with this number.
pub fn delay(attempt: u32, longest: Duration) -> Duration {
    // 16 doublings exceed every limit, and many more would overflow.
    let doublings = attempt.saturating_sub(1).min(16);
    FIRST_DELAY.saturating_mul(1 << doublings).min(longest)
}

/// Whether an email has expired.
pub fn is_expired(claimed: &ClaimedMail, now: Wall) -> bool {
    claimed.mail.expires_at <= now
}

/// The result of an attempt, for the metrics.
pub fn result(attempted: &Result<(), MailFailure>) -> MailResult {
    match attempted {
        Ok(()) => MailResult::Sent,
        Err(failure) if failure.is_permanent() => MailResult::Refused,
        Err(_) => MailResult::Retried,
    }
}

/// The next state of an email after an attempt.
pub fn recorded(
    claimed: &ClaimedMail,
    attempted: &Result<(), MailFailure>,
    now: Wall,
) -> MailAttempt {
    match attempted {
        Err(failure) if !failure.is_permanent() => deferred(claimed, failure, MAX_DELAY, now),
        Ok(()) | Err(_) => removed(claimed),
    }
}

/// The record of an attempt after which the email is retried, at most `longest` later.
pub fn deferred(
    claimed: &ClaimedMail,
    failure: &impl Display,
    longest: Duration,
    now: Wall,
) -> MailAttempt {
    let at = now.plus(delay(claimed.attempt, longest));
    attempt(
        claimed,
        MailOutcome::Retry {
            at,
            reason: failure.to_string(),
        },
    )
}

/// An email that was sent, was refused or has expired.
pub fn removed(claimed: &ClaimedMail) -> MailAttempt {
    attempt(claimed, MailOutcome::Remove)
}

/// An email that was claimed but not attempted. It is due immediately.
pub fn released(claimed: &ClaimedMail, now: Wall) -> MailAttempt {
    attempt(
        claimed,
        MailOutcome::Retry {
            at: now,
            reason: "claimed and not attempted".into(),
        },
    )
}

fn attempt(claimed: &ClaimedMail, outcome: MailOutcome) -> MailAttempt {
    MailAttempt {
        message_id: claimed.mail.message_id.clone(),
        attempt: claimed.attempt,
        outcome,
    }
}

#[cfg(test)]
mod tests {
    use scoregate_store::{MailKind, NewMail};

    use super::*;
    use crate::mail::failure::SmtpStep;
    use crate::mail::message::InvalidMail;

    const NOW: Wall = Wall::from_seconds(1_800_000_000);

    fn claimed(attempt: u32) -> ClaimedMail {
        let mail = NewMail {
            kind: MailKind::SignIn,
            recipient: "ann@example.org".into(),
            subject: String::new(),
            text: String::new(),
            html: String::new(),
            webhook: String::new(),
            message_id: "id@example.org".into(),
            created_at: NOW,
            expires_at: NOW.plus(Duration::from_mins(15)),
        };
        ClaimedMail { mail, attempt }
    }

    #[test]
    fn delays_double_up_to_five_minutes() {
        let seconds: Vec<u64> = (1..=8)
            .map(|attempt| delay(attempt, MAX_DELAY).as_secs())
            .collect();
        assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(delay(u32::MAX, MAX_DELAY), MAX_DELAY);
        assert_eq!(delay(0, MAX_DELAY), FIRST_DELAY);
    }

    #[test]
    fn a_mail_is_removed_once_sent_or_refused_and_retried_otherwise() {
        let refused = Err(MailFailure::from(InvalidMail::Recipient));
        for (attempted, result_word) in [(Ok(()), MailResult::Sent), (refused, MailResult::Refused)]
        {
            assert_eq!(
                recorded(&claimed(3), &attempted, NOW).outcome,
                MailOutcome::Remove
            );
            assert_eq!(result(&attempted), result_word);
        }
        let lost = Err(MailFailure::from_timeout(SmtpStep::Content));
        let next = recorded(&claimed(3), &lost, NOW);
        assert_eq!(
            (next.message_id.as_str(), next.attempt),
            ("id@example.org", 3)
        );
        let MailOutcome::Retry { at, reason } = next.outcome else {
            panic!("{next:?}")
        };
        assert_eq!(
            (at, result(&lost)),
            (NOW.plus(Duration::from_secs(20)), MailResult::Retried)
        );
        assert!(reason.contains("the content"), "{reason}");
    }

    #[test]
    fn a_mail_is_expired_from_the_instant_of_its_expiry() {
        let claimed = claimed(1);
        let expiry = claimed.mail.expires_at;
        assert!(is_expired(&claimed, expiry));
        assert!(!is_expired(&claimed, expiry.minus(Duration::from_nanos(1))));
    }
}
