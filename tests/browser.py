"""A real browser, driven by the WebDriver protocol: Debian's chromium and chromium-driver, and nothing else.

    with Browser() as b:
        b.open(url); b.wait("return document.title", lambda t: "hfsad" in t); b.picture("x.png")
"""
import base64, json, os, shutil, socket, subprocess, time, urllib.request

WAIT_SECONDS = 60


def missing():
    """What there is not, as a line; None if a browser can be driven."""
    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            return f"{program} is not installed (Debian: chromium, chromium-driver)"
    return None


class Browser:
    def __init__(self, width=1280, height=900):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        environment = {**os.environ, "NO_PROXY": "*", "no_proxy": "*"}
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}", "--silent"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        self.root = f"http://127.0.0.1:{port}"
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        arguments = ["--headless=new", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
                     "--disable-sync", "--no-default-browser-check", "--hide-scrollbars", "--no-proxy-server", "--ignore-certificate-errors", f"--window-size={width},{height}"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        end = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                self.call("GET", "/status")
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
        try:
            made = self.start(arguments)
        except BaseException:
            self.driver.kill()
            self.driver.wait()
            raise
        self.session = f"/session/{made['sessionId']}"

    def start(self, arguments):
        return self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": {"binary": shutil.which("chromium"), "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}})

    def call(self, method, path, body=None):
        data = json.dumps(body if body is not None else {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.root + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with self.opener.open(request, timeout=WAIT_SECONDS) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"].get("message", "")) from None

    def open(self, url):
        self.call("POST", self.session + "/url", {"url": url})

    def run(self, script, *arguments):
        return self.call("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, good=bool, what=None):
        """The value of the script once it is good; fails after a minute and says what it was."""
        end = time.monotonic() + WAIT_SECONDS
        while True:
            value = self.run(script)
            if good(value):
                return value
            if time.monotonic() > end:
                raise AssertionError(f"{what or script}: still {value!r} after {WAIT_SECONDS} s\n" + self.run("return document.body.innerText")[:3000])
            time.sleep(0.05)

    def press(self, keys):
        actions = [a for k in keys for a in ({"type": "keyDown", "value": k}, {"type": "keyUp", "value": k})]
        self.call("POST", self.session + "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def developer(self, command, **parameters):
        return self.call("POST", self.session + "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def size(self, width, height, dark=False):
        self.developer("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.developer("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, path, whole=False):
        if whole:
            height = self.run("return Math.ceil(document.querySelector('main').getBoundingClientRect().bottom + scrollY)")
            width = self.run("return document.documentElement.clientWidth")
            shot = self.developer("Page.captureScreenshot", captureBeyondViewport=True, clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})["data"]
        else:
            shot = self.call("GET", self.session + "/screenshot")
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot))

    def log(self, kind):
        return self.call("POST", self.session + "/se/log", {"type": kind})

    def complaints(self):
        """Lines of the console that are errors or warnings."""
        return [line["message"] for line in self.log("browser") if line["level"] in ("SEVERE", "WARNING")]

    def requests(self):
        """Addresses that pages have asked for."""
        messages = [json.loads(line["message"])["message"] for line in self.log("performance")]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()
