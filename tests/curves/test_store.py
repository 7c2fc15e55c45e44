"""The store of curves, and `hocket curves`, which lists and changes it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hocket import cli
from hocket.arbitration.jobs import read_jobs
from hocket.curves import store
from hocket.curves.curve import EXPLORED, SEEN, Curve, Measured
from hocket.errors import HocketError, UsageError

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def curve(name: str = "app", **what) -> Curve:
    return Curve(name, 2, 8, (EXPLORED,), NOW, 5, {0: Measured(10e6, 5), 2: Measured(20e6, 5)}, **what)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "curves.toml"


def test_what_is_stored_is_read_again(path: Path):
    full = curve("x", shape={1: 5e6, 2: 7e6}, other_s_per_byte=2e-9, pattern="p, q", confidence=0.5)
    store.put(path, full)
    store.put(path, curve('é "y"\\'))
    assert store.read(path) == {"x": full, 'é "y"\\': curve('é "y"\\')}
    store.put(path, curve("x"))
    assert store.read(path)["x"] == curve("x")


def test_it_is_a_file_of_jobs(path: Path):
    store.put(path, curve("x", shape={1: 5e6}))
    (job,) = read_jobs(path).jobs
    assert (job.name, job.nodes, job.processes) == ("x", 2, 8)
    assert job.bandwidth == pytest.approx(curve("x", shape={1: 5e6}).bandwidth)


def test_the_pool_and_the_machine_that_a_user_added_stay(path: Path):
    store.put(path, curve("x"))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], "servers = 12", "[system]", "nodes = 384", *lines[1:]]) + "\n")
    store.put(path, curve("y"))
    content = tomllib.loads(path.read_text())
    assert content["servers"] == 12 and content["system"] == {"nodes": 384} and len(content["job"]) == 2


def test_a_job_that_a_user_wrote_was_explored(tmp_path: Path):
    path = tmp_path / "jobs.toml"
    path.write_text('[[job]]\nname = "a"\nnodes = 3\nbandwidth_mb_s = { 1 = 5 }\n[[job]]\nname = "b"\nnodes = 1\n')
    for processes in (3, None):
        found = store.find(path, "a", processes)
        assert found is not None and found.rates == {1: 5_000_000}
    assert store.find(path, "a", 6) is None  # of another size
    assert store.find(path, "b", 1) is None and store.find(path, "c", 1) is None


JOB = '[[job]]\nname = "a"\nnodes = 1\nbandwidth_mb_s = { 1 = 5 }\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no [[job]]"),
        ("\0\1\2", ""),
        ('[[job]]\nname = "a"\n', "nodes = None must be a whole number"),
        ("x = 1\n" + JOB, "key 'x' = 1 is unknown"),
        (JOB + 'found = "dreamt"\n', "job 'a': found = 'dreamt' must be of explored, darshan, seen"),
        (JOB + "found = 3\n", "found = 3 must be of"),
        (JOB + "runs = -1\n", "runs = -1 must be a number from 0"),
        (JOB + "runs = true\n", "runs = True must be a number"),
        (JOB + "when = 2026-01-31\n", "when = 2026-01-31 must be a time with its zone"),
        (JOB + "when = 2026-01-31T10:00:00\n", "must be a time with its zone"),
        (JOB + "when = 0001-01-01T00:00:00Z\n", "must be a time with its zone"),
        (JOB + "like = []\n", "like = [] must be a text"),
        (JOB + 'like = "\\u001b[2J"\n', "must be a text of printable letters"),
        (JOB + "confidence = 1.5\n", "confidence = 1.5 must be a number from 0 to 1"),
        (JOB + "confidence = nan\n", "confidence = nan must be a number"),
        (JOB + "other_s_per_mb = inf\n", "other_s_per_mb = inf must be a number"),
        (JOB + "shape_mb_s = 3\n", "shape_mb_s = 3 must be a table"),
        (JOB + "shape_mb_s = { x = 3 }\n", "shape_mb_s has the key 'x'"),
        (JOB + f"shape_mb_s = {{ {'9' * 5000} = 3 }}\n", "it must be a number of servers"),
        (JOB + "measured_mb_s = { 1 = nan }\n", "measured_mb_s.1 = nan must be a bandwidth"),
        (JOB + "measured_mb_s = { 1 = 3 }\nmeasured_weight = 3\n", "measured_weight = 3 must be a table"),
        (JOB + "measured_mb_s = { 1 = 3 }\nmeasured_weight = { 1 = -1 }\n", "measured_weight: 1 = -1 must be"),
    ],
)
@pytest.mark.parametrize("is_ours", [True, False], ids=["ours", "a user's"])
def test_bad_content_is_one_line_and_nothing_is_lost(path: Path, text: str, said: str, is_ours: bool):
    path.parent.mkdir()
    content = (store.FIRST_LINE + "\n" if is_ours else "") + text
    path.write_text(content)
    with pytest.raises(UsageError) as refused:
        store.read(path)
    assert str(path) in str(refused.value) and said in str(refused.value)
    assert "\n" not in str(refused.value)
    with pytest.raises(UsageError):
        store.put(path, curve())
    assert path.read_text() == content
    assert [one.name for one in path.parent.iterdir() if not one.name.endswith(".lock")] == ["curves.toml"]


def test_a_file_that_hocket_did_not_write_is_not_changed(path: Path):
    path.parent.mkdir()
    path.write_text("# my jobs\n" + JOB)
    with pytest.raises(UsageError, match="was not written by hocket, and is not changed; give another file"):
        store.put(path, curve())
    assert path.read_text() == "# my jobs\n" + JOB


def test_a_writer_that_fails_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch):
    store.put(path, curve("x"))
    before = path.read_text()
    for name in ("fsync", "fdopen"):
        with monkeypatch.context() as context:
            context.setattr(os, name, _disk_is_full)
            with pytest.raises(HocketError, match=r"cannot write .*curves.toml: No space left on device; give another"):
                store.put(path, curve("y"))
        assert path.read_text() == before
        assert sorted(one.name for one in path.parent.iterdir()) == [".curves.toml.lock", "curves.toml"]


def _disk_is_full(*_: object, **__: object) -> None:
    raise OSError(28, os.strerror(28))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (curve("a\nb"), "job 2: name = 'a\\nb' must be a text of printable letters"),
        (curve(""), "job 2: name = '' must be"),
        (Curve("a", 2, 10**7, (EXPLORED,), NOW, 1, {1: Measured(1e6, 1)}), "job 2 'a': processes = 10000000 must be"),
        (curve("a", pattern="\x1b"), "job 'a': like = '\\x1b' must be a text"),
    ],
)
def test_a_curve_that_could_not_be_read_again_is_refused(path: Path, wrong: Curve, said: str):
    store.put(path, curve("x"))
    with pytest.raises(HocketError, match="this curve cannot be kept: ") as refused:
        store.put(path, wrong)
    assert said in str(refused.value) and "\n" not in str(refused.value)
    assert store.read(path) == {"x": curve("x")}
    assert sorted(one.name for one in path.parent.iterdir()) == [".curves.toml.lock", "curves.toml"]


def test_rates_and_times_are_kept_within_what_a_file_may_have(path: Path):
    store.put(path, curve("x", shape={1: 1e30}, other_s_per_byte=1e9))
    assert max(store.read(path)["x"].shape.values()) == 1e15


def test_a_link_stays_a_link_and_rights_stay(path: Path, tmp_path: Path):
    store.put(path, curve("x"))
    path.chmod(0o600)
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    store.put(link, curve("y"))
    assert link.is_symlink() and set(store.read(path)) == {"x", "y"}
    assert path.stat().st_mode & 0o777 == 0o600


WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from hocket.curves import store
from hocket.curves.curve import EXPLORED, Curve, Measured
for at in range(25):
    name, now = f"{sys.argv[2]}-{at}", datetime.now(UTC)
    store.put(Path(sys.argv[1]), Curve(name, 1, 1, (EXPLORED,), now, 1, {1: Measured(1e6, 1)}))
"""


