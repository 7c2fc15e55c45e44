"""hocket top without a terminal: the model, the renderer, and the text of a golden trace."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from checkout import DATA
from hocket.bus import Bus, Event
from hocket.cli import main
from hocket.top.feed import LiveFeed, from_trace
from hocket.top.model import TopModel
from hocket.top.render import MIN_WIDTH, View, plain, render
from stand_in_hocketd import StandIn

S = 1_000_000_000
pytestmark = pytest.mark.timeout(60)


def test_golden_view(capsys):
    assert main(["top", "--from-trace", str(DATA / "fcfs.jsonl"), "--at", "9", "--width", "100"]) == 0
    assert capsys.readouterr().out == (DATA / "top-fcfs-9s.txt").read_text()


def test_every_line_fits_every_width():
    for at_s in (0, 1.6, 4.8, 9, 12.5, 40):
        model = from_trace(str(DATA / "fcfs.jsonl"), at_s)
        for width in (MIN_WIDTH, 80, 133):
            lines = plain(render(model, width)).split("\n")
            lanes = [line for line in lines if "│" in line]
            assert len(lanes) == len(model.shown(30.0))
            assert all(len(line) <= width for line in lines)
            assert len({line.index("│") for line in lanes}) <= 1  # "now" is one column


def test_shows_a_wait_while_it_lasts_and_a_short_write():
    model = TopModel()
    events = [
        ("HELLO", 0.0, {"job": "j", "processes": 4}),
        ("WELCOME", 0.0, {"app": 1, "application_given": "a", "policy": "fcfs"}),
        ("START_IO", 10.0, {"request": 1}),
        ("GRANT_IO", 10.0, {"request": 1}),
        ("FINISH_IO", 10.001, {"request": 1}),
        ("START_IO", 20.0, {"request": 2}),
        ("QUEUED_IO", 20.0, {"request": 2, "behind": "b"}),
    ]
    for kind, at_s, fields in events:
        model.feed(Event(kind, fields, int(at_s * S), "n", "" if kind == "HELLO" else "a", 1))
    model.advance(25 * S)
    text = plain(render(model, 100))
    assert "waiting" in text
    assert "▒▒▒" in text
    assert text.count("█") == 1 + 2  # one cell of the lane, and the key
    assert "queued behind b" in text
    assert "4 processes · waited 5.00 s" in text


def test_shows_predicted_phases_ahead_of_now():
    model = TopModel()
    forecast = {"period_ns": 4 * S, "duration_ns": 1 * S, "next_start_ns": 102 * S, "next_uncertainty_ns": S}
    model.feed(Event("DAEMON", {"now_ns": 100 * S, "policy": "interfere"}))
    model.feed(Event("APPLICATION", {"application": "a", "app": 1, "processes": 2, "since_ns": 90 * S, **forecast}))
    lines = plain(render(model, 25 + 40, View(window_s=30, ahead_s=10))).split("\n")
    future = next(line for line in lines if "│" in line).split("│")[1]
    assert future.strip("· ").startswith("░")
    assert future.count("░") == 2  # at +2 and +6 s
    assert future.index("·") == 1
    assert "next in 2.0 ± 1.0 s" in "\n".join(lines)


def many(count: int) -> TopModel:
    """Return a model of `count` applications with long names, long waits, and predictions."""
    model = TopModel()
    forecast = {"period_ns": 4000 * S, "period_spread_ns": 400 * S, "duration_ns": S, "next_start_ns": 9000 * S}
    model.feed(Event("DAEMON", {"now_ns": 1000 * S, "policy": "fcfs"}))
    for number in range(count):
        told = {"application": f"application-with-a-long-name-{number}", "app": number, "processes": 10_000}
        model.feed(Event("APPLICATION", {**told, "since_ns": S, "wait_ns": 3000 * S, **forecast}))
    return model


@pytest.mark.parametrize(
    ("count", "figures", "left_out"), [(2, True, 0), (6, True, 0), (12, False, 0), (40, False, 25)]
)
def test_fits_a_small_terminal(count, figures, left_out):
    lines = plain(render(many(count), 78, View(height=24))).split("\n")
    assert len(lines) <= 24
    assert all(len(line) <= 78 for line in lines)
    assert sum("│" in line for line in lines) == count - left_out
    assert any("waited 3000.00 s" in line for line in lines) == figures
    assert any(f"… and {left_out} more" in line for line in lines) == bool(left_out)
    assert "no decisions yet" in lines


def test_a_name_cannot_break_the_lines():
    model = TopModel()
    model.feed(Event("APPLICATION", {"application": "a\n\x1b[2Jb", "app": 1, "since_ns": 1}))
    assert "a??[2Jb" in plain(render(model, 80)).split("\n")[3]


def test_forgets_what_no_window_shows():
    model = TopModel()
    for event in from_trace_events():
        model.feed(event)
    model.advance(model.now_ns + 10_000 * S)
    model.forget()
    assert model.analysis.applications == []


def from_trace_events():
    from hocket.trace import read_trace

    return read_trace(DATA / "fcfs.jsonl").events


def test_as_json(capsys):
    assert main(["top", "--from-trace", str(DATA / "fcfs.jsonl"), "--at", "9", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [a["application"] for a in told["applications"]] == ["jacobi-a", "jacobi-b"]
    assert told["decisions"][0]["decision"] == "granted after 0.61 s"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--width", "20"], "--width 20: at least 60"),
        (["--at", "3"], "--at needs --from-trace"),
        (["--from-trace", str(DATA / "fcfs.jsonl"), "--at", "-1"], "--at -1: seconds after"),
    ],
)
def test_usage_errors(arguments, message, capsys):
    assert main(["top", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.fixture
def agent(tmp_path):
    agent = StandIn(tmp_path / "hocketd.sock")
    agent.applications = [{"application": "a", "app": 1, "processes": 2, "since_ns": 1, "wait_ns": 0}]
    agent.daemon |= {"now_ns": 2, "trace": str(tmp_path / "trace.jsonl")}
    yield agent
    agent.kill()


def test_live_feed_begins_with_the_trace_and_goes_on_with_events(agent, tmp_path):
    (tmp_path / "trace.jsonl").write_bytes((DATA / "fcfs.jsonl").read_bytes())
    with Bus.connect(tmp_path / "hocketd.sock") as bus:
        feed = LiveFeed(bus)
        names = [application.name for application in feed.model.analysis.applications]
        assert names == ["jacobi-a", "jacobi-b", "a"]
        later = feed.model.now_ns + S
        agent.publish({"type": "START_IO", "application": "a", "member": 5, "request": 1, "time_ns": later})
        bus.list()
        feed.ask()
        feed.update()
    assert feed.model.analysis.named("a").operations[0].asked_ns == later


def ask_and_update(feed: LiveFeed, bus: Bus) -> None:
    """Update after the whole answer has arrived, and with it the events that precede it."""
    feed.ask()
    bus._pump_until(lambda: any(answer.type == "DAEMON" for answer in bus._answers), 10)
    feed.update()


def test_an_application_whose_end_was_not_seen_has_ended(agent, tmp_path):
    """An application that ended after the last line of the trace and before the view subscribed counts as ended."""
    lines = (DATA / "fcfs.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "trace.jsonl").write_text("".join(line for line in lines if not line.startswith('{"in": "BYE"')))
    agent.daemon["now_ns"] = 10**12
    with Bus.connect(tmp_path / "hocketd.sock") as bus:
        feed = LiveFeed(bus)
    states = {one.name: feed.model.state(one) for one in feed.model.analysis.applications}
    assert states == {"jacobi-a": "ended", "jacobi-b": "ended", "a": "computing"}


def test_an_application_that_ends_while_it_is_listed_has_ended(agent, tmp_path):
    """The answer to LIST is older than the application's BYE, but is processed later."""
    now_ns = agent.daemon["now_ns"] = time.monotonic_ns()
    with Bus.connect(tmp_path / "hocketd.sock") as bus:
        feed = LiveFeed(bus)
        agent.publish({"type": "BYE", "application": "a", "member": 5, "time_ns": now_ns + 1})
        ask_and_update(feed, bus)
    assert [feed.model.state(one) for one in feed.model.analysis.applications] == ["ended"]


