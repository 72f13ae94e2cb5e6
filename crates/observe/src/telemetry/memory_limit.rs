//! The memory limit of the process: the lowest limit of its control groups (cgroup v2 or v1), or the memory of the
//! machine if that is smaller. Usage is in `process`.

use std::fs;

const GROUPS: &str = "/proc/self/cgroup";
const MACHINE: &str = "/proc/meminfo";
const MOUNT: &str = "/sys/fs/cgroup";

/// The limit in bytes; `None` if the system reports none.
pub fn memory_limit() -> Option<u64> {
    lowest(&|path| fs::read_to_string(path).ok())
}

fn lowest(read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let groups = read(GROUPS).unwrap_or_default();
    let limits = groups
        .lines()
        .flat_map(limit_files)
        .filter_map(|file| read(&file)?.trim().parse().ok());
    limits.chain(machine(&read(MACHINE)?)).min()
}

/// The limit files of a group and its ancestors. The limit of a group also applies to all groups below it.
fn limit_files(line: &str) -> Vec<String> {
    let mut parts = line.splitn(3, ':').skip(1);
    let Some(controllers) = parts.next() else {
        return Vec::new();
    };
    let Some(group) = parts.next() else {
        return Vec::new();
    };
    let (mount, name) = if controllers.is_empty() {
        (MOUNT.to_owned(), "memory.max")
    } else if controllers
        .split(',')
        .any(|controller| controller == "memory")
    {
        (format!("{MOUNT}/memory"), "memory.limit_in_bytes")
    } else {
        return Vec::new();
    };
    let mut group = group.trim_end_matches('/');
    let mut files = Vec::new();
    loop {
        files.push(format!("{mount}{group}/{name}"));
        match group.rsplit_once('/') {
            Some((above, _)) => group = above,
            None => return files,
        }
    }
}

fn machine(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOTAL: &str = "MemTotal:       8000 kB\nMemFree:         100 kB\n";

    fn with(files: &[(&str, &str)]) -> Option<u64> {
        lowest(&|path| {
            files
                .iter()
                .find(|(name, _)| *name == path)
                .map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn lowest_limit_of_control_groups_and_machine_applies() {
        let machine = (MACHINE, TOTAL);
        let mine = "/sys/fs/cgroup/a/b/memory.max";
        let above = "/sys/fs/cgroup/a/memory.max";
        let version_2 = (GROUPS, "0::/a/b\n");
        assert_eq!(
            with(&[version_2, machine, (mine, "2048\n"), (above, "4096\n")]),
            Some(2048)
        );
        assert_eq!(
            with(&[version_2, machine, (mine, "max\n"), (above, "4096\n")]),
            Some(4096)
        );
        assert_eq!(
            with(&[version_2, machine, (mine, "max\n")]),
            Some(8000 * 1024)
        );
        // In a container, the process's control group is the root of the visible hierarchy.
        let inside = (GROUPS, "0::/\n");
        let limit = "/sys/fs/cgroup/memory.max";
        assert_eq!(with(&[inside, machine, (limit, "1024\n")]), Some(1024));
        let version_1 = (GROUPS, "5:cpu,cpuacct:/\n4:memory:/x\n0::/\n");
        let mine = "/sys/fs/cgroup/memory/x/memory.limit_in_bytes";
        let root = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
        assert_eq!(
            with(&[
                version_1,
                machine,
                (mine, "512\n"),
                (root, "9223372036854771712\n")
            ]),
            Some(512)
        );
        assert_eq!(
            with(&[version_1, machine, (root, "9223372036854771712\n")]),
            Some(8000 * 1024)
        );
        assert_eq!(with(&[]), None);
    }
}
