"""The report in a real browser: it renders, its figures are those of analyze, and nothing in a trace runs.

Needs Debian's chromium and chromium-driver, or TRACELAKE_CHROMIUM and
TRACELAKE_CHROMEDRIVER. TRACELAKE_ARTIFACTS names a directory for screenshots.
"""

import base64
import gzip
import json
import os
import random
import re
import shutil
import time
from pathlib import Path

import pytest
from conftest import ROOT
from test_analyses import analyze

pytest.importorskip("selenium", reason="SKIPPED: no selenium; make venv installs it")

from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

HOSTILE = "<img src=x onerror=\"document.title='owned'\"></script><script>document.title='owned'</script>"


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory):
    path = os.environ.get("TRACELAKE_ARTIFACTS")
    if not path:
        return tmp_path_factory.mktemp("screenshots")
    Path(path).mkdir(parents=True, exist_ok=True)
    return Path(path)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    chromium = os.environ.get("TRACELAKE_CHROMIUM") or shutil.which("chromium")
    driver = os.environ.get("TRACELAKE_CHROMEDRIVER") or shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("SKIPPED: no browser; install chromium and chromium-driver to run this test")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    profile = tmp_path_factory.mktemp("profile")
    # Chromium has no sandbox for root and in most containers; the pages are our own.
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "window-size=1440,1000", f"user-data-dir={profile}"):
        options.add_argument("--" + flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()


class Page:
    """A report in the browser."""

    def __init__(self, browser, file, scheme="light"):
        self.browser = browser
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        browser.get_log("browser")
        start = time.monotonic()
        browser.get(Path(file).as_uri())
        self.seconds = time.monotonic() - start

    def js(self, script, *args):
        return self.browser.execute_script(script, *args)

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def complaints(self):
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def rows(self, table):
        """The rows on the page of a table, by column: what the cells stand for."""
        return self.js(
            """const table = document.querySelector(`[data-table="${arguments[0]}"] table`);
            const columns = [...table.querySelectorAll('thead th')].map((th) => th.dataset.column);
            return [...table.querySelectorAll('tbody tr')].map((tr) => Object.fromEntries(
              [...tr.cells].map((td, i) => [columns[i], td.dataset.value ?? null])));""",
            table,
        )

    def all_rows(self, table):
        rows = self.rows(table)
        pages = self.browser.find_elements(By.CSS_SELECTOR, f'[data-table="{table}"] [aria-label^="Next rows"]')
        while pages and pages[0].is_enabled():
            self.click(pages[0])
            rows += self.rows(table)
        return rows

    def click(self, element):
        self.js("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def sort(self, table, column):
        self.click(self.one(f'[data-table="{table}"] th[data-column="{column}"] button'))

    def background(self):
        return self.js("return getComputedStyle(document.body).backgroundColor")

    def shot(self, path):
        """The whole page, up to a height that a picture can have."""
        self.js("scrollTo(0, 0)")
        height = min(self.js("return document.documentElement.scrollHeight"), 12000)
        clip = {"x": 0, "y": 0, "width": 1440, "height": height, "scale": 1}
        data = self.browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        path.write_bytes(base64.b64decode(data["data"]))
        assert path.stat().st_size > 20_000


@pytest.fixture(scope="session")
def demo(tracelake, tmp_path_factory):
    lake = tmp_path_factory.mktemp("report") / "lake"
    tracelake("convert", ROOT / "testdata" / "demo", "-o", lake, "-q")
    page = lake.parent / "report.html"
    p = tracelake("report", lake, "-o", page, "--title", "Demo")
    assert p.stdout == "" and p.stderr.startswith("trust: 7 traces")
    return lake, page


def same(cell, value):
    """Whether a cell of the page holds a value of the analysis."""
    if value is None or cell is None:
        return cell is None and value is None
    if isinstance(value, str):
        return cell == value
    return float(cell) == float(value)


def sortable(value):
    """A text that is the same for a cell and for the value that it stands for."""
    try:
        return f"{float(value):.9g}"
    except (TypeError, ValueError):
        return value or ""


# Tables of the page, the analyses that they show, and flags of analyze.
TABLES = [
    ("trust", ()),
    ("summary", ()),
    ("devices", ()),
    ("stragglers", ()),
    ("kernels", ("--top", "100")),
    ("ops", ("--top", "100")),
    ("collectives", ()),
    ("launches", ()),
    ("copies", ()),
    ("memory", ()),
    ("steps", ()),
    ("sync", ()),
    ("iterations", ()),
]


def test_figures(tracelake, browser, demo):
    """Every cell of every table is a value of analyze, and no row is missing or new."""
    lake, file = demo
    page = Page(browser, file)
    for table, flags in TABLES:
        want = analyze(tracelake, lake, table, *flags)
        assert want, f"{table} has no rows: the test says nothing"
        got = page.all_rows(table)
        assert len(got) == len(want), table
        columns = list(got[0])
        assert len(columns) > 2, table

        for rows in (got, want):
            rows.sort(key=lambda row: [sortable(row[c]) for c in columns])
        for a, b in zip(got, want, strict=True):
            for c in columns:
                assert same(a[c], b[c]), f"{table}.{c}: {a[c]} on the page, {b[c]} in the analysis"
    assert page.complaints() == []


def test_sums(tracelake, browser, demo):
    """What the page sums up is the sum of what the analysis says."""
    lake, file = demo
    page = Page(browser, file)
    devices = analyze(tracelake, lake, "devices")
    for run in page.all_rows("runs"):
        own = [d for d in devices if d["run"] == run["run"]]
        assert int(run["devices"]) == len(own)
        for column in ("window_ns", "idle_ns", "compute_ns", "exposed_communication_ns", "exposed_memory_ns"):
            assert same(run[column], sum(d[column] for d in own) if own else None), column
    gaps = [g for g in analyze(tracelake, lake, "idle") if g["stream"] is None]
    assert sum(int(w["idle_ns"]) for w in page.all_rows("waits")) == sum(g["idle_ns"] for g in gaps) == sum(d["idle_ns"] for d in devices)
    for w in page.all_rows("waits"):
        assert int(w["idle_ns"]) == sum(int(w[f"{reason}_ns"]) for reason in ("host", "graph", "short", "other", "unknown"))
        process = w["process"] and int(w["process"])
        device = (w["trace_id"], process, int(w["device"]), "host")
        own = [g for g in gaps if (g["trace_id"], g["process"], g["device"], g["reason"]) == device]
        assert int(w["host_ns"]) == sum(g["idle_ns"] for g in own)
    for rank in page.all_rows("ranks"):
        own = [d for d in devices if d["run"] == rank["run"] and d["rank"] == int(rank["rank"])]
        assert own and same(rank["communication_ns"], sum(d["communication_ns"] for d in own))
    busy = 100 * sum(d["busy_ns"] for d in devices) / sum(d["window_ns"] for d in devices)
    assert page.one('[data-tile="busy_pct"] b').text == f"{busy:.1f} %"
    # The parts of a bar fill it.
    widths = page.js(
        """return [...document.querySelectorAll('#breakdown .bar')].map(
            (b) => [...b.children].reduce((n, i) => n + parseFloat(i.style.width), 0))"""
    )
    assert len(widths) == len(devices) and all(abs(w - 100) < 0.1 for w in widths)


def test_critical_path(tracelake, browser, demo, tmp_path):
    """The slowest iteration of each trace, with the rows that analyze has for it alone."""
    lake, file = demo
    page = Page(browser, file)
    slowest = {}
    for r in sorted(analyze(tracelake, lake, "iterations"), key=lambda r: (r["wall_ms"], -r["start_ms"], r["producer"], r["iteration"])):
        if r["gpu_events"]:
            slowest[r["trace_id"]] = r
    assert slowest
    got = page.all_rows("critical-path")
    traces = {r["trace_id"] for r in got}
    assert 0 < len(traces) <= 3 and traces >= set(slowest)
    for trace in traces:
        flags = ["--iteration", slowest[trace]["iteration"]] if trace in slowest else []
        want = analyze(tracelake, lake, "critical-path", "--trace", trace, "--top", "100000", *flags)
        want = [r for r in want if r["producer"] == slowest.get(trace, {"producer": None})["producer"]]
        want = [r for r in want if r["path_ms"] == max(w["path_ms"] for w in want)]
        mine = [r for r in got if r["trace_id"] == trace]
        assert len(mine) == len(want) > 1
        columns = list(mine[0])
        for rows in (mine, want):
            rows.sort(key=lambda row: [sortable(row[c]) for c in columns])
        for a, b in zip(mine, want, strict=True):
            assert all(same(a[c], b[c]) for c in a), (a, b)
    widths = page.js(
        """return [...document.querySelectorAll('#critical-path .bar')].map(
            (b) => [...b.children].reduce((n, i) => n + parseFloat(i.style.width), 0))"""
    )
    assert len(widths) == len(traces) and all(abs(w - 100) < 0.1 for w in widths)
    assert page.complaints() == []
    # What the user selects counts here, too, and behind it.
    trace = min(slowest)
    tracelake("report", lake, "--trace", trace, "-o", tmp_path / "one.html")
    one = Page(browser, tmp_path / "one.html")
    assert {r["trace_id"] for r in one.all_rows("critical-path")} == {r["trace_id"] for r in one.all_rows("devices")} == {trace}
    assert "Of each trace" in one.one("#critical-path .card p.muted").text


def test_table(browser, demo):
    """Tables sort both ways, by keyboard too, and the search filters."""
    page = Page(browser, demo[1])
    page.sort("kernels", "mean_us")
    head = page.one('[data-table="kernels"] th[data-column="mean_us"]')
    means = [float(r["mean_us"]) for r in page.rows("kernels")]
    assert len(means) == 25 and means == sorted(means, reverse=True) and head.get_attribute("aria-sort") == "descending"
    head.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    means = [float(r["mean_us"]) for r in page.rows("kernels")]
    assert means == sorted(means) and head.get_attribute("aria-sort") == "ascending"
    page.sort("kernels", "name")
    names = [r["name"] for r in page.rows("kernels")]
    assert names == page.js("return arguments[0].slice().sort((a, b) => a.localeCompare(b, 'en', {numeric: true}))", names)

    search = page.one('[data-table="kernels"] input[type=search]')
    search.send_keys("TRITON mul")
    found = [r["name"] for r in page.rows("kernels")]
    assert found and all("triton" in n and "mul" in n for n in found)
    search.send_keys(" no such kernel")
    assert page.rows("kernels") == [{"name": None}]
    assert "Nothing matches" in page.one('[data-table="kernels"] tbody').text
    assert page.complaints() == []


def test_timeline(browser, demo, artifacts):
    """The timeline draws, zooms and says what a box is, by keyboard alone."""
    page = Page(browser, demo[1])
    canvas = page.one("#timeline canvas.body")
    page.js("arguments[0].scrollIntoView({block: 'center'})", canvas)
    colors = """const [c] = arguments;
        return new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"""
    assert page.js(colors, canvas) > 5, "the timeline is empty"
    before = page.js("return arguments[0].toDataURL()", canvas)
    canvas.send_keys("+++")
    assert page.js("return arguments[0].toDataURL()", canvas) != before
    canvas.send_keys("0")
    canvas.send_keys(Keys.ARROW_DOWN)
    assert re.search(r"stream 7: \d+ events", page.one("#timeline .picked").text)
    canvas.send_keys("..")
    assert re.search(r"— [\d.]+ [nµm]s from .*, compute, stream 7", page.one("#timeline .picked").text)
    canvas.screenshot(str(artifacts / "timeline.png"))
    assert page.complaints() == []


def test_chart(browser, demo):
    """The chart of iterations has a line for each series, and another one is chosen from a list."""
    page = Page(browser, demo[1])
    assert page.one("#iterations .u-over").size["width"] > 600
    options = page.browser.find_elements(By.CSS_SELECTOR, "#iterations select option")
    assert len(options) > 3
    legend = page.one("#iterations .u-legend").text
    assert "every rank" in options[0].text and "rank 0" in legend and "rank 1" in legend
    options[-1].click()
    legend = page.one("#iterations .u-legend").text
    assert "wall time" in legend and "GPU busy" in legend
    assert page.complaints() == []


def test_themes(browser, demo, artifacts):
    """Light and dark follow the system; the button turns them round; print is light."""
    page = Page(browser, demo[1])
    light = page.background()
    page.shot(artifacts / "light.png")
    page.click(page.one("#theme"))
    dark = page.background()
    assert sum(map(int, re.findall(r"\d+", light)[:3])) > 600 > 150 > sum(map(int, re.findall(r"\d+", dark)[:3]))
    page = Page(browser, demo[1], "dark")
    assert page.background() == dark
    page.shot(artifacts / "dark.png")
    dark_system = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": dark_system})
    assert page.js("return getComputedStyle(document.querySelector('nav')).display") == "none"
    assert page.js("return getComputedStyle(document.documentElement).colorScheme") == "light"
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    (artifacts / "report.pdf").write_bytes(pdf)
    assert pdf.startswith(b"%PDF") and len(pdf) > 20_000
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert page.complaints() == []


def test_narrow(browser, demo, artifacts):
    """A narrow window scrolls its tables and not the page."""
    page = Page(browser, demo[1])
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 480, "height": 900, "deviceScaleFactor": 1, "mobile": False})
    try:
        assert page.js("return document.documentElement.scrollWidth") <= 480
        browser.save_screenshot(str(artifacts / "narrow.png"))
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def event(category, name, ts, dur, args):
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


