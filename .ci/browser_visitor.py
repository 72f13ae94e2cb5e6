"""A person at a browser: types, clicks and reads. What the browser requests and logs meanwhile is recorded."""

import base64
import json

from browser import Browser

KEYS = {"Tab": (9, None), "Enter": (13, "\r"), " ": (32, " "), "ArrowUp": (38, None)}
# The first element that matches and is rendered.
FIND = """(() => {
    const matches = [...document.querySelectorAll(%s)].filter(
        (one) => one.textContent.includes(%s) && one.checkVisibility());
    return matches[0];
})()"""


class Failure(SystemExit):
    """What is wrong with a page."""


class Visitor(Browser):
    """A browser with one tab. Each `arrive` has cookies and storage of its own."""

    def arrive(self, name, width, height, script=True, scale=1):
        self.name, self.script, self.session, self.where = name, script, None, None
        context = self.do("Target.createBrowserContext")["browserContextId"]
        self.context = context
        target = self.do("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self.session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            self.do(f"{domain}.enable")
        self.resize(width, height, scale)
        self.do("Emulation.setScriptExecutionDisabled", value=not script)
        self.events = []

    def resize(self, width, height, scale=1):
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def paint(self, scheme):
        self.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def allow_clipboard(self, origin):
        """Lets pages write the clipboard, and this test read it."""
        session, self.session = self.session, None
        self.do("Browser.grantPermissions", origin=origin, browserContextId=self.context,
                permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        self.session = session
        self.do("Emulation.setFocusEmulationEnabled", enabled=True)

    def save_downloads(self, directory):
        session, self.session = self.session, None
        self.do("Browser.setDownloadBehavior", behavior="allow", browserContextId=self.context, downloadPath=directory)
        self.session = session

    def fail(self, what):
        raise Failure(f"{self.name}, {self.where}: {what}")

    def expect(self, condition, what):
        if not condition:
            text = self.value("document.body.innerText") if self.session else ""
            self.fail(f"{what}\n--- the page:\n{text[:3000]}")

    def opening(self, action):
        """Does something that opens a page, and waits until that is loaded."""
        begun = len(self.events)
        action()
        position, arrived = begun, False
        while True:
            while position == len(self.events):
                self.events.append(self.read())
            event = self.events[position]
            position += 1
            frame = event.get("params", {}).get("frame", {})
            arrived |= event.get("method") == "Page.frameNavigated" and "parentId" not in frame
            if arrived and event.get("method") == "Page.loadEventFired":
                break
        self.where = self.value("location.pathname + location.search.replace(/token=.*/, 'token=…')")

    def go(self, url):
        """Enters an address."""
        self.opening(lambda: self.do("Page.navigate", url=url))

    def text(self, selector, within=""):
        """The text of the first rendered element that matches; empty if there is none."""
        return self.value(f"{FIND % (json.dumps(selector), json.dumps(within))}?.innerText ?? ''")

    def click(self, selector, within=""):
        """Clicks at the middle of an element with this text."""
        box = self.value(f"""(() => {{
            const one = {FIND % (json.dumps(selector), json.dumps(within))};
            if (!one) return null;
            one.scrollIntoView({{ block: "center", behavior: "instant" }});
            const box = one.getClientRects()[0], [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
            const hit = document.elementFromPoint(x, y);
            return [x, y, hit === one || one.contains(hit) || hit?.contains(one)];
        }})()""")
        self.expect(box, f"there is no {selector} with the text {within!r}")
        x, y, is_free = box
        self.expect(is_free, f"{selector} {within!r} is covered by another element")
        for kind in ("mousePressed", "mouseReleased"):
            self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def follow(self, selector, within=""):
        """Clicks at what opens a page."""
        self.opening(lambda: self.click(selector, within))

    def press(self, key):
        code, text = KEYS[key]
        written = {"text": text} if text else {}
        self.do("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", key=key, code="Space" if key == " " else key,
                windowsVirtualKeyCode=code, **written)
        self.do("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, selector, text):
        """Clicks at a field and types."""
        self.click(selector)
        self.write(text)
        self.expect(self.value(f"document.querySelector({json.dumps(selector)}).value") == text, f"{selector} does not have the text")

    def write(self, text):
        self.do("Input.insertText", text=text)

    def tab_to(self, selector):
        """Presses Tab until the focus is there. The focus is visible at each stop."""
        for _ in range(30):
            self.press("Tab")
            is_there, outline, where = self.value(f"""(() => {{
                const one = document.activeElement, style = getComputedStyle(one);
                return [one.matches({json.dumps(selector)}), style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
                    one.outerHTML.slice(0, 100)];
            }})()""")
            self.expect(outline, f"the focus cannot be seen at {where}")
            if is_there:
                return
        self.fail(f"{selector} cannot be reached with the Tab key")

    def picture(self, file, height=None):
        """Writes a screenshot of the window, or of the top of the page to a height."""
        clip = {}
        if height:
            width = self.value("document.documentElement.clientWidth")
            clip = {"clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}, "captureBeyondViewport": True}
        data = self.do("Page.captureScreenshot", **clip)["data"]
        with open(file, "wb") as opened:
            opened.write(base64.b64decode(data))

    def leave(self):
        self.session = None
        self.do("Target.disposeBrowserContext", browserContextId=self.context)
