#!/usr/bin/env python3
"""web_pages.py [--pictures DIR]: the dashboard in a real browser, on a live `hfsad up`. Needs HFSAD, chromium and chromium-driver.

Opens every page, waits for points to arrive, kills a client and sees it gone and back, compares two runs by keyboard, on a desktop and on a phone's
width, light and dark. The console must stay empty, and nothing may be asked for elsewhere. Then the server's refusals: methods, hosts, paths,
tokens, addresses.
"""
import http.client, json, os, re, signal, socket, sqlite3, ssl, subprocess, sys, tempfile, time, urllib.error, urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, missing

HFSAD = os.path.realpath(os.environ["HFSAD"])
PICTURES = sys.argv[2] if len(sys.argv) == 3 and sys.argv[1] == "--pictures" else None
HOSTILE = "<img src=x onerror=alert(1)>&quot;"  # the name of a run
started = []


def hfsad(*words):
    return subprocess.run([HFSAD, *words], capture_output=True, text=True, check=False)


def start(*words):
    process = subprocess.Popen([HFSAD, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    started.append(process)
    return process


def stop(process):
    process.send_signal(signal.SIGTERM)
    return process.wait(60)


def children(pid):
    """pid -> command line of the processes below."""
    found = {}
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1]) if name.isdigit() else 0
            with open(f"/proc/{name}/cmdline") as f:
                if parent == pid:
                    found[int(name)] = f.read().replace("\0", " ")
        except OSError:
            pass
    return found


def prepare():
    assert hfsad("generate", "quantile", "--edges", "3", "--clients", "4", "--features", "12", "--rows", "40", "--out", "wards", "--quiet").returncode == 0
    for out, sets in (("first", []), ("second", ["--set", "loss.tau=0.9"]), ("third", ["--set", "algorithm=hfsad", "--set", "schedule.client.c=9"])):
        run = hfsad("run", "wards/spec.yaml", "--quiet", "--out", out, *sets)
        assert run.returncode == 0 and not run.stderr, run.stderr
    assert hfsad("runs", "tag", "1", "baseline").returncode == 0
    if not PICTURES:
        assert hfsad("runs", "name", "2", HOSTILE).returncode == 0
    up = start("up", "wards/spec.yaml", "--processes", "--set", "algorithm=hfsad", "--set", "run.iterations=1000000", "--out", "live", "--state", "states",
               "--dash", "127.0.0.1:0", "--log-level", "error")
    line = up.stderr.readline()
    address = re.search(r"dashboard at (http://127\.0\.0\.1:\d+/)run/(\d+)", line)
    assert address, line
    return up, address[1], int(address[2])


def picture(browser, name):
    if PICTURES:  # without the names of this machine
        browser.run("""const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            while (walk.nextNode()) walk.currentNode.data = walk.currentNode.data.replaceAll(arguments[0], "/srv/hfsad").replace(/ on \\S+$/, " on cloud");""", os.getcwd())
        browser.picture(os.path.join(PICTURES, name), whole=True)


def see_run(browser, root, run):
    browser.size(1280, 900)
    browser.open(root)
    browser.wait("return location.pathname", lambda path: path == f"/run/{run}")
    points = "return Number(document.querySelector('.chart')?.dataset.points || 0)"
    first = browser.wait(points, lambda n: n >= 3, "points of the live run")
    browser.wait(points, lambda n: n > first, "more points, without a reload")
    browser.wait("return document.querySelectorAll('.chart canvas').length", lambda n: n >= 6, "six charts")
    text = browser.run("return document.body.innerText")
    for words in ("Objective above its best", "Residuals by tier", "Bytes of models", "Coefficients of the cloud", "Support", "Settings against defaults", "Log", "Certificate", "Proven gap"):
        assert words in text, f"{words} is not on the page of the run"
    assert "iterations" in text and "1000000" in text, "a changed setting is not shown"
    if not PICTURES:  # what cli_cloud_history.sh sees a cloud write
        with sqlite3.connect(os.environ["HFSAD_HISTORY"], timeout=60) as db:
            db.execute("INSERT INTO event (run, at, level, node, text) VALUES (?, ?, 2, 'cloud', 'safeguard: repair 2 at iteration 7')", (run, time.time() * 1000))
        browser.wait("return document.querySelector('.verdict').innerText", lambda t: "safeguard: 2 repairs so far, the last at iteration 7" in t, "repairs while it trains")


