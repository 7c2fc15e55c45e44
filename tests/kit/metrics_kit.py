"""Read /metrics of a daemon under test, with a strict parser of Prometheus' text format (0.0.4)."""

from __future__ import annotations

import http.client
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daemon_kit import Daemon

LIMIT_S = 20
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
TARGETS_WITH_SERIES = 64
OTHERS = "(others)"

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (\S+)")
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}

Labels = tuple[tuple[str, str], ...]


@dataclass
class Metric:
    name: str
    type: str
    help: str
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)  # by name with suffix, and labels

    def value(self, **labels: str) -> float:
        return self.samples[self.name, tuple(sorted(labels.items()))]

    def by_label(self) -> dict[str, float]:
        """Return the values by the value of the only label."""
        return {labels[0][1]: value for (_, labels), value in self.samples.items()}


def parse(text: str) -> dict[str, Metric]:
    """Return the metrics by name. Fails on what the format does not allow, or what Prometheus advises against."""
    assert text.endswith("\n") and "\r" not in text
    metrics: dict[str, Metric] = {}
    lines = text[:-1].split("\n")
    while lines:
        about = re.fullmatch(rf"# HELP ({_NAME}) (.+)", lines.pop(0))
        assert about, "a metric begins with its HELP"
        name, words = about.groups()
        kind = re.fullmatch(rf"# TYPE {name} (counter|gauge|histogram)", lines.pop(0))
        assert kind and name not in metrics, name
        metric = metrics[name] = Metric(name, kind[1], words)
        while lines and not lines[0].startswith("#"):
            key, value = _sample(lines.pop(0))
            assert key not in metric.samples, f"twice: {key}"
            metric.samples[key] = value
        _check(metric)
    return metrics


def _sample(line: str) -> tuple[tuple[str, Labels], float]:
    parts = _SAMPLE.fullmatch(line)
    assert parts, line
    name, text, value = parts.groups()
    found = _LABEL.findall(text or "")
    assert ",".join(f'{label}="{value}"' for label, value in found) == (text or ""), line
    labels = {label: re.sub(r"\\.", lambda escape: _ESCAPES[escape[0]], value) for label, value in found}
    assert len(labels) == len(found), line
    return (name, tuple(sorted(labels.items()))), float(value)


def _check(metric: Metric) -> None:
    """Check the rules on names, and that the buckets of a histogram are cumulative."""
    names = {name for name, _ in metric.samples}
    if metric.type != "histogram":
        assert names <= {metric.name}, names
        assert metric.name.endswith("_total") == (metric.type == "counter"), metric.name
        assert metric.type == "gauge" or all(value >= 0 for value in metric.samples.values())
        return
    assert names == {metric.name + end for end in ("_bucket", "_sum", "_count")}
    bounds = [(float(dict(labels)["le"]), value) for (name, labels), value in metric.samples.items() if labels]
    assert bounds == sorted(bounds), "buckets ascend, and are cumulative"
    assert bounds[-1] == (float("inf"), metric.samples[f"{metric.name}_count", ()])


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: str


class Endpoint:
    """/metrics of a daemon that was started with `--metrics 127.0.0.1:0`."""

    def __init__(self, daemon: Daemon):
        self.host, port = re.search(r"/metrics is served at (\S+):(\d+)", daemon.log.read_text()).groups()
        self.port = int(port)

    def request(self, method: str = "GET", path: str = "/metrics", **more: Any) -> Answer:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=LIMIT_S)
        try:
            connection.request(method, path, **more)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read().decode())
        finally:
            connection.close()

    def metrics(self) -> dict[str, Metric]:
        answer = self.request()
        assert (answer.status, answer.headers["Content-Type"]) == (200, CONTENT_TYPE)
        return parse(answer.body)


def sums(lines: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the counters from the lines of a trace, by the definitions of docs/operate.md."""
    counted: dict[str, Any] = {
        name: Counter() for name in ("events", "grants", "io_s", "wait_s", "decisions", "outcomes")
    }
    counted |= {"waits": [], "lease_ends": 0, "pauses": 0, "refused": 0, "estimates": []}
    granted: set[tuple[int, int]] = set()
    for line in lines:
        request = line.get("member"), line.get("request")
        match line.get("in"), line.get("out"):
            case "FINISH_IO" | "PAUSED_IO", _:
                granted.discard(request)
            case "BYE" | "LOST", _:
                granted = {one for one in granted if one[0] != line["member"]}
            case "IO_PHASE", _:
                _add_phase(counted, line)
            case _, "GRANT_IO":
                if request not in granted:
                    counted["grants"][line["target"]] += 1
                    counted["waits"].append(line["waited_ns"] / 1e9)
                granted.add(request)
            case _, "LEASE_EXPIRED":
                counted["lease_ends"] += 1
                granted.discard(request)
            case _, "PAUSE_IO":
                counted["pauses"] += 1
            case _, "REFUSED":
                counted["refused"] += 1
            case _, "OUTCOME":
                counted["outcomes"][line["quantity"], line["met"]] += 1
            case _, "DECISION":
                counted["decisions"][line["action"]] += 1
                if line["reason"].get("kind") == "estimate":
                    counted["estimates"].append(line["reason"]["late_s"])
        if "in" in line:
            counted["events"][line["in"]] += 1
    return counted


def _add_phase(counted: dict[str, Any], line: dict[str, Any]) -> None:
    end_ns = min(max(line["end_ns"], 0), line["time_ns"])
    length_ns = end_ns - min(max(line["start_ns"], 0), end_ns)
    io_ns = min(max(line["io_ns"], 0), length_ns)
    counted["io_s"][line["target"]] += io_ns / 1e9
    counted["wait_s"][line["target"]] += min(max(line["wait_ns"], 0), length_ns - io_ns) / 1e9
