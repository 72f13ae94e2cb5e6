"""A running `scoregate demo`, its mail, and requests to it with curl."""

import email
import email.policy
import glob
import html
import json
import os
import pathlib
import re
import subprocess
import time

LINK = r"http://[^\s\"<]+/account/confirm\?token=[A-Za-z0-9_-]{43}"


def wait_for(condition, problem, seconds=10):
    """Waits until a condition is met, and returns its value."""
    for _ in range(seconds * 100):
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise SystemExit(f"{problem} for {seconds} seconds")


class Demo:
    """The demo with a data directory. Its clock can be ahead of the machine's: by `offset`, such as `+61m`, from a start on."""

    def __init__(self, binary, directory, listen="127.0.0.1:0", offset="+0"):
        self.binary, self.directory, self.listen = binary, directory, listen
        self.read_mails = set()
        os.makedirs(directory)
        # Its curl reports the status after the body, whatever the command line is.
        with open(f"{directory}/.curlrc", "w") as file:
            file.write('silent\nwrite-out = "\\n%{http_code}"\n')
        self.start(offset)

    def start(self, offset):
        environment = dict(os.environ)
        if offset != "+0":
            libraries = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
            if not libraries:
                raise SystemExit("libfaketime is not installed; on Debian: apt-get install libfaketime")
            environment |= {"LD_PRELOAD": libraries[0], "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        command = [self.binary, "demo", "--listen", self.listen, "--admin-listen", "127.0.0.1:0",
                   "--data-dir", f"{self.directory}/state"]
        self.log = open(f"{self.directory}/log", "w")
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.addresses = {}
        for line in self.process.stdout:
            found = re.match(r"(docs|sign up|status|metrics|state) +(\S+)$", line)
            if found:
                self.addresses[found[1]] = found[2]
            if line.startswith("state "):
                break
        else:
            raise SystemExit(f"the demo did not start: {self.messages()}")
        self.origin = self.addresses["docs"].removesuffix("/docs")
        # It keeps its address when it is started again.
        self.listen = self.origin.removeprefix("http://")

    def messages(self):
        with open(f"{self.directory}/log") as file:
            return file.read()

    def stop(self, may_warn=False):
        """Stops it. It has not failed and has logged no warning."""
        self.process.terminate()
        code = self.process.wait()
        self.process.stdout.close()
        self.log.close()
        warns = re.search(r"\b(WARN|ERROR)\b", self.messages())
        if code != 0 or warns and not may_warn:
            raise SystemExit(f"the demo ended with {code} and wrote: {self.messages()}")

    def restart(self, offset):
        self.stop()
        self.start(offset)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            # A killed process with a clock of its own leaves these.
            for name in ("sem.faketime_sem_", "faketime_shm_"):
                pathlib.Path(f"/dev/shm/{name}{self.process.pid}").unlink(missing_ok=True)

    def next_message(self, seconds=10):
        """Waits for the next mail. Returns it, its text and its HTML."""
        def new_files():
            return sorted(set(glob.glob(f"{self.directory}/state/mail/*.eml")) - self.read_mails)
        new = wait_for(new_files, "no mail was written", seconds)
        if len(new) > 1:
            raise SystemExit(f"{len(new)} mails instead of one: {new}")
        self.read_mails.update(new)
        with open(new[0], "rb") as file:
            mail = email.message_from_binary_file(file, policy=email.policy.default)
        return mail, *(mail.get_body((kind,)).get_content() for kind in ("plain", "html"))

    def next_mail(self):
        """Waits for the next mail. Returns its recipient, the link of its text, and its HTML, which has the same link. The demo prints
        the link too."""
        mail, text, body = self.next_message()
        links = re.findall(LINK, text)
        hrefs = re.findall(LINK, html.unescape("\n".join(re.findall(r'href="([^"]*)"', body))))
        if len(links) != 1 or hrefs != links or not links[0].startswith(f"{self.origin}/"):
            raise SystemExit(f"the text has the links {links}, the HTML {hrefs}")
        wait_for(lambda: links[0] in self.messages(), "the link was not printed")
        return mail["to"], links[0], body

    def operate(self, *arguments):
        """Runs a command of the operator. Returns its JSON."""
        command = [self.binary, *arguments, "--data-dir", f"{self.directory}/state", "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout)

    def run(self, command):
        """Runs a command of a page. Returns the status and the body of its response."""
        environment = {"PATH": os.environ["PATH"], "CURL_HOME": self.directory}
        done = subprocess.run(["bash", "-euc", command], env=environment, capture_output=True, text=True, timeout=20)
        if done.returncode != 0:
            raise SystemExit(f"{command} failed with {done.returncode}: {done.stderr}")
        body, status = done.stdout.rsplit("\n", 1)
        return int(status), body

    def status(self, key, target="/api/v1/me"):
        """The status of a request with a key. `/api/v1/me` costs nothing."""
        return self.run(f"curl -H 'Authorization: Bearer {key}' '{self.origin}{target}'")[0]