def see_runs(browser, root):
    browser.open(root + "runs")
    browser.wait("return document.querySelectorAll('tr[data-run]').length", lambda n: n == 4, "four runs")
    text = browser.run("return document.querySelector('.runs').innerText")
    assert "loss.tau" in text and "schedule.client.c" in text and "features.standardize" not in text, f"not the settings that differ: {text}"
    assert "running" in text and "done" in text and "baseline" in text, text
    assert PICTURES or HOSTILE in text, "a name became markup"
    picture(browser, "dash-runs.png")
    browser.press("jjxjjx")  # the second and the fourth, which have ended
    browser.wait("return document.querySelectorAll('tr.selected').length", lambda n: n == 2, "two selected by keyboard")
    browser.press("c")


def see_compare(browser):
    browser.wait("return location.pathname + location.search", lambda a: re.fullmatch(r"/compare\?ids=\d+,\d+", a), "the page of a comparison")
    browser.wait("return document.querySelectorAll('.chart canvas').length", lambda n: n == 1)
    axis = "return document.querySelector('.chart').dataset.points"
    by_iteration = browser.wait(axis)
    browser.run("document.querySelector('[data-against=bytes]').click()")
    browser.wait(axis, lambda n: n and n != by_iteration, "another axis")
    text = browser.run("return document.body.innerText")
    assert "schedule.client.c" in text and "loss.tau" not in text, text
    picture(browser, "dash-compare.png")


def state_of(node):
    return f"return document.querySelector('[data-node=\"{node}\"]')?.dataset.state"


def see_federation(browser, root, run, up):
    node = "edge2/client6"
    browser.open(f"{root}federation/{run}")
    browser.wait("return [...document.querySelectorAll('[data-node]')].filter((n) => n.dataset.state === 'live').length", lambda n: n == 16, "sixteen live nodes")
    victim = next(pid for pid, line in children(up.pid).items() if f"--name={node}" in line)
    os.kill(victim, signal.SIGKILL)
    browser.wait(state_of(node), lambda s: s == "gone", f"{node} is gone")
    browser.wait(state_of(node), lambda s: s == "live", f"{node} is back")
    browser.wait(f"return document.querySelector('[data-node=\"{node}\"]').innerText", lambda t: "1 × lost" in t)
    browser.wait("return document.querySelector('.log').innerText", lambda t: "signal KILL" in t and "back" in t, "the log of the loss")
    picture(browser, "dash-federation.png")


def see_small(browser, root, run):
    browser.size(390, 844, dark=True)
    for page in ("runs", f"run/{run}", f"federation/{run}", "compare?ids=1,3"):
        browser.open(root + page)
        browser.wait("return document.getElementById('main').dataset.ready")
        width = browser.run("return document.documentElement.scrollWidth")
        assert width <= 390, f"{page}: {width} px on a phone of 390"
        assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(15, 20, 26)", "not dark"
        if page == f"run/{run}":
            browser.wait("return document.querySelectorAll('.chart canvas').length", lambda n: n >= 6)
    if PICTURES:
        browser.open(f"{root}run/{run}")
        browser.wait("return document.querySelectorAll('.chart canvas').length", lambda n: n >= 6)
        browser.picture(os.path.join(PICTURES, "dash-phone.png"))
        browser.size(1280, 900, dark=True)
        browser.open(f"{root}run/{run}")
        browser.wait("return document.querySelectorAll('.chart canvas').length", lambda n: n >= 6)
        picture(browser, "dash-run.png")


def see_error(browser, root):
    browser.open(f"{root}run/999")
    browser.wait("return document.body.innerText", lambda t: "has no run 999" in t, "a page that says what is wrong")


def ask(root, path, method="GET", headers=None):
    host, port = root.split("//")[1].strip("/").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=20)
    connection.putrequest(method, path, skip_host="Host" in (headers or {}))
    for name, value in (headers or {}).items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read()


