//! The name of an operator in the audit trail, from the user ID that the kernel reports.
//!
//! Names are read from `/etc/passwd`; users of a directory service are recorded by number. `access` controls access.

const USERS: &str = "/etc/passwd";
const MAX_NAME_LENGTH: usize = 64;

/// The local user with this ID as `cli:NAME`, or as `cli:uid=NUMBER` if `/etc/passwd` has no usable name.
pub fn operator(uid: u32) -> String {
    let users = std::fs::read(USERS).unwrap_or_default();
    let name =
        name_in(&String::from_utf8_lossy(&users), uid).unwrap_or_else(|| format!("uid={uid}"));
    format!("cli:{name}")
}

/// The name of the first user with this ID.
fn name_in(users: &str, uid: u32) -> Option<String> {
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let _password = fields.next()?;
        let found = fields.next()?;
        (found.parse() == Ok(uid)).then_some(name)
    })?;
    let is_usable = (1..=MAX_NAME_LENGTH).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_graphic());
    is_usable.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_looked_up_by_id() {
        let users = "# a comment\nroot:x:0:0:root:/root:/bin/sh\nbroken\nanna:x:1000:1000::/home/anna:/bin/sh\n\
                     second:x:1000:1000::/:/bin/sh\nb\u{7f}d:x:1001:1::/:/bin/sh\n:x:1002:1::/:/bin/sh\n";
        assert_eq!(name_in(users, 0).as_deref(), Some("root"));
        assert_eq!(name_in(users, 1_000).as_deref(), Some("anna"));
        for unnamed in [1, 1_001, 1_002, u32::MAX] {
            assert_eq!(name_in(users, unnamed), None);
        }
        assert_eq!(operator(u32::MAX - 1), format!("cli:uid={}", u32::MAX - 1));
    }
}
