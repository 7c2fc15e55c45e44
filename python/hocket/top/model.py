"""The model of the live view: time comes in with the events and through `advance`. hocketd words the decisions."""

from __future__ import annotations

from dataclasses import dataclass

from hocket.analysis import Analysis, Application, Decision
from hocket.bus import Event, Listing
from hocket.decisions import PolicyDecision, subject_of, tell
from hocket.lanes import COMPUTING, Interval
from hocket.periods import IRREGULAR
from hocket.places import nodes_of_listing
from hocket.reconfigurations import Reconfiguration

KEEP_S = 120.0  # past that is kept, for the widest window


@dataclass(frozen=True)
class Forecast:
    """The last report of the daemon's model about an application (the event APPLICATION). 0: not known."""

    period_ns: int = 0
    period_spread_ns: int = 0
    duration_ns: int = 0
    next_start_ns: int = 0
    next_uncertainty_ns: int = 0
    wait_ns: int = 0  # total, until `told_ns`
    told_ns: int = 0
    flop_source: str = ""
    irregular: bool = False  # no period fits its I/O phases


class TopModel:
    """The state behind the live view.

    Feed it the events of the bus or of a trace in their order, and the answers to LIST.
    """

    def __init__(self) -> None:
        self.node = ""
        self.analysis = Analysis()
        self._forecasts: dict[str, Forecast] = {}
        self._resizing: dict[str, int] = {}  # number of processes that each application is to have
        self._resizes: list[Decision] = []  # requests, completions, and failures

    @property
    def now_ns(self) -> int:
        return self.analysis.now_ns

    def feed(self, event: Event) -> None:
        self.node = self.node or event.node
        self.analysis.feed(event)
        self._take_resize(event)
        if event.type == "APPLICATION":
            keys = ("period_ns", "period_spread_ns", "duration_ns", "next_start_ns", "next_uncertainty_ns", "wait_ns")
            figures = {key: int(event.get(key, 0)) for key in keys}
            source = str(event.get("flop_source", ""))
            irregular = event.get("model", "") == IRREGULAR
            forecast = Forecast(**figures, told_ns=self.now_ns, flop_source=source, irregular=irregular)
            self._forecasts[str(event["application"])] = forecast

    def feed_listing(self, listing: Listing) -> None:
        """Take in an answer to LIST, which may be older than events that were fed before."""
        for application in listing.applications:
            self.feed(Event("APPLICATION", application))
        self.feed(Event("DAEMON", listing.daemon))
        self.analysis.nodes |= nodes_of_listing(listing.applications, listing.nodes, listing.daemon)
        running = {str(application["application"]) for application in listing.applications}
        self.analysis.end_all_but(running, int(listing.daemon.get("now_ns", 0)))

    def _take_resize(self, event: Event) -> None:
        name = event.application
        if event.type == "APPLICATION":
            self._resizing[str(event["application"])] = int(event.get("resizing_to", 0))
        elif event.type == "RECONFIGURE" and name:
            self._resizing[name] = int(event.get("processes", 0))
            self._resizes.append(Decision(event.time_ns, name, f"to become {self._resizing[name]} processes"))
        elif event.type == "RECONFIGURATION" and name:  # the application's report; the tool's copy has no name
            if event.get("request", 0):
                self._resizing.pop(name, None)
            self._resizes.append(Decision(event.time_ns, name, _resized(Reconfiguration.of(event, name))))

    def resizing_to(self, application: Application) -> int:
        """Return the number of processes that it is to have; 0: no resize is under way."""
        return 0 if application.end_ns is not None else self._resizing.get(application.name, 0)

    def advance(self, now_ns: int) -> None:
        """Note that time has passed without an event."""
        self.analysis.now_ns = max(self.analysis.now_ns, now_ns)

    def forget(self) -> None:
        """Drop what no window shows any more."""
        before = self.now_ns - int(KEEP_S * 1e9)
        ended = [a for a in self.analysis.applications if a.end_ns is not None and a.end_ns < before]
        self.analysis.applications = [a for a in self.analysis.applications if a not in ended]
        for application in self.analysis.applications:
            application.forget_before(before)
        self.analysis.decisions = self.analysis.decisions[-100:]
        self.analysis.about_cores.forget_before(before)
        self._resizes = self._resizes[-100:]

    def shown(self, window_s: float) -> list[Application]:
        """Return the running applications, and those that ended within the window."""
        since = self.now_ns - int(window_s * 1e9)
        return [a for a in self.analysis.applications if a.end_ns is None or a.end_ns >= since]

    def lane(self, application: Application, window_s: float) -> list[Interval]:
        return application.intervals(self.now_ns, self.now_ns - int(window_s * 1e9))

    def state(self, application: Application) -> str:
        """Return "computing", "waiting", "io", "ended", or "lost"."""
        if application.end_ns is not None:
            return "lost" if application.lost else "ended"
        lane = self.lane(application, KEEP_S)
        return lane[-1].kind if lane else COMPUTING

    def expansion(self, application: Application) -> PolicyDecision | None:
        """Return the decision that let it grow, while that size is in use."""
        for one in reversed(self.analysis.about_cores.of(application.name)):
            if one.expands(application.name) and one.holds_at(self.now_ns) and application.end_ns is None:
                return one
        return None

    def forecast(self, application: Application) -> Forecast:
        return self._forecasts.get(application.name, Forecast())

    def flop_source(self, application: Application) -> str:
        """Return the source of its FLOP count (hocket.flop): as the daemon reported it, else from its events."""
        return self.forecast(application).flop_source or application.flop_source

    def waited_s(self, application: Application) -> float:
        """Return its total waiting time: the larger of the daemon's report and what its events show."""
        forecast = self.forecast(application)
        return max(forecast.wait_ns / 1e9, application.wait_s(self.now_ns))

    def decisions(self, count: int) -> list[Decision]:
        """Return the last `count` decisions, the newest first. Grants without a wait are left out."""
        told = [d for d in self.analysis.decisions if d.kind != "granted" or d.waited_ns >= 1_000_000]
        # "queued" entries report plain waits.
        decided = _latest([one for one in self.analysis.about_cores.all if not one.is_plain_wait], count)
        tell(decided)
        about_cores = [told for one in decided for told in _about_cores(one)]
        told = sorted([*told, *self._resizes, *about_cores], key=lambda d: d.time_ns)
        return told[-count:][::-1]


def _latest(decided: list[PolicyDecision], count: int) -> list[PolicyDecision]:
    """Return those of which the decision itself or an outcome is among the last `count` of all."""
    times = [(at_ns, i) for i, one in enumerate(decided) for at_ns in (one.time_ns, *(o.time_ns for o in one.outcomes))]
    return [decided[i] for i in sorted({i for _, i in sorted(times)[-count:]})]


def _about_cores(one: PolicyDecision) -> list[Decision]:
    """Return a policy decision and its outcomes as entries of the list of decisions."""
    heading = one.heading().removeprefix(one.decided_for).strip()
    found = [Decision(one.time_ns, one.decided_for, f"{heading} ({one.policy})")]
    for outcome in one.outcomes:
        found.append(Decision(outcome.time_ns, one.decided_for, f"{subject_of(outcome.quantity)} {outcome.brief()}"))
    return found


def _resized(one: Reconfiguration) -> str:
    """Return a reconfiguration as the text of an entry."""
    if not one.done:
        return f"stays at {one.sources} processes: {one.reason or 'no reason was given'}"
    return f"{one.sizes} processes, stopped for {one.stopped_ns / 1e9:.2f} s"
