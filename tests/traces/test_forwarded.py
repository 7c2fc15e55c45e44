"""The statistics of forwarded calls, from the events of a trace."""

from __future__ import annotations

from hocket.bus import Event
from hocket.forwarded import ForwardedOfServers, shares_text, text_table


def event(type_name: str, member: int, **fields: object) -> Event:
    return Event(type_name, fields, member=member)


def test_reports_are_summed_up_for_each_server() -> None:
    found = ForwardedOfServers()
    found.feed(event("SERVER_LOAD", 3, forwarded=5))  # of a server whose SERVER was not seen
    found.feed(event("SERVER", 1, server="s1", scheduler="fifo"))
    found.feed(event("SERVER", 2, server="s2", scheduler="fifo"))
    load = {"forwarded": 10, "merged": 8, "system_calls": 4, "forward_waited_ns": 5_000_000, "forward_queue": 3}
    found.feed(event("SERVER_LOAD", 1, **load, forward_shares="10 750 5 solver\n2 250 1 a name\n"))
    found.feed(event("SERVER_LOAD", 1, **load | {"forward_queue": 0}))
    found.feed(event("SCHEDULER_USED", 1, scheduler="job-fair", previous="fifo"))
    found.feed(event("SCHEDULER_USED", 1, scheduler="job-fair", error="unknown request scheduler 'x'"))
    assert text_table(found.servers).splitlines() == [
        "FORWARDED  SCHEDULER        CALLS  MERGED  SYSTEM CALLS  WAITING  MEAN WAIT  BYTES BY APPLICATION",
        "s1         fifo → job-fair     20      16             8        0    0.50 ms  solver 75 %, a name 25 %",
    ]


def test_without_forwarded_calls_there_is_no_table() -> None:
    found = ForwardedOfServers()
    found.feed(event("SERVER", 1, server="s1", scheduler=""))
    assert text_table(found.servers) == ""
    found.feed(event("SCHEDULER_USED", 1, scheduler="twins"))
    assert "s1         fifo → twins" in text_table(found.servers)


def test_shares_of_many_applications_are_short() -> None:
    assert shares_text("".join(f"1 {100 - i} 0 app{i}\n" for i in range(10))) == (
        "app0 10 %, app1 10 %, app2 10 %, app3 10 %, others 59 %"
    )
    assert shares_text("1 5 0 \n") == "(unknown) 100 %"


def test_who_chose_the_scheduler_and_weights_are_shown() -> None:
    found = ForwardedOfServers()
    found.feed(event("SERVER", 1, server="s1", scheduler="fifo", scheduler_by="default"))
    found.feed(event("SCHEDULER_USED", 1, scheduler="wfq", scheduler_by="policy"))
    shares = "1 75 0 solver\n1 25 0 a name\n"
    found.feed(event("SERVER_LOAD", 1, forwarded=2, forward_shares=shares, forward_weights="3 solver\n2 a name\n"))
    text = text_table(found.servers)
    assert "fifo → wfq (policy)" in text
    assert text.endswith("solver 75 % (weight 3), a name 25 % (weight 2)")
    found.feed(event("SCHEDULER_USED", 1, scheduler="sjf", scheduler_by="configuration"))
    found.feed(event("SERVER_LOAD", 1, forwarded=2, forward_shares=shares))
    text = text_table(found.servers)
    assert "sjf (hocket.toml)" in text and text.endswith("solver 75 %, a name 25 %")


def test_damaged_shares_are_left_out() -> None:
    assert shares_text("x\n1 y 0 app\n1 " + "9" * 5000 + " 0 app\n1 0 0 app\n") == ""
    assert shares_text("1 10 0 good\nno line\n") == "good 100 %"