def write_trace(path, names, rank=0, steps=2, seed=0):
    """A trace whose kernels have the given names, some of them overlapping on two streams."""
    r = random.Random(seed)
    events, now, correlation = [], 1000, 0
    for step in range(steps):
        start = now
        for name in names:
            correlation += 1
            stream = 20 if "nccl" in name else 7
            args = {"correlation": correlation}
            events.append(event("cuda_runtime", "cudaLaunchKernel", now, 3, args))
            events.append(event("kernel", name, now + 8, r.randint(2, 30), args | {"device": rank, "stream": stream}))
            now += r.randint(31, 50)
        events.append(event("user_annotation", f"ProfilerStep#{step}", start, now - start, {}))
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w")
    with opened as f:
        json.dump({"distributedInfo": {"rank": rank, "world_size": 8}, "traceEvents": events}, f)


def test_hostile_names(tracelake, browser, tmp_path):
    """Names out of a trace are text, wherever the page shows them."""
    trace = tmp_path / "<b>run" / "trace.json"
    write_trace(trace, [HOSTILE, "'); DROP TABLE report_kernels; --"])
    file = tmp_path / "report.html"
    tracelake("report", trace, "-o", file, "--title", HOSTILE)
    page = Page(browser, file)
    assert page.js("return document.title") == HOSTILE
    assert {r["name"] for r in page.rows("kernels")} == {HOSTILE, "'); DROP TABLE report_kernels; --"}
    canvas = page.one("#timeline canvas.body")
    canvas.send_keys(Keys.ARROW_DOWN)
    canvas.send_keys(".")
    assert HOSTILE in page.one("#timeline .picked").text
    assert page.browser.find_elements(By.TAG_NAME, "img") == []
    # What would run all the same is stopped by the policy.
    page.js("const s = document.createElement('script'); s.textContent = 'window.owned = 1'; document.body.append(s)")
    assert page.js("return window.owned") is None
    assert any("Content Security Policy" in m for m in page.complaints())


