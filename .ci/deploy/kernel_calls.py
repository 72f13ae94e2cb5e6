"""What the program asks of the kernel, held against what its systemd unit lets it ask.

It is started as the unit starts it: with two sockets, and with somebody who wants to know when it is ready. It answers,
reads its settings again and stops, and strace writes all of it down. Not for: whether the unit is well-formed.

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

PATIENCE = 60
USER = 65532


def listening():
    """A socket on a free port of loopback."""
    return socket.create_server(("127.0.0.1", 0))


def said(unit, name):
    """What the unit says for this name, line by line; an empty line forgets those before."""
    values = re.findall(rf"^{name}=(.*)$", unit, re.MULTILINE)
    return values[max((i + 1 for i, value in enumerate(values) if not value), default=0):]


def calls_of(word):
    """The calls that a word of a filter stands for, as this systemd knows them."""
    if not word.startswith("@"):
        return {word}
    result = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", word], capture_output=True, text=True, check=True)
    words = [line.split("#")[0].strip() for line in result.stdout.splitlines()[1:]]
    return set().union(*(calls_of(word) for word in words if word))


def allowed(unit):
    """The calls that SystemCallFilter lets through: later lines win."""
    calls = set()
    for line in said(unit, "SystemCallFilter"):
        named = set().union(*(calls_of(word) for word in line.lstrip("~").split()))
        calls = calls - named if line.startswith("~") else calls | named
    return calls


def get(address, path, key=None):
    request = urllib.request.Request(f"http://{address[0]}:{address[1]}{path}", headers={"X-API-Key": key} if key else {})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return answer.read().decode()


def run(binary, state):
    """Its life under strace; what strace wrote."""
    public, side = listening(), listening()
    supervisor = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    supervisor.bind(f"{state}/notify")
    supervisor.settimeout(PATIENCE)
    trace, settings = state / "trace", state / "scoregate.toml"
    settings.write_text(f'upstream = "built-in"\ndata_dir = "{state}/state"\nguard.per_minute = 60\n')
    # As nobody in particular: root would be asked for more.
    nobody = {"user": USER, "group": USER, "extra_groups": []} if os.getuid() == 0 else {}
    binary = shutil.copy(binary, state / "scoregate")
    if nobody:
        for path in (state, settings, state / "notify"):
            os.chown(path, USER, USER)
    environment = {"PATH": os.environ["PATH"], "NOTIFY_SOCKET": f"{state}/notify", "SCOREGATE_LOG_FORMAT": "json", "LISTEN_FDS": "2"}

    # Out of the way of 3 and 4, which are where the program looks. Bash says whose they are; with -D strace watches
    # from aside, so that it is this very process that becomes the program.
    high = [os.dup2(one.fileno(), 100 + number, inheritable=True) for number, one in enumerate((public, side))]
    become = 'exec 3<&100 4<&101 100<&- 101<&-; export LISTEN_PID=$$; exec strace -D -f -qq -o "$0" "$@"'
    arguments = ["bash", "-c", become, str(trace), binary, "serve", "--config", str(settings)]
    with open(state / "log", "w") as log:
        process = subprocess.Popen(arguments, env=environment, pass_fds=high, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **nobody)
    try:
        ready = supervisor.recv(4096).decode()
        assert "READY=1" in ready, ready
        create = [binary, "keys", "create", "--name", "units", "--tier", "pro", "--config", str(settings)]
        key = subprocess.run(create, env={}, capture_output=True, text=True, check=True, timeout=PATIENCE, **nobody).stdout.strip()
        answer = json.loads(get(public.getsockname(), "/api/v1/models", key))
        assert answer["success"] is True, answer
        assert get(side.getsockname(), "/readyz") == "ready\n"
        assert "scoregate_requests_total" in get(side.getsockname(), "/metrics")
        settings.write_text(settings.read_text().replace("60", "61"))
        reload = [binary, "reload", "--config", str(settings)]
        result = subprocess.run(reload, env={}, capture_output=True, text=True, check=True, timeout=PATIENCE, **nobody)
        assert "guard.per_minute" in result.stdout, result
        process.terminate()
        stopping = supervisor.recv(4096).decode()
        assert "STOPPING=1" in stopping, stopping
        code = process.wait(PATIENCE)
        assert code == 0, f"it ended with {code}"
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
    may = allowed(unit)
    calls = set(re.findall(r"^\d+ +([a-z_0-9]+)\(", trace, re.MULTILINE))
    assert {"execve", "accept4", "epoll_wait", "fsync"} <= calls, f"this is no life of a server: {sorted(calls)}"
    assert may and not may & {"ptrace", "mount", "setuid"}, "the filter lets everything through"
    # A unit that lets less through has to be found out.
    strict = allowed(unit.replace("SystemCallFilter=@system-service", "SystemCallFilter=@basic-io"))
    assert "accept4" in calls - strict, "a call that is forbidden is not seen"
    findings = [f"SystemCallFilter does not let it call {call}" for call in sorted(calls - may)]

    families = set(re.findall(r" socket\((AF_\w+)", trace))
    assert families, "it opened no socket"
    known = set(" ".join(said(unit, "RestrictAddressFamilies")).split())
    findings += [f"RestrictAddressFamilies does not let it open {family}" for family in sorted(families - known)]

    mapped = re.findall(r"^.* (?:mmap|mprotect)\(.*PROT_WRITE\|PROT_EXEC.*$", trace, re.MULTILINE)
    assert "MemoryDenyWriteExecute=yes" in unit, "memory can be written and run"
    findings += [f"MemoryDenyWriteExecute forbids {line}" for line in mapped]
    if findings:
        sys.exit("\n".join(findings))
    print(f"units: {len(calls)} different calls to the kernel in a life, all among the {len(may)} that the unit allows")


if __name__ == "__main__":
    main()
