"""Compares the system calls of the program with those that its systemd unit allows.

The program is started as by the unit: with two sockets and a notification socket. It serves requests, reloads its settings
and stops under strace. Whether the unit is well-formed is checked in `units.sh`.

    kernel_calls.py UNIT BINARY
"""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request

TIMEOUT = 60
USER = 65532


def listening():
    """Returns a listening socket on a free loopback port."""
    return socket.create_server(("127.0.0.1", 0))


def directives(unit, name):
    """Returns the values of a directive of the unit. An empty value resets those before it."""
    values = re.findall(rf"^{name}=(.*)$", unit, re.MULTILINE)
    return values[max((i + 1 for i, value in enumerate(values) if not value), default=0):]


def calls_of(word):
    """Returns the system calls of a filter entry, with groups expanded by this systemd."""
    if not word.startswith("@"):
        return {word}
    result = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", word], capture_output=True, text=True, check=True)
    words = [line.split("#")[0].strip() for line in result.stdout.splitlines()[1:]]
    return set().union(*(calls_of(word) for word in words if word))


def allowed(unit):
    """Returns the system calls that SystemCallFilter allows. Later lines override earlier ones."""
    calls = set()
    for line in directives(unit, "SystemCallFilter"):
        named = set().union(*(calls_of(word) for word in line.lstrip("~").split()))
        calls = calls - named if line.startswith("~") else calls | named
    return calls


def get(address, path, key=None):
    request = urllib.request.Request(f"http://{address[0]}:{address[1]}{path}", headers={"X-API-Key": key} if key else {})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        return response.read().decode()


def run(binary, state):
    """Runs the program under strace, from start to shutdown, and returns the trace."""
    public, side = listening(), listening()
    supervisor = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    supervisor.bind(f"{state}/notify")
    supervisor.settimeout(TIMEOUT)
    trace, settings = state / "trace", state / "scoregate.toml"
    settings.write_text(f'upstream = "built-in"\ndata_dir = "{state}/state"\nguard.per_minute = 60\n')
    # As an unprivileged user: root would make other calls.
    unprivileged = {"user": USER, "group": USER, "extra_groups": []} if os.getuid() == 0 else {}
    binary = shutil.copy(binary, state / "scoregate")
    if unprivileged:
        for path in (state, settings, state / "notify"):
            os.chown(path, USER, USER)
    environment = {"PATH": os.environ["PATH"], "NOTIFY_SOCKET": f"{state}/notify", "SCOREGATE_LOG_FORMAT": "json", "LISTEN_FDS": "2"}

    # The program expects the sockets at descriptors 3 and 4, so they are first duplicated to high ones. Bash sets
    # LISTEN_PID; with -D strace is a separate process, so that this process becomes the program.
    high = [os.dup2(one.fileno(), 100 + number, inheritable=True) for number, one in enumerate((public, side))]
    become = 'exec 3<&100 4<&101 100<&- 101<&-; export LISTEN_PID=$$; exec strace -D -f -qq -o "$0" "$@"'
    arguments = ["bash", "-c", become, str(trace), binary, "serve", "--config", str(settings)]
    with open(state / "log", "w") as log:
        process = subprocess.Popen(arguments, env=environment, pass_fds=high, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **unprivileged)
    try:
        ready = supervisor.recv(4096).decode()
        assert "READY=1" in ready, ready
        create = [binary, "keys", "create", "--name", "units", "--tier", "pro", "--config", str(settings)]
        key = subprocess.run(create, env={}, capture_output=True, text=True, check=True, timeout=TIMEOUT, **unprivileged).stdout.strip()
        response = json.loads(get(public.getsockname(), "/api/v1/models", key))
        assert response["success"] is True, response
        assert get(side.getsockname(), "/readyz") == "ready\n"
        assert "scoregate_requests_total" in get(side.getsockname(), "/metrics")
        settings.write_text(settings.read_text().replace("60", "61"))
        reload = [binary, "reload", "--config", str(settings)]
        result = subprocess.run(reload, env={}, capture_output=True, text=True, check=True, timeout=TIMEOUT, **unprivileged)
        assert "guard.per_minute" in result.stdout, result
        process.terminate()
        stopping = supervisor.recv(4096).decode()
        assert "STOPPING=1" in stopping, stopping
        code = process.wait(TIMEOUT)
        assert code == 0, f"the program exited with code {code}"
    except Exception:
        sys.stderr.write((state / "log").read_text())
        raise
    finally:
        process.kill()
        process.wait()
    return trace.read_text()


def main():
    unit, binary = pathlib.Path(sys.argv[1]).read_text(), os.path.realpath(sys.argv[2])
    with tempfile.TemporaryDirectory() as state:
        trace = run(binary, pathlib.Path(state))
    permitted = allowed(unit)
    calls = set(re.findall(r"^\d+ +([a-z_0-9]+)\(", trace, re.MULTILINE))
    assert {"execve", "accept4", "epoll_wait", "fsync"} <= calls, f"the trace is incomplete: {sorted(calls)}"
    assert permitted and not permitted & {"ptrace", "mount", "setuid"}, "the filter allows everything"
    # A stricter unit must be detected.
    strict = allowed(unit.replace("SystemCallFilter=@system-service", "SystemCallFilter=@basic-io"))
    assert "accept4" in calls - strict, "a forbidden call is not detected"
    findings = [f"SystemCallFilter does not allow {call}" for call in sorted(calls - permitted)]

    families = set(re.findall(r" socket\((AF_\w+)", trace))
    assert families, "the program opened no socket"
    known = set(" ".join(directives(unit, "RestrictAddressFamilies")).split())
    findings += [f"RestrictAddressFamilies does not allow {family}" for family in sorted(families - known)]

    mapped = re.findall(r"^.* (?:mmap|mprotect)\(.*PROT_WRITE\|PROT_EXEC.*$", trace, re.MULTILINE)
    assert "MemoryDenyWriteExecute=yes" in unit, "the unit does not set MemoryDenyWriteExecute"
    findings += [f"MemoryDenyWriteExecute forbids {line}" for line in mapped]
    if findings:
        sys.exit("\n".join(findings))
    print(f"units: {len(calls)} different system calls, all among the {len(permitted)} that the unit allows")


if __name__ == "__main__":
    main()
