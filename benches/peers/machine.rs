//! The machine: assignment of cores, CPU time of a process and its children, and their memory.

use std::{
    collections::HashMap,
    fs::{read_dir, read_to_string},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The assignment of cores. The client has a core of its own if there are two.
pub struct Cores {
    server: Option<String>,
    two: Option<String>,
    output: String,
}

impl Cores {
    /// Moves this process to the client's core. Threads and processes started later inherit that, so call it first.
    pub fn take() -> Self {
        let allowed = allowed();
        let (Some(server), Some(last)) = (allowed.first(), allowed.last()) else {
            return Self::unpinned();
        };
        let own = std::process::id().to_string();
        let moved = Command::new("taskset")
            .args(["-cp", &last.to_string(), &own])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !moved.is_ok_and(|status| status.success()) {
            return Self::unpinned();
        }
        let second = allowed.get(1).unwrap_or(server);
        let output = match allowed.len() {
            1 => "one core for all: figures of CPU count, throughput and latency do not".to_owned(),
            2 => format!(
                "servers on core {server}, the client on core {last}, which two workers share with it"
            ),
            _ => format!(
                "servers on core {server}, two workers also on {second}, the client on core {last}"
            ),
        };
        Self {
            server: Some(server.to_string()),
            two: Some(format!("{server},{second}")),
            output,
        }
    }

    fn unpinned() -> Self {
        let output =
            "taskset is missing: processes are not pinned to cores, so the figures vary".to_owned();
        Self {
            server: None,
            two: None,
            output,
        }
    }

    /// A description for the table's head.
    pub fn output(&self) -> &str {
        &self.output
    }

    /// A program on the servers' core.
    pub fn one(&self, program: &Path) -> Command {
        on(self.server.as_deref(), program)
    }

    /// A program on two cores.
    pub fn two(&self, program: &Path) -> Command {
        on(self.two.as_deref(), program)
    }
}

/// `taskset` replaces itself by the program, so the process id stays.
fn on(cores: Option<&str>, program: &Path) -> Command {
    let Some(cores) = cores else {
        return Command::new(program);
    };
    let mut command = Command::new("taskset");
    command.args(["-c", cores]).arg(program);
    command
}

/// The cores available to this process: `0-3,8` in the kernel's notation.
fn allowed() -> Vec<usize> {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let listed = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap_or("")
        .trim();
    let mut cores = Vec::new();
    for part in listed.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            cores.extend(first..=last);
        }
    }
    cores
}

/// The path of an installed program; servers are often in `/usr/sbin`.
pub fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let also = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(also)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// A process and all its descendants.
pub fn family(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let stat = read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name in brackets may contain blanks; the parent is the second field after it.
        let parent = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        children.entry(parent.unwrap_or(0)).or_default().push(id);
    }
    let mut all = vec![root];
    let mut next = 0;
    while let Some(id) = all.get(next) {
        all.extend(children.remove(id).unwrap_or_default());
        next += 1;
    }
    all
}

/// CPU seconds of a family so far. Threads that have ended are missing: the contestants are configured so that theirs
/// do not end.
pub fn worked(family: &[u32]) -> f64 {
    let tasks = family
        .iter()
        .filter_map(|id| read_dir(format!("/proc/{id}/task")).ok())
        .flatten()
        .flatten();
    let nanos = tasks.filter_map(|task| {
        read_to_string(task.path().join("schedstat"))
            .ok()?
            .split(' ')
            .next()?
            .parse::<f64>()
            .ok()
    });
    nanos.sum::<f64>() / 1e9
}

/// Memory of a family in bytes. Shared memory is counted once.
pub fn resident(family: &[u32]) -> f64 {
    let each = family.iter().filter_map(|id| {
        let text = read_to_string(format!("/proc/{id}/smaps_rollup")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        line.trim().trim_end_matches(" kB").parse::<f64>().ok()
    });
    each.sum::<f64>() * 1_024.0
}