def test_thousand_traces(tracelake, browser, tmp_path, artifacts):
    """A dataset of 1000 traces gives a page that is small, quick, and says what it leaves out."""
    for i in range(1000):
        run, rank = divmod(i, 8)
        names = [f"gemm_{i % 150}", "softmax", "ncclDevKernel_AllReduce_Sum_bf16", f"fused_{i % 7}"]
        write_trace(tmp_path / "in" / f"run{run:03d}" / f"rank{rank}.json.gz", names, rank, seed=i)
    lake, file = tmp_path / "lake", tmp_path / "report.html"
    tracelake("convert", tmp_path / "in", "-o", lake, "-q")
    tracelake("report", lake, "-o", file)
    assert file.stat().st_size < 3_000_000
    page = Page(browser, file)
    assert page.complaints() == []
    assert page.seconds < 15, "the page takes too long to open"
    assert page.one('[data-tile="traces"] b').text == "1,000"
    assert "1–10 of 1,000" in page.one('[data-table="summary"] .end').text
    assert "1–10 of 125" in page.one('[data-table="runs"] .end').text
    assert "40 of 1,000 bars are drawn" in page.one("#breakdown").text
    assert "984 devices, of runs with less GPU time" in page.one("#timeline").text
    assert "1,800 of 2,000 rows are left out" in page.one('[data-table="iterations"]').text
    assert "The kernels shown take" in page.one('[data-table="kernels"]').text
    assert len(page.all_rows("kernels")) == 100
    start = time.monotonic()
    page.one('[data-table="summary"] input').send_keys("run012 rank5")
    assert [r["rank"] for r in page.rows("summary")] == ["5"]
    assert time.monotonic() - start < 5
    page.shot(artifacts / "thousand.png")


