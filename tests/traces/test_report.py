"""The report in a real browser: headless Chromium, on screen at 1280 pixels and in print."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import runtime_kit
from checkout import DATA
from hocket.bus import Event
from hocket.cli import main
from hocket.comparison import ALONE, SCHEDULED, UNCOORDINATED, Row
from hocket.errors import HocketError
from hocket.report import Report, Run, write_report
from hocket.report.panels import ticks
from hocket.report.spent import spent_table
from hocket.tables import quantity
from hocket.trace import Trace, read_trace
from PIL import Image
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By

TITLE, NOTE = "Two Jacobi solvers share a file system", "storage target limited to 24 MB/s"
SET_UP = "two ranks each"
WIDTH = 1280
LEAST_PX = 12  # the smallest text
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    f"--window-size={WIDTH},1400",
)
pytestmark = pytest.mark.timeout(180)


def golden_runs() -> list[Run]:
    return [
        Run("alone", [DATA / "alone-a.jsonl", DATA / "alone-b.jsonl"], ALONE),
        Run("together, uncoordinated", [DATA / "uncoordinated.jsonl"], UNCOORDINATED),
        Run("together, fcfs", [DATA / "fcfs.jsonl"], SCHEDULED),
    ]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return write_report(golden_runs(), tmp_path_factory.mktemp("report"), TITLE, [NOTE, SET_UP])


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory):
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = start_browser(options)
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


def start_browser(options: webdriver.ChromeOptions) -> webdriver.Chrome:
    """Another program may take the port that Selenium chose before chromedriver listens on it; so there are three
    tries.
    """
    for tries_left in (2, 1, 0):
        try:
            return webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
        except WebDriverException:
            if not tries_left:
                raise


@contextlib.contextmanager
def wide(browser, px: int) -> Iterator[None]:
    """Give the window this width while the context lasts."""
    widen(browser, px)
    try:
        yield
    finally:
        widen(browser, WIDTH)


def widen(browser, px: int) -> None:
    """Set the width of the window and wait until the page has it, which takes a moment on a busy machine."""
    browser.set_window_size(px, 1400)
    follows = "return window.innerWidth"
    runtime_kit.wait_until(lambda: browser.execute_script(follows) == px, 10, f"a page of {px} pixels")


@pytest.fixture
def page(browser, report):
    browser.get(report.html.as_uri())
    return browser


def test_console_is_silent(page):
    assert page.get_log("browser") == []


def test_needs_nothing_from_outside(report, page):
    text = report.html.read_text()
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', text) == []
    assert "url(" not in text
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_says_what_ran_and_on_which_target(page):
    assert page.find_element(By.TAG_NAME, "h1").text == TITLE
    assert NOTE in page.find_element(By.TAG_NAME, "caption").text
    assert [note.text for note in page.find_elements(By.CLASS_NAME, "notes")] == [SET_UP]  # no text appears twice


def test_every_run_has_the_lanes_of_both_applications(page):
    figures = page.find_elements(By.TAG_NAME, "figure")
    assert len(figures) == 3
    for figure in figures:
        lanes = figure.find_elements(By.CSS_SELECTOR, "g.lane")
        assert [lane.get_attribute("data-application") for lane in lanes] == ["jacobi-a", "jacobi-b"]
        for lane, phases in zip(lanes, (5, 6), strict=True):
            assert len(lane.find_elements(By.CSS_SELECTOR, "rect.io")) == phases


def test_shows_who_waited_and_when_both_wrote(page):
    def count(selector: str) -> list[int]:
        figures = page.find_elements(By.TAG_NAME, "figure")
        return [len(figure.find_elements(By.CSS_SELECTOR, selector)) for figure in figures]

    assert count("rect.waiting") == [0, 0, 5]
    assert count("rect.both") == [0, 4, 0]
    tips = [tip.get_attribute("textContent") for tip in page.find_elements(By.CSS_SELECTOR, "rect.waiting title")]
    assert tips[0].startswith("jacobi-a waits for jacobi-b: 0.29 s, from ")


def test_computing_and_communication_have_their_table(page):
    told = [row.text for row in page.find_elements(By.CSS_SELECTOR, "table.spent tbody:nth-of-type(2) tr")]
    none = "\N{EN DASH}"
    assert told[0] == f"jacobi-b alone 6.60 {none} 0.00 0.00", "made before traces told the largest"
    row = Row("a", "one", "", 3, 0, 0, 9, 0, 0, 0, cpu_s=3.0, comm_s=2.0, cpu_most_s=5.0, comm_most_s=2.5)
    cells = "<td>3.00</td><td>5.00</td><td>2.00</td><td>2.50</td>"
    assert cells in spent_table([row])
    assert spent_table([dataclasses.replace(row, cpu_s=0.0, comm_s=0.0)]) == ""


def test_an_application_has_its_place_in_every_run(browser, tmp_path):
    alone = Run("alone", [DATA / "alone-b.jsonl", DATA / "alone-a.jsonl"], ALONE)
    report = write_report([alone, Run("together", [DATA / "fcfs.jsonl"])], tmp_path, "x")
    browser.get(report.html.as_uri())
    lanes = [lane.get_attribute("data-application") for lane in browser.find_elements(By.CSS_SELECTOR, "g.lane")]
    assert lanes == ["jacobi-b", "jacobi-a"] * 2


def test_table_holds_the_factors(page):
    cells = [cell.text for cell in page.find_elements(By.CSS_SELECTOR, "table:first-of-type tbody:nth-of-type(2) td")]
    rows = [cells[at : at + 6] for at in range(0, len(cells), 6)]
    none = "\N{EN DASH}"
    assert rows == [
        ["alone", "4.14", "0.00", none, none, "10.74"],
        ["together, uncoordinated", "5.49", "0.00", "1.33", none, "12.09"],
        ["together, fcfs", "4.14", "2.24", none, "1.54", "12.98"],
    ]


def test_readable_at_1280_pixels(page):
    assert page.execute_script("return window.innerWidth") == WIDTH
    assert page.execute_script("return document.documentElement.scrollWidth") <= WIDTH
    assert clipped(page) == []
    assert page.execute_script(SMALLEST_TEXT) >= LEAST_PX


def test_a_bar_is_as_long_as_its_time(page):
    """The lanes of all runs share one scale, and no bar lies outside the plot."""
    boxes = page.execute_script(
        "return [...document.querySelectorAll('svg.timeline rect.io')].map(r => "
        "[r.getBoundingClientRect().width, r.querySelector('title').textContent])"
    )
    scale = [width / float(re.search(r": ([\d.]+) s,", text)[1]) for width, text in boxes]
    assert max(scale) - min(scale) < 0.02 * max(scale), scale


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_text_stands_out_in_light_and_dark(page, scheme, dark):
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    paper = luminance(page.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert (paper < 0.1) == dark
    for selector in ("h1", ".notes", "td", "th", "figcaption p", "svg text.name", "svg text.tick", "footer p"):
        attribute = "fill" if "svg" in selector else "color"
        colour = page.execute_script(f"return getComputedStyle(document.querySelector('{selector}')).{attribute}")
        ink = luminance(colour)
        contrast = (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05)
        assert contrast >= 4.5, f"{selector} on {scheme} paper: contrast {contrast:.1f}"


def test_nothing_is_clipped_on_a_small_screen(page):
    with wide(page, 800):
        assert page.execute_script("return document.documentElement.scrollWidth") <= 800
        assert clipped(page) == []
        assert page.execute_script(SMALLEST_TEXT) >= 9


def test_print_holds_the_lanes(page):
    """The PDF has one to three pages, and at least three fills in the colour of writing."""
    pdf = base64.b64decode(page.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) in (1, 2, 3)
    painted = b"\n".join(inflated(pdf))
    # "#0072b2" as PDF numbers; each phase of each run is one rectangle
    writing = re.findall(rb"0 \.44\d* \.69\d* rg", painted)
    assert len(writing) >= 3, painted[:400]
    assert painted.count(b" re\n") + painted.count(b" l\n") >= 33


def test_print_has_nothing_clipped(page):
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        with wide(page, 1047):  # the printed width of A4 landscape at 96 dpi
            assert page.execute_script("return document.documentElement.scrollWidth") <= 1047
            assert clipped(page) == []
            assert page.execute_script(SMALLEST_TEXT) >= 9
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_names_of_any_kind_stay_text(browser, tmp_path):
    trace = read_trace(DATA / "fcfs.jsonl")
    events = [
        dataclasses.replace(event, fields={**event.fields, "application_given": "<b>&\"'a very long name indeed"})
        if event.type == "WELCOME" and event.member == 10
        else event
        for event in trace.events
    ]
    hostile = dataclasses.replace(trace, events=events)
    report = write_report([Run("<i>run</i>", [hostile])], tmp_path, "<script>alert(1)</script>", ["a & b"])
    browser.get(report.html.as_uri())
    assert browser.get_log("browser") == []
    assert browser.find_elements(By.CSS_SELECTOR, "b, i, script") == []
    assert browser.find_element(By.TAG_NAME, "h1").text == "<script>alert(1)</script>"
    assert clipped(browser) == []


def test_many_applications_and_one_that_was_lost(browser, tmp_path):
    report = write_report([Run("crowd", [crowd(12)])], tmp_path, "Twelve", [])
    browser.get(report.html.as_uri())
    assert len(browser.find_elements(By.CSS_SELECTOR, "g.lane")) == 12
    assert len(browser.find_elements(By.CSS_SELECTOR, "text.lost")) == 1
    assert clipped(browser) == []
    with wide(browser, 800):
        assert clipped(browser) == []


def test_shows_how_many_processes_there_were_and_each_reconfiguration(browser, tmp_path):
    report = write_report([Run("resized", [DATA / "resized.jsonl"])], tmp_path, "x")
    browser.get(report.html.as_uri())
    rigid, malleable = browser.find_elements(By.CSS_SELECTOR, "g.lane")
    assert rigid.find_elements(By.CSS_SELECTOR, "rect.size, rect.change") == []
    assert [step.text for step in malleable.find_elements(By.CSS_SELECTOR, "text.count")] == ["2", "4", "8", "2"]
    heights = [float(step.get_attribute("height")) for step in malleable.find_elements(By.CSS_SELECTOR, "rect.size")]
    assert heights[0] < heights[1] < heights[2]
    assert heights[3] == heights[0]
    assert len(malleable.find_elements(By.CSS_SELECTOR, "rect.change")) == 4
    assert len(malleable.find_elements(By.CSS_SELECTOR, "rect.change.given-up")) == 1
    overlapped = malleable.find_elements(By.CSS_SELECTOR, "rect.constant[height='10']")
    assert len(overlapped) == 1  # of 4 → 8; the others stopped the application
    assert "2 to 8 processes" in malleable.text


def test_reconfigurations_have_their_table(browser, tmp_path):
    report = write_report([Run("resized", [DATA / "resized.jsonl"])], tmp_path, "x")
    browser.get(report.html.as_uri())
    lines = browser.find_elements(By.CSS_SELECTOR, "table.resizes tbody tr")
    cells = [[cell.text for cell in line.find_elements(By.TAG_NAME, "td")] for line in lines]
    assert cells[0] == []  # the application's name
    assert cells[1][1:7] == ["2 → 4", "merge single,\ncollective blocking", "0.006", "0.221", "0.048", "0.003"]
    assert cells[2][4:6] == ["0.640\n0.618 overlapped", "0.310\n0.310 overlapped"]
    assert cells[3][1:] == ["8 → 16", "given up: MPI_Comm_spawn: no such program: /opt/apps/jacobi"]
    assert cells[4][-1] == "72.0 MB\n24.0 MB kept"


@pytest.mark.parametrize("width", [1280, 800])
def test_nothing_is_clipped_where_applications_were_resized(browser, tmp_path, width):
    report = write_report(
        [Run(label, [often_resized(count)]) for label, count in (("few", 4), ("many", 90))], tmp_path, "x"
    )
    browser.get(report.html.as_uri())
    with wide(browser, width):
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert clipped(browser) == []
        assert "30 more; 'hocket trace summary' lists all of them" in browser.find_element(By.TAG_NAME, "body").text
        assert browser.get_log("browser") == []


def test_png_shows_reconfigurations(tmp_path):
    report = write_report([Run("resized", [DATA / "resized.jsonl"])], tmp_path, "x")
    with Image.open(report.pngs[0]) as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 20)}
    assert {(0xD5, 0x5E, 0x00), (0x00, 0x9E, 0x73), (0xD8, 0xE0, 0xE6)} <= colours  # spawning, constant data, processes


def test_png_is_a_picture(report):
    assert [path.name for path in report.pngs] == [
        "timeline.png",
        "timeline-alone.png",
        "timeline-together-uncoordinated.png",
        "timeline-together-fcfs.png",
    ]
    with Image.open(report.pngs[0]) as picture:
        assert picture.width >= 1280
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 20)}
    assert {(0x00, 0x72, 0xB2), (0xE6, 0x9F, 0x00), (0xA8, 0x32, 0x6E)} <= colours


def test_command_writes_the_report(tmp_path, capsys):
    alone = [f"--alone={DATA}/alone-{name}.jsonl" for name in "ab"]
    more = [f"--uncoordinated={DATA}/uncoordinated.jsonl", f"--scheduled={DATA}/fcfs.jsonl", "--note", NOTE]
    assert main(["report", *alone, *more, "-o", str(tmp_path / "out")]) == 0
    path = Path(capsys.readouterr().out.strip())
    assert "I/O of jacobi-a, jacobi-b" in path.read_text()
    assert "together, fcfs" in path.read_text()


def test_ten_thousand_operations_stay_a_small_page(tmp_path):
    """The pictures show all operations in a paler colour, because the application computes for most of the time."""
    report = write_report([Run("busy", [busy(10_000)])], tmp_path, "x")
    text = report.html.read_text()
    assert len(text) < 100_000
    assert "two or more applications" not in text  # there is only one
    shares = [float(share) for share in re.findall(r'class="io"[^>]* fill-opacity="([\d.]+)"', text)]
    assert shares
    assert all(share == pytest.approx(0.2 + 0.8 * 0.25, abs=0.05) for share in shares)
    with Image.open(report.pngs[0]) as picture:
        blue = [count for count, (red, _, other) in picture.convert("RGB").getcolors(1 << 20) if other - red > 60]
    assert sum(blue) > 0.1 * picture.width * picture.height  # the whole lane, not the few that fell on a pixel


def test_many_factors_are_told_as_a_range(tmp_path):
    alone, together = ([crowd(6)], ALONE), ([crowd(6)], UNCOORDINATED)
    runs = [Run(role, traces, role) for traces, role in (alone, together)]
    finding = re.search(r'class="finding">(.*?)</p>', write_report(runs, tmp_path, "x").html.read_text())[1]
    assert re.fullmatch(
        r"Uncoordinated, I/O took [\d.]+ \(app-\d\) to [\d.]+ times \(app-\d\) as long as alone\.", finding
    )


def test_a_trace_without_applications_is_told(tmp_path):
    empty = tmp_path / "empty.jsonl"
    empty.write_text((DATA / "fcfs.jsonl").read_text().splitlines()[0] + "\n")
    with pytest.raises(HocketError, match=r"no application in .*empty\.jsonl"):
        write_report([Run("none", [empty])], tmp_path, "x")


@pytest.mark.parametrize("length_s", [0.001, 0.9, 1, 5, 7, 10, 14.9, 59, 600, 12345])
def test_ticks_are_few_and_within(length_s):
    marks = ticks(length_s)
    assert 6 <= len(marks) <= 16
    assert marks[0] == 0
    assert marks[-1] <= length_s * 1.0001


def test_quantities():
    assert [quantity(n) for n in (0, 999, 1500, 24_000_000, 3.2e13)] == ["0 B", "999 B", "1.5 kB", "24.0 MB", "32.0 TB"]


def busy(count: int) -> Trace:
    """Return one application with `count` operations, each with 1 ms of I/O and 3 ms of computing."""
    told = {"job": "j", "processes": 1}
    events = [Event("HELLO", told, 0, "n", "", 1), Event("WELCOME", {"application_given": "a"}, 0, "n", "a", 1)]
    for number in range(count):
        asked, request = number * 4_000_000, {"request": number + 1}
        events.append(Event("START_IO", request, asked, "n", "a", 1))
        events.append(Event("GRANT_IO", request, asked, "n", "a", 1))
        events.append(Event("FINISH_IO", {**request, "io_ns": 1_000_000}, asked + 1_000_000, "n", "a", 1))
    return dataclasses.replace(read_trace(DATA / "fcfs.jsonl"), events=events)


def often_resized(count: int) -> Trace:
    """Return one application that becomes 1, 2, 3, … 12 processes and 1 again, with long names and reasons."""
    told = {"job": "j", "processes": 1}
    events = [Event("HELLO", told, 0, "n", "", 1), Event("WELCOME", {"application_given": "a" * 15}, 0, "n", "a", 1)]
    for number in range(count):
        start = (number + 1) * 100_000_000
        method = {"spawn": "baseline", "spawn_strategy": "parallel-async", "redistribution": "rma-lockall"}
        fields = {"start_ns": start, "spawning_ns": 20_000_000, "constant_ns": 9_000_000, "spawning_stopped_ns": 1}
        size = {"sources": number % 12 + 1, "targets": (number + 1) % 12 + 1, "done": number % 5 != 4}
        reason = {"reason": "" if size["done"] else "the reason is a path: /" + "long" * 40}
        told = {**method, **fields, **size, **reason, "redistribution_strategy": "wait-targets"}
        events.append(Event("RECONFIGURATION", told, start + 40_000_000, "n", "a", 1))
    return dataclasses.replace(read_trace(DATA / "fcfs.jsonl"), events=events)


def crowd(count: int) -> Trace:
    """Return many applications that start one after the other; the last is lost while it writes."""
    trace = read_trace(DATA / "alone-a.jsonl")
    events = []
    for number in range(count):
        shift = number * 300_000_000
        for event in trace.events[:-1]:
            fields = dict(event.fields)
            fields |= {key: fields[key] + shift for key in ("start_ns", "end_ns") if key in fields}
            fields |= {"job": f"j{number}"} if "job" in fields else {}
            fields |= {"app": number, "application_given": f"app-{number}"} if "app" in fields else {}
            name = event.application and f"app-{number}"
            events.append(
                dataclasses.replace(
                    event, fields=fields, application=name, member=number + 1, time_ns=event.time_ns + shift
                )
            )
    events.sort(key=lambda event: event.time_ns)
    last = events[-1]
    lost = dataclasses.replace(last, type="LOST", fields={"reason": "connection closed"}, time_ns=last.time_ns + 1)
    return dataclasses.replace(trace, events=[*events, lost])


SMALLEST_TEXT = """
const sizes = [];
for (const e of document.querySelectorAll('h1, h2, p, td, th, li, caption, svg text')) {
  const svg = e.closest('svg.timeline');
  const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
  sizes.push(parseFloat(getComputedStyle(e).fontSize) * scale);
}
return Math.min(...sizes);
"""


def clipped(page) -> list[str]:
    """Return the texts that stick out of the page or of their picture, and the overlapping texts of a picture."""
    return page.execute_script("""
      const bad = [], width = document.documentElement.clientWidth;
      for (const e of document.querySelectorAll('h1, h2, p, td, th, li, caption, svg text')) {
        const box = e.getBoundingClientRect();
        const within = e.closest('svg.timeline')?.getBoundingClientRect() ?? {left: 0, right: width};
        if (box.left < within.left - 0.5 || box.right > within.right + 0.5) bad.push('sticks out: ' + e.textContent);
        if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && !e.closest('svg')) bad.push(e.textContent);
      }
      for (const svg of document.querySelectorAll('svg.timeline')) {
        const texts = [...svg.querySelectorAll('text')].map(t => [t.getBoundingClientRect(), t.textContent]);
        texts.forEach(([a, first], i) => texts.slice(i + 1).forEach(([b, second]) => {
          const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (x > 1 && y > 3) bad.push('on each other: ' + first + ' / ' + second);
        }));
      }
      return bad;
    """)


def luminance(colour: str) -> float:
    """Return the relative luminance (WCAG 2) of a CSS rgb() colour."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def inflated(pdf: bytes) -> list[bytes]:
    """Return the page descriptions of a PDF."""
    found = []
    for data in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.S):
        try:
            found.append(zlib.decompress(data))
        except zlib.error:
            continue
    return found