def test_two_writers_lose_nothing_and_readers_see_whole_files(path: Path):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in "abc"]
    ended = threading.Event()
    seen: list[int] = []

    def reads() -> None:
        while not ended.is_set():
            seen.append(len(store.read(path)))

    reader = threading.Thread(target=reads)
    reader.start()
    codes = [one.wait(60) for one in writers]
    ended.set()
    reader.join(60)
    assert codes == [0, 0, 0]
    assert set(store.read(path)) == {f"{name}-{at}" for name in "abc" for at in range(25)}
    assert seen == sorted(seen)  # no reader failed, and nothing was ever missing


def test_a_lock_that_is_never_given_back_is_one_line(path: Path, monkeypatch: pytest.MonkeyPatch):
    import fcntl

    store.put(path, curve("x"))
    monkeypatch.setattr(store, "LOCK_LIMIT_S", 0.05)
    with path.with_name(".curves.toml.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(HocketError, match=r"another command holds .* is it stopped"):
            store.put(path, curve("y"))
    assert set(store.read(path)) == {"x"}


# ---- the command -----------------------------------------------------------------------------------------------------


def hocket(*words: str | Path) -> int:
    return cli.main(["curves", *map(str, words)])


def test_list_show_remove(path: Path, capsys: pytest.CaptureFixture[str]):
    assert hocket("--curves", path) == 0
    assert "no application has a curve" in capsys.readouterr().out
    store.put(path, curve("x", shape={1: 15e6}, pattern="p", confidence=0.62))
    store.put(path, Curve("y", 1, 1, (SEEN,), NOW, 1, {1: Measured(1e6, 1)}))
    for words in (("--curves", path), ("list", "--curves", path), ("--curves", path, "list")):
        assert hocket(*words) == 0
        lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
        assert lines[1:] == [
            "x 2 8 explored 5 0.62 fair 2026-01-31 0: 10.0 1: 15.0 2: 20.0",
            "y 1 1 seen 1 2026-01-31 1: 1.0",
        ]
    assert hocket("show", "x", "--curves", path) == 0
    shown = capsys.readouterr().out
    assert "like p, confidence 0.62 (fair)" in shown and "from explored, 5 runs\n" in shown
    assert hocket("show", "y", "--curves", path) == 0
    assert "from seen, 1 run\n" in capsys.readouterr().out
    assert hocket("show", "x", "--json", "--curves", path) == 0
    assert json.loads(capsys.readouterr().out)["bandwidth_mb_s"] == {"0": 10, "1": 15, "2": 20}
    assert hocket("--json", "--curves", path) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"x", "y"}
    assert hocket("remove", "x", "nobody", "--curves", path) == 1
    assert "'nobody' has no curve in" in capsys.readouterr().err
    assert set(store.read(path)) == {"x", "y"}
    assert hocket("remove", "x", "--curves", path) == 0
    assert set(store.read(path)) == {"y"}
    assert hocket("remove", "y", "--curves", path) == 0
    assert store.read(path) == {} and not path.exists()


def test_the_store_is_in_the_users_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert store.default_path() == tmp_path / "hocket" / "curves.toml"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store.default_path() == tmp_path / ".local" / "share" / "hocket" / "curves.toml"