def test_real_trace(tracelake, shared, browser, tmp_path, artifacts):
    """A training step on eight real ranks: stragglers, communication and the clock of the ranks."""
    lake, file = tmp_path / "lake", tmp_path / "report.html"
    tracelake("convert", shared / "traces" / "kineto" / "astra-sim" / "my_test-inputs-workload-megatron-tp8", "-o", lake, "-q")
    tracelake("report", lake, "-o", file, "--rank", "6")
    page = Page(browser, file)
    [want] = analyze(tracelake, lake, "devices", "--rank", "6")
    [got] = page.all_rows("devices")
    assert all(same(v, want[c]) for c, v in got.items()), "the selection is another one"
    assert "--rank 6" in page.one("#trust").text
    tracelake("report", lake, "-o", file)
    page = Page(browser, file, "dark")
    assert len(page.all_rows("ranks")) == 8
    page.shot(artifacts / "ranks.png")
    assert page.complaints() == []


def test_errors(tracelake, demo, tmp_path):
    """Wrong use is told from empty selections, and no file is left."""
    lake, _ = demo
    out = tmp_path / "report.html"
    for flags, code, text in [
        (("--top", "0", "-o", out), 2, "--top"),
        ((), 2, "-o FILE is required"),
        (("--run", "none", "-o", out), 5, "no trace is selected"),
    ]:
        p = tracelake("report", lake, *flags, ok=(code,))
        assert text in p.stderr
    tracelake("report", tmp_path / "missing", "-o", out, ok=(5,))
    tracelake("report", lake, "-o", tmp_path / "missing" / "report.html", ok=(1,))
    assert list(tmp_path.iterdir()) == []
    page = tracelake("report", lake, "-o", "-", "--date", "2026-01-31").stdout
    assert page.startswith("<!doctype html>") and "2026-01-31" in page