def test_an_application_that_came_after_the_list_runs(agent, tmp_path):
    now_ns = agent.daemon["now_ns"] = time.monotonic_ns()
    with Bus.connect(tmp_path / "hocketd.sock") as bus:
        feed = LiveFeed(bus)
        hello = {"type": "HELLO", "application": "", "member": 6, "time_ns": now_ns + 1, "job": "j", "processes": 1}
        agent.publish(hello)
        given = {"type": "WELCOME", "application": "b", "member": 6, "time_ns": now_ns + 1, "app": 2}
        agent.publish({**given, "application_given": "b"})
        ask_and_update(feed, bus)
    assert [feed.model.state(one) for one in feed.model.analysis.applications] == ["computing", "computing"]


@pytest.mark.parametrize("size", [(100, 30), (80, 24), (62, 12)])
def test_screen_draws_and_quits(agent, tmp_path, size):
    from hocket.top.screen import TopApp

    async def look(bus: Bus) -> str:
        app = TopApp(LiveFeed(bus))
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await pilot.press("plus")
            view = app.query_one("#view")
            shown = str(view.render())
            assert view.size.height == len(shown.rstrip("\n").split("\n")) <= size[1]  # no line is folded
            await pilot.press("q")
        assert app.return_value == ""
        return shown

    with Bus.connect(tmp_path / "hocketd.sock") as bus:
        shown = asyncio.run(look(bus))
    assert "policy fcfs" in shown
    assert "computing" in shown
    assert "-15 s" in shown
