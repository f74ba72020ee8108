"""Headless Chromium through its own driver, by the few calls of the WebDriver protocol that the tests need."""
import base64
import json
import subprocess
import tempfile
import time
import urllib.request

from conftest import free_port, listens, wait_until
from patience import patience

ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"]


class Browser:
    """One window, for a `with` statement: `scale` pixels of the screen for one of the page; of a phone with `phone`; `more`
    arguments of Chromium."""

    def __init__(self, width=1200, height=800, scale=1, phone=False, more=()):
        self.profile = tempfile.TemporaryDirectory(prefix="mapcache-browser-", ignore_cleanup_errors=True)  # it may still be writing
        self.port = free_port()
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        wait_until(lambda: listens(("127.0.0.1", self.port)), "chromedriver listens")
        options = {"args": [*ARGUMENTS, *more, f"--force-device-scale-factor={scale}", f"--user-data-dir={self.profile.name}",
                            f"--window-size={width},{height}"]}
        if phone:
            options["mobileEmulation"] = {"deviceMetrics": {"width": width, "height": height, "pixelRatio": scale, "mobile": True, "touch": True}}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options,
                  "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        self.session = ""
        try:
            self.session = "/session/" + self._call("", {"capabilities": {"alwaysMatch": wanted}}, "/session")["sessionId"]
        except BaseException:
            self._end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._call("", method="DELETE")
        finally:
            self._end()

    def _end(self):
        self.driver.terminate()
        self.driver.wait(patience(60))
        self.profile.cleanup()

    def _call(self, path, content=None, start=None, method="POST"):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{start or self.session}{path}", method=method,
                                         data=json.dumps(content or {}).encode(),
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=patience(60)) as reply:
            return json.load(reply)["value"]

    def open(self, url):
        self._call("/url", {"url": url})

    def script(self, text):
        return self._call("/execute/sync", {"script": text, "args": []})

    def move(self, x, y, click=False):
        """The mouse to a place in the window, in pixels."""
        actions = [{"type": "pointerMove", "duration": 0, "x": x, "y": y}]
        if click:
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self._call("/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]})

    def press(self, key):
        """A key, by its code point in the protocol."""
        actions = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self._call("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def prefer(self, scheme):
        """What the page hears of the colours that its reader likes: "light" or "dark"."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._call("/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}})

    def screenshot(self):
        """PNG bytes of the window."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{self.session}/screenshot", timeout=patience(60)) as reply:
            return base64.b64decode(json.load(reply)["value"])

    def console(self):
        """What the page has written or broken since the last call; not what Chromium says of drawing without a graphics card, nor of requests
        that it gives up where an interface of this machine comes or goes, as those of other tests' network namespaces do."""
        return [entry for entry in self._call("/se/log", {"type": "browser"}) if entry["level"] in ("SEVERE", "WARNING")
                and "GL Driver Message" not in entry["message"] and "software WebGL" not in entry["message"]
                and "ERR_NETWORK_CHANGED" not in entry["message"]]

    def network(self):
        """(address, status) of what has been answered, and (address, None) of what has been asked for, since the last
        call."""
        events = [json.loads(entry["message"])["message"] for entry in self._call("/se/log", {"type": "performance"})]
        answered = [event["params"]["response"] for event in events if event["method"] == "Network.responseReceived"]
        asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [(response["url"], response["status"]) for response in answered] + [(url, None) for url in asked]

    def settled(self, *needed, until=lambda: True, seconds=60):
        """Waits until each of the texts has been in the address of an answered request, until() holds and nothing has
        been asked for half a second; returns all requests."""
        requests, quiet, end = [], 0, time.monotonic() + patience(seconds)
        while time.monotonic() < end and quiet < 3:
            time.sleep(0.15)
            more = self.network()
            requests += more
            missing = [text for text in needed if not any(text in url and status for url, status in requests)]
            quiet = 0 if more or missing or not until() else quiet + 1
        assert quiet >= 3, f"the page did not come to rest: {requests}"
        return requests