def check_refusals(root):
    status, headers, _ = ask(root, "/")
    policy = headers["Content-Security-Policy"]
    assert status == 200 and "default-src 'none'" in policy and "unsafe" not in policy and headers["X-Content-Type-Options"] == "nosniff", headers
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert ask(root, "/api/runs", method)[0] == 405, method
    assert ask(root, "/", headers={"Host": "evil.example"})[0] == 403, "another host's name"
    for path in ("/../../etc/passwd", "/..%2f..%2fetc/passwd", "/style.css/..", "/api/run/1;DROP", "/api/run/-1", "/api/run/99999999999999999999", "/api/trace/1/../../x", "//etc/passwd"):
        status, _, body = ask(root, path)
        assert status == 404 and b"root:" not in body, (path, status, body[:100])
    for path in ("/api/runs?text=' OR 1=1 --", "/api/runs?sort=id;DROP TABLE run", "/api/runs?limit=-5", "/api/nodes/1?under=x&most=-1"):
        status, _, body = ask(root, path.replace(" ", "%20"))
        assert status == 200, (path, status)
    assert len(json.loads(ask(root, "/api/runs")[2])) == 4
    assert ask(root, "/api/trace/1?points=999999999")[0] == 200
    # more streams than there are places: refused, and pages still come
    streams = []
    for _ in range(40):
        connection = http.client.HTTPConnection(*root.split("//")[1].strip("/").split(":"), timeout=20)
        connection.request("GET", "/api/events")
        streams.append((connection, connection.getresponse()))
    found = {answer.status for _, answer in streams}
    assert found == {200, 503}, found
    assert ask(root, "/api/runs")[0] == 200
    for connection, _ in streams:
        connection.close()


def check_token():
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                    "-keyout", "dash.key", "-out", "dash.crt"], check=True, capture_output=True)
    token = "0123456789abcdef0123456789abcdef"
    with open("dash.token", "w") as file:
        file.write(token + "\n")
    dash = start("dash", "--listen", "127.0.0.1:0", "--keys", ".")
    root = dash.stdout.readline().strip()
    context = ssl.create_default_context(cafile="dash.crt")
    root = root.replace("127.0.0.1", "localhost")

    def get(path, **headers):
        try:
            with urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), Stay()).open(urllib.request.Request(root + path, headers=headers), timeout=20) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None

    status, _, body = get("runs")
    assert root.startswith("https://") and status == 401 and b"A token is needed" in body, (root, status)
    assert get("api/runs")[0] == 401 and get("api/runs", Authorization="Bearer " + token[:-1] + "0")[0] == 401 and get("?token=wrong")[0] == 401
    assert get("api/runs", Authorization="Bearer " + token)[0] == 200
    status, headers, _ = get("?token=" + token)
    assert status == 303 and all(word in headers["Set-Cookie"] for word in ("HttpOnly", "Secure", "SameSite=Strict")), headers
    assert get("api/runs", Cookie=headers["Set-Cookie"].split(";")[0])[0] == 200
    assert stop(dash) == 0


def refused(*words, said):
    run = hfsad(*words)
    assert run.returncode == 2 and run.stderr.count("\n") == 1 and said in run.stderr, (words, run.returncode, run.stderr)


def check_addresses():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        refused("dash", "--listen", address, said="the port is in use")
        refused("run", "wards/spec.yaml", "--out", "never", "--dash", address, said="the port is in use")
        assert not os.path.exists("never")
    refused("dash", "--listen", "0.0.0.0:0", said="beyond this machine it needs a certificate and a token")
    refused("dash", "--listen", "8080", said="give host:port")
    refused("dash", "--keys", "wards", said="dash.crt")
    with open("dash.token", "w") as file:
        file.write("short\n")
    refused("dash", "--listen", "127.0.0.1:0", "--keys", ".", said="a token has")
    with open("damaged.db", "wb") as file:
        file.write(b"no database" * 1000)
    refused("dash", "--listen", "127.0.0.1:0", "--history", "damaged.db", said="damaged")


def check_browser(up, root, run):
    why = missing()
    if not json.loads(ask(root, "/api/about")[2])["charts"]:
        why = "the program was built without charts (no network then; see cmake/charts.cmake)"
    if why:
        print(f"skipped: the pages in a browser: {why}")
        return
    with Browser() as browser:
        see_run(browser, root, run)
        see_runs(browser, root)
        see_compare(browser)
        see_federation(browser, root, run, up)
        see_small(browser, root, run)
        complaints = browser.complaints()
        assert not complaints, complaints
        see_error(browser, root)
        outside = [url for url in browser.requests() if not url.startswith((root, "data:"))]
        assert not outside, outside


def main():
    os.environ["HFSAD_HISTORY"] = os.path.join(os.getcwd(), "runs.db")
    up, root, run = prepare()
    check_browser(up, root, run)
    check_refusals(root)
    assert stop(up) == 143
    dashboards = [line for line in children(up.pid).values()]
    assert not dashboards, dashboards
    check_token()
    check_addresses()
    print("all passed")


if __name__ == "__main__":
    PICTURES = os.path.abspath(PICTURES) if PICTURES else None
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            main()
        finally:
            for process in started:
                if process.poll() is None:
                    process.terminate()
                    process.wait(30)
            os.chdir("/")
