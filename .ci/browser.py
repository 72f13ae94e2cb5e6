"""Tests the docs page in a browser, over the DevTools protocol on a pipe: `browser.py BROWSER URL PROFILE [PICTURES]`.

At the width of a desktop and of a phone, in light and dark scheme: nothing overflows, nothing is logged to the console,
the search filters sections, and the copy buttons copy. Without JavaScript the page has no search and no buttons, but all
of its sections. Screenshots are written to the directory PICTURES, if given.
"""

import base64
import json
import os
import subprocess
import sys

TIMEOUT = 60  # seconds, for the whole test


class Browser:
    def __init__(self, program, profile):
        to_read, to_write = os.pipe(), os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
                 "--no-first-run", "--disable-background-networking", "--disable-component-update",
                 "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", f"--user-data-dir={profile}"]

        # The browser reads commands from descriptor 3 and writes responses to 4.
        def descriptors():
            inputs, outputs = os.dup(to_read[0]), os.dup(to_write[1])
            os.dup2(inputs, 3)
            os.dup2(outputs, 4)

        self.process = subprocess.Popen([program, *flags], preexec_fn=descriptors, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read[0])
        os.close(to_write[1])
        self.commands, self.responses = to_read[1], to_write[0]
        self.buffer, self.number, self.events, self.session = b"", 0, [], None

    def read(self):
        while b"\0" not in self.buffer:
            more = os.read(self.responses, 1 << 16)
            if not more:
                sys.exit("the browser has ended")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def do(self, method, **params):
        self.number += 1
        command = {"id": self.number, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self.read()
            if message.get("id") == self.number:
                if "error" in message:
                    sys.exit(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def wait_for(self, event):
        while not any(message.get("method") == event for message in self.events):
            self.events.append(self.read())

    def value(self, expression):
        result = self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True,
                         userGesture=True)
        if "exceptionDetails" in result:
            sys.exit(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def open(self, url, width, height, scheme, script=True):
        self.session = None
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.do(f"{domain}.enable")
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.do("Emulation.setScriptExecutionDisabled", value=not script)
        self.events = []
        self.do("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def console(self):
        named = {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}
        return [message["params"] for message in self.events if message.get("method") in named]


def expect(condition, what):
    if not condition:
        sys.exit(f"/docs: {what}")


def press(browser, key):
    text = "\r" if key == "Enter" else key
    code = {"windowsVirtualKeyCode": 13} if key == "Enter" else {}
    for kind in ("keyDown", "keyUp"):
        written = {"text": text} if kind == "keyDown" and len(text) == 1 else {}
        browser.do("Input.dispatchKeyEvent", type=kind, key=key, **written, **code)


def save_picture(browser, name, anchor):
    browser.value(f"document.getElementById('{anchor}').scrollIntoView()")
    picture = browser.do("Page.captureScreenshot")["data"]
    with open(f"{name}.png", "wb") as file:
        file.write(base64.b64decode(picture))


SHOWN = "[...document.querySelectorAll('main section')].filter(one => one.offsetParent).map(one => one.id)"


def check_page(browser, what):
    """Tests the page, and returns the sections that it shows."""
    overflow = browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    expect(overflow <= 0, f"{what}: it is {overflow} pixels too wide")
    blocks, buttons = (browser.value(f"document.querySelectorAll('{one}').length") for one in ("pre", "button.copy"))
    expect(blocks == buttons > 20, f"{what}: {buttons} copy buttons for {blocks} blocks")
    everything = browser.value(SHOWN)
    press(browser, "/")
    expect(browser.value("document.activeElement.id") == "search", f"{what}: / does not focus the search")
    browser.do("Input.insertText", text="page-hinkley regime")
    found = browser.value(SHOWN)
    expect("endpoint-drift" in found and "endpoint-me" not in found and "errors" not in found,
           f"{what}: the search shows {found}")
    links = browser.value("[...document.querySelectorAll('body > nav a')].filter(one => one.offsetParent).length")
    expect(links <= len(found) + 1, f"{what}: {links} links for {len(found)} sections")
    press(browser, "Escape")
    expect(browser.value(SHOWN) == everything, f"{what}: Escape does not show all sections again")
    browser.value("document.querySelector('.endpoint button.copy').click()")
    label = browser.value("new Promise(done => setTimeout(() => "
                          "done(document.querySelector('.endpoint button.copy').textContent), 200))")
    expect(label == "Copied", f"{what}: the label of the copy button is {label}")
    check_layout(browser, what)
    expect(not browser.console(), f"{what}: on the console: {browser.console()}")
    return everything


def check_layout(browser, what):
    """Header and search stay in view, the menu marks the section, and the layout fits the width."""
    seen = browser.value("""(async () => {
        document.getElementById('limits').scrollIntoView({ behavior: 'instant' });
        await new Promise((done) => setTimeout(done, 200));
        const box = (selector) => document.querySelector(selector).getBoundingClientRect();
        const [text, code] = ['#endpoint-models .pair > :first-child', '#endpoint-models .pair > :nth-child(2)'].map(box);
        return {
            header: box('body > header').bottom, search: box('#search').top, covered: box('#limits-title').top - box('body > header').bottom,
            marked: [...document.querySelectorAll('body > nav a[aria-current]')].map((link) => link.hash),
            columns: code.left >= text.right, label: getComputedStyle(document.querySelector('.cards td'), '::before').content };
    })()""")
    expect(0 <= seen["search"] < seen["header"] < 136, f"{what}: the header ends at {seen['header']}, the search is at {seen['search']}")
    expect(seen["covered"] >= 0, f"{what}: the header covers the heading of a section")
    expect(seen["marked"] == ["#limits"], f"{what}: the menu marks {seen['marked']}")
    width = browser.value("innerWidth")
    expect(seen["columns"] == (width >= 1400), f"{what}: text and code are {'' if seen['columns'] else 'not '}in two columns")
    expect((seen["label"] == '"Requests a day"') == (width <= 640), f"{what}: the label of a limit is {seen['label']}")


def main(program, url, profile, pictures=None):
    browser = Browser(program, profile)
    try:
        browser.do("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        sections = None
        for width, height in ((1500, 900), (1280, 900), (390, 844)):
            for scheme in ("light", "dark"):
                browser.open(url, width, height, scheme)
                sections = check_page(browser, f"{width} pixels, {scheme}")
                if pictures:
                    for name, anchor in (("top", "content"), ("endpoint", "endpoint-models")):
                        save_picture(browser, f"{pictures}/{width}-{scheme}-{name}", anchor)
        browser.open(url, 390, 844, "light", script=False)
        expect(browser.value(SHOWN) == sections, "without JavaScript sections are missing")
        shown = "[...document.querySelectorAll('button, input')].filter((one) => one.checkVisibility()).length"
        expect(browser.value(shown) == 0, "without JavaScript there are buttons that do nothing")
    finally:
        browser.process.kill()
        browser.process.wait()


if __name__ == "__main__":
    import signal

    signal.alarm(TIMEOUT)
    main(*sys.argv[1:])
