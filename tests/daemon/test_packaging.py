"""What an operator installs besides the programs: units, users, the example of hocket.toml, and the dashboard."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from daemon_kit import hocketd
from metrics_kit import Endpoint

UNITS = (
    ("system", "hocketd"),
    ("system", "hocketd-leader"),
    ("system", "hocketd-agent"),
    ("system", "hocketd-leader@"),
    ("system", "hocketd-agent@"),
    ("user", "hocketd"),
)
EACH_UNIT = pytest.mark.parametrize(("kind", "name"), UNITS)
LIMIT_S = 60

needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd")


def run(*command: object) -> subprocess.CompletedProcess:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT_S)


@needs_systemd
@EACH_UNIT
def test_units_are_valid(prefix, tmp_path, kind, name):
    # A manager of a user wants a runtime directory.
    environment = ["env", f"XDG_RUNTIME_DIR={tmp_path}"] if kind == "user" else []
    unit = prefix / "lib/systemd" / kind / f"{name}.service"
    checked = run(*environment, "systemd-analyze", "verify", f"--{kind}", "--man=no", unit)
    assert checked.returncode == 0, checked.stderr
    assert f"{name}.service" not in checked.stderr, checked.stderr


@needs_systemd
def test_the_system_unit_has_few_rights(prefix):
    unit = prefix / "lib/systemd/system/hocketd.service"
    rated = run("systemd-analyze", "security", "--offline=true", "--no-pager", unit)
    exposure = re.search(r"Overall exposure level for hocketd.service: ([\d.]+)", rated.stdout)
    assert exposure, rated.stdout + rated.stderr
    assert float(exposure[1]) < 3, rated.stdout


@EACH_UNIT
def test_units_start_the_hocketd_of_their_prefix(prefix, kind, name):
    text = (prefix / "lib/systemd" / kind / f"{name}.service").read_text()
    command = re.search(r"^ExecStart=(\S+) (.*)$", text, re.M)
    assert Path(command[1]).resolve() == prefix / "bin/hocketd"
    options = re.findall(r"--[\w-]+", command[2])
    known = run(command[1], "--help").stdout
    assert options and all(option in known for option in options)
    role = name.removeprefix("hocketd").removesuffix("@").replace("-", "--")
    if kind == "system":
        assert options == ["--config", *["--dir"] * name.endswith("@"), *[role] * bool(role)]


def test_each_of_several_leaders_has_files_of_its_own(prefix):
    """One of scratch: /etc/hocket/scratch.toml, /run/hocket-scratch, and /var/lib/hocket-scratch."""
    text = (prefix / "lib/systemd/system/hocketd-agent@.service").read_text()
    command = re.search(r"^ExecStart=\S+ (.*)$", text, re.M)[1]
    assert command == "--config /etc/hocket/%i.toml --dir /run/hocket-%i --agent"
    settings = "".join(line + "\n" for line in text.splitlines() if not line.startswith(("#", "Description=")))
    shared = re.findall(r"(?:/run/|/var/lib/|RuntimeDirectory=|StateDirectory=)hocket(?!-%i)", settings)
    assert shared == [], "what an agent of another file system has, too"


def test_the_example_of_hocket_toml_has_the_defaults(prefix):
    example = prefix / "share/hocket/hocket.toml"
    printed = hocketd(prefix, "--config", example, "--print-config")
    assert (printed.returncode, printed.stdout) == (0, example.read_text())
    assert printed.stdout == hocketd(prefix, "--dir", "/run/hocket", "--users", "all", "--print-config").stdout
    unit = (prefix / "lib/systemd/system/hocketd.service").read_text()
    settings = printed.stdout.replace("'", '"')
    assert "RuntimeDirectory=hocket\n" in unit and 'dir = "/run/hocket"\n' in settings and 'users = "all"\n' in settings


def test_hocketd_runs_with_the_example(start_daemon, prefix, hocket_dir):
    hocket_dir.chmod(0o755)
    assert start_daemon("--config", prefix / "share/hocket/hocket.toml").stop() == 0


@pytest.mark.skipif(not shutil.which("systemd-tmpfiles"), reason="there is no systemd")
def test_tmpfiles_copy_the_example_once(prefix, tmp_path):
    share = tmp_path / prefix.relative_to("/") / "share/hocket"
    share.mkdir(parents=True)
    shutil.copy(prefix / "share/hocket/hocket.toml", share)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (tmp_path / "etc/group").write_text("root:x:0:\n")
    create = ("systemd-tmpfiles", "--create", f"--root={tmp_path}", prefix / "lib/tmpfiles.d/hocket.conf")
    made = run(*create)
    assert made.returncode == 0, made.stderr
    config = tmp_path / "etc/hocket/hocket.toml"
    assert config.read_text() == (share / "hocket.toml").read_text()
    config.write_text("# mine\n")
    assert run(*create).returncode == 0
    assert config.read_text() == "# mine\n"


@pytest.mark.skipif(not shutil.which("systemd-sysusers"), reason="there is no systemd")
def test_sysusers_make_the_user_of_the_unit(prefix, tmp_path):
    (tmp_path / "etc").mkdir()
    made = run("systemd-sysusers", f"--root={tmp_path}", prefix / "lib/sysusers.d/hocket.conf")
    assert made.returncode == 0, made.stderr
    (user,) = (tmp_path / "etc/passwd").read_text().splitlines()
    assert (user.split(":")[0], user.split(":")[5]) == ("hocket", "/var/lib/hocket")
    assert "User=hocket\n" in (prefix / "lib/systemd/system/hocketd.service").read_text()


def test_the_dashboard_names_metrics_that_exist(prefix, start_daemon):
    dashboard = json.loads((prefix / "share/hocket/grafana/hocket.json").read_text())
    shown = Endpoint(start_daemon("--metrics", "127.0.0.1:0")).metrics()
    known = {
        name + end
        for name, metric in shown.items()
        for end in (("_bucket", "_sum", "_count") if metric.type == "histogram" else ("",))
    }
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    named = {name for query in queries for name in re.findall(r"\bhocket_\w+", query)}
    assert named <= known
    # A metric that nobody sees is a metric that nobody checks.
    missing = {name for name, metric in shown.items() if not any(one.startswith(name) for one in named)}
    assert not missing


def test_panels_of_the_dashboard_do_not_overlap(prefix):
    dashboard = json.loads((prefix / "share/hocket/grafana/hocket.json").read_text())
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)


def test_the_line_for_slurm_names_the_plugin(prefix):
    stack = prefix / "share/hocket/slurm/plugstack.conf"
    if not stack.exists():
        pytest.skip("hocket was built without slurm/spank.h (Debian: libslurm-dev)")
    (line,) = (line for line in stack.read_text().splitlines() if not line.startswith("#"))
    how, plugin = line.split()
    assert how == "optional", "a job runs where the plugin is missing"
    assert Path(plugin).resolve() == prefix / "lib/hocket/slurm/spank_hocket.so"
