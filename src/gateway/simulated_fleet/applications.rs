//! The applications of a simulated fleet, with the table of their windows. The observer does not use the product's windows.

use std::{sync::LazyLock, time::Duration};

use crate::accounts::{TermsByTier, stored};
use scoregate_base::{
    clock::{Day, Wall},
    keys::{ApplicationId, Digest, OwnerId},
    limits::{LimitRule, LimitSetting, Limits, OwnLimits},
    plans::standard_tiers,
};
use scoregate_store::{
    Attachment, ChangeKind, MailKind, NewMail, Ownership, StoreChange, StoredApplication, sample,
};

/// The terms of all tiers.
pub static TERMS: LazyLock<TermsByTier> = LazyLock::new(|| TermsByTier::new(&standard_tiers(), 60));

/// Days on which months begin, by anchor.
const MONTHS: [(u8, [&str; 2]); 2] = [
    (1, ["2026-11-01", "2026-12-01"]),
    (31, ["2026-10-31", "2026-11-30"]),
];

/// An application. A quota of zero is none.
pub struct SimulatedApplication {
    id: &'static str,
    pub key: &'static str,
    pub tier: &'static str,
    pub minute: u32,
    pub day: u32,
    pub month: u32,
    pub anchor: u8,
    pub owner: [u32; 2],
}

const PRO: SimulatedApplication = SimulatedApplication {
    id: "app_00000000001",
    key: "months",
    tier: "pro",
    minute: 120,
    day: 40,
    month: 50,
    anchor: 31,
    owner: [0, 0],
};

/// The applications. The last one has most of the load.
pub static APPLICATIONS: [SimulatedApplication; 6] = [
    PRO,
    SimulatedApplication {
        id: "app_00000000002",
        key: "free",
        tier: "free",
        minute: 1,
        day: 10,
        month: 0,
        ..PRO
    },
    SimulatedApplication {
        id: "app_00000000003",
        key: "first of an owner",
        owner: [50, 70],
        month: 0,
        ..PRO
    },
    SimulatedApplication {
        id: "app_00000000004",
        key: "second of an owner",
        owner: [50, 70],
        month: 0,
        ..PRO
    },
    SimulatedApplication {
        id: "app_00000000005",
        key: "hundreds",
        minute: 15,
        day: 700,
        month: 900,
        ..PRO
    },
    SimulatedApplication {
        id: "app_00000000006",
        key: "thousands",
        tier: "enterprise",
        minute: 1_000,
        day: 250_000,
        month: 4_000_000,
        anchor: 1,
        ..PRO
    },
];

impl SimulatedApplication {
    pub fn id(&self) -> ApplicationId {
        self.id.parse().unwrap()
    }

    pub fn is_owned(&self) -> bool {
        self.owner != [0, 0]
    }

    /// The quotas that are set.
    pub fn quotas(&self) -> impl Iterator<Item = (LimitRule, u32)> {
        let quotas = [
            (LimitRule::Day, self.day),
            (LimitRule::Month, self.month),
            (LimitRule::OwnerDay, self.owner[0]),
            (LimitRule::OwnerMonth, self.owner[1]),
        ];
        quotas.into_iter().filter(|(_, quota)| *quota > 0)
    }

    /// The application as a gateway reads it.
    pub fn stored(&self) -> StoredApplication {
        let own = OwnLimits::NONE
            .with(LimitSetting::Minute, self.minute)
            .with(LimitSetting::MonthAnchor, u32::from(self.anchor));
        let of = |own: OwnLimits, (rule, quota): (LimitRule, u32)| {
            let setting = LimitSetting::ALL.into_iter();
            let mut named = setting.filter(|setting| setting.rule() == Some(rule));
            own.with(named.next().unwrap(), quota)
        };
        StoredApplication {
            id: self.id(),
            own: self.quotas().fold(own, of),
            ..stored(self.tier, &[self.key])
        }
    }

    /// The first day of the window of a limit that contains a day.
    pub fn window_start(&self, rule: LimitRule, day: Day) -> Day {
        let anchor = match rule {
            LimitRule::Month => self.anchor,
            LimitRule::OwnerMonth => 1,
            LimitRule::Day | LimitRule::OwnerDay | LimitRule::Minute | LimitRule::Guard => {
                return day;
            }
        };
        let (_, starts) = MONTHS.iter().find(|(of, _)| *of == anchor).unwrap();
        let starts = starts.iter().map(|start| Day::parse(start).unwrap());
        starts.filter(|start| *start <= day).max().unwrap()
    }

    /// The applications whose units count in the window of a limit.
    pub fn counted(&self, rule: LimitRule) -> impl Iterator<Item = usize> {
        let is_of_owner = matches!(rule, LimitRule::OwnerDay | LimitRule::OwnerMonth);
        let all = APPLICATIONS.iter().enumerate();
        let counted = all.filter(move |(_, other)| {
            other.key == self.key || is_of_owner && other.is_owned() && self.is_owned()
        });
        counted.map(|(index, _)| index)
    }

    pub fn grace(&self) -> u64 {
        let is_paid = self.tier != "free";
        u64::from(is_paid) * u64::from(self.day) / 100
    }

    /// The limits that gateways apply.
    pub fn limits(&self) -> Limits {
        let stored = self.stored();
        TERMS.of(&stored.tier, stored.own).unwrap().limits
    }

    /// The change that creates it.
    pub fn creation(&self) -> StoreChange {
        let mut what = sample::creation(self.tier, sample::key(self.key));
        if self.is_owned()
            && let ChangeKind::Create { owner, .. } = &mut what
        {
            *owner = Some(Ownership::Attached(Box::new(attachment(self.key))));
        }
        StoreChange {
            at: Wall::default(),
            who: "a test".into(),
            owner: None,
            application: self.id(),
            what,
            notice: None,
        }
    }
}

fn attachment(name: &str) -> Attachment {
    let mail = |kind: &str| NewMail {
        kind: MailKind::ALL[0],
        recipient: String::new(),
        subject: String::new(),
        text: String::new(),
        html: String::new(),
        webhook: String::new(),
        message_id: format!("{name} {kind}"),
        created_at: Wall::default(),
        expires_at: Wall::default(),
    };
    Attachment {
        new_owner: OwnerId::mint().unwrap(),
        email: "ann@example.org".into(),
        mailbox: "ann@example.org".into(),
        link: Digest::of(name),
        valid_for: Duration::ZERO,
        invitation: mail("invitation"),
        attached: mail("attached"),
        moves: false,
        detached: mail("detached"),
    }
}

/// The day on which months of an application begin.
pub fn anchor_of(id: ApplicationId) -> u8 {
    let mut of = APPLICATIONS.iter().filter(|one| one.id() == id);
    of.next().unwrap().anchor
}
