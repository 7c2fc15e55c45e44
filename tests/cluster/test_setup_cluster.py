"""packaging/setup_cluster.py sets hosts up over a remote shell: once, again without a change, and after changes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import hosts
import pytest
import runtime_kit as kit
from checkout import KIT, REPO
from daemon_kit import START_LIMIT_S
from hosts import Host, Hosts

pytestmark = pytest.mark.timeout(120)
SETUP = REPO / "packaging" / "setup_cluster.py"
USER = 54320  # that the stand-in for systemd-sysusers makes
IMAGE = "/run/image"

# Stand-ins for systemd's commands, as far as the script uses them: units that are enabled and active are files.
STAND_INS = {
    "systemctl": """#!/bin/sh
root=
while case $1 in --root=*) root=${1#--root=} ;; *) false ;; esac; do shift; done
verb=$1; shift
[ "$1" = -q ] && shift
units=/run/units; mkdir -p $units; echo "$verb $1" >>$units/log
case $verb in
  is-enabled) [ -e "$units/$1.enabled" ] ;;
  is-active) [ -e "$units/$1.active" ] ;;
  enable) touch "$units/$1.enabled" ;;
  disable) rm "$units/$1.enabled" ;;
  start | restart) touch "$units/$1.active" ;;
  stop) rm -f "$units/$1.active" ;;
  *) echo "no $verb here" >&2; exit 1 ;;
esac
""",
    "systemd-sysusers": f"""#!/bin/sh
root=${{1#--root=}}
grep -q '^u hocket' && echo "hocket:x:{USER}:{USER}::/var/lib/hocket:/bin/false" >>"$root/etc/passwd"
""",
}


def setup(host: Host, *words: str) -> kit.Run:
    shell = f"{sys.executable} {KIT / 'remote_shell.py'}"
    common = ["--ssh", shell, "--root", IMAGE, "--key", "/run/key", "--leaders", "adm"]
    return host.run([sys.executable, SETUP, *common, *words])


@pytest.fixture
def cluster(start_hosts: Callable[..., Hosts], prefix: Path) -> Iterator[Hosts]:
    """Three hosts with an image of a system each, in which hocket is installed."""
    several = start_hosts("adm", "n1", "n2", env={"PATH": f"/run/bin:{os.environ['PATH']}"})
    shells = []
    for host in several:
        for name, text in STAND_INS.items():
            host.run(["mkdir", "-p", "/run/bin"])
            host.write(Path("/run/bin") / name, text.encode())
            host.run(["chmod", "755", f"/run/bin/{name}"])
        host.run(["mkdir", "-p", f"{IMAGE}/etc", f"{IMAGE}/usr/bin", f"{IMAGE}/usr/lib/sysusers.d"])
        host.run(["ln", "-s", prefix / "bin" / "hocketd", f"{IMAGE}/usr/bin/hocketd"])
        host.run(["cp", REPO / "packaging/sysusers.d/hocket.conf", f"{IMAGE}/usr/lib/sysusers.d/"])
        shells.append(host.start([sys.executable, KIT / "remote_shell.py", "serve"]))
        assert hosts.first_line(shells[-1], START_LIMIT_S) == "ready\n"
    yield several
    for shell in shells:
        shell.kill()


def state(host: Host) -> str:
    """Return all files of the image with mode, owner and content, and the units that are enabled."""
    look = f"cd {IMAGE}; find . -type f -printf '%p %m %U ' -exec cksum {{}} ';'; ls /run/units | grep enabled"
    return host.run(["sh", "-c", look]).out


def test_a_cluster_is_set_up_once_and_stays(cluster: Hosts):
    adm, n1, n2 = cluster
    before = state(n1)
    dry = setup(adm, "--dry-run", "n1", "n2")
    assert dry.code == 0 and "n1: would make the user hocket, write /run/image/etc/hocket/hocket.toml" in dry.out, dry
    assert state(n1) == before and adm.run(["test", "-e", "/run/key"]).code == 1, "a dry run changes nothing"

    done = setup(adm, "n1", "n2")
    assert done.code == 0 and done.err == "", done.err
    assert "adm: make the user hocket" in done.out and "enable hocketd-leader" in done.out, done.out
    key = adm.read(Path("/run/key"))
    for host, role in ((adm, "leader"), (n1, "agent"), (n2, "agent")):
        assert host.read(Path(IMAGE) / "etc/hocket/cluster.key") == key
        assert host.run(["stat", "-c", "%a %u", f"{IMAGE}/etc/hocket/cluster.key"]).out == f"600 {USER}\n"
        assert f"hocketd-{role}.enabled" in state(host)
    config = host.run([f"{IMAGE}/usr/bin/hocketd", "--config", f"{IMAGE}/etc/hocket/hocket.toml", "--print-config"])
    assert config.code == 0 and "leaders = 'adm:7117'" in config.out, config.err + config.out

    after = [state(host) for host in cluster]
    again = setup(adm, "n1", "n2")
    assert again.out.splitlines() == [f"{name}: nothing to change" for name in ("adm", "n1", "n2")], (
        again.out + again.err
    )
    assert [state(host) for host in cluster] == after


def test_only_what_differs_is_changed(cluster: Hosts):
    adm, n1, _ = cluster
    assert setup(adm, "n1").code == 0
    n1.run(["sh", "-c", f"chmod 644 {IMAGE}/etc/hocket/cluster.key; touch /run/units/hocketd.enabled"])
    adm.write(Path("/run/own.toml"), b'[coordinator]\npolicy = "fcfs"\n')
    changed = setup(adm, "--config", "/run/own.toml", "n1", "n2")
    assert changed.code == 0, changed.err
    lines = dict(line.split(": ", 1) for line in changed.out.splitlines())
    assert lines["adm"] == f"write {IMAGE}/etc/hocket/hocket.toml"
    assert lines["n1"] == f"write {IMAGE}/etc/hocket/hocket.toml, write {IMAGE}/etc/hocket/cluster.key, disable hocketd"
    assert lines["n2"].startswith("make the user hocket")


def test_a_host_that_fails_is_named_and_keeps_no_other_from_it(cluster: Hosts):
    adm, n1, n2 = cluster
    n1.run(["rm", f"{IMAGE}/usr/bin/hocketd"])
    n2.run(["sh", "-c", "printf '#!/bin/sh\nexit 1\n' > /run/bin/systemd-sysusers"])
    done = setup(adm, "n1", "n2", "nowhere")
    assert done.code == 1
    assert "n1: failed as there is no /run/image/usr/bin/hocketd: install hocket there first" in done.err
    assert "n2: failed to make the user hocket" in done.err
    assert "nowhere: the remote shell failed: " in done.err
    assert len(done.err.splitlines()) == 3 and done.out.splitlines()[-1].startswith("adm: make the user hocket"), done


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--leaders", "adm", "-oProxyCommand=x"], "unrecognized arguments"),
        (["--leaders", "adm", "a b"], "'a b' is no host"),
        (["--leaders", ","], "--leaders names no host"),
        (["--leaders", "adm", "--config", "CLUSTER"], "has a table [cluster]"),
        (["--leaders", "adm", "--config", "DAEMON"], '[daemon] needs dir = "/run/hocket"'),
        (["--leaders", "adm", "--config", "SHORT"], "this is no TOML"),
        (["--leaders", "adm", "--key", "OPEN"], "others may use the key"),
        (["--leaders", "adm", "--key", "SHORT"], "must have 32 to 256 printable characters"),
    ],
)
def test_a_mistake_is_one_line_and_reaches_no_host(tmp_path: Path, words: list[str], told: str):
    files = {"CLUSTER": "[cluster]\n", "DAEMON": '[daemon]\nusers = "all"\n', "OPEN": "k" * 40, "SHORT": "k"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o644 if name == "OPEN" else 0o600)
    given = [str(tmp_path / word) if word in files else word for word in words]
    command = [sys.executable, SETUP, "--ssh", "touch", *(given if "--key" in given else [*given, "--munge"])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False, cwd=tmp_path)
    assert done.returncode == 2 and told in done.stderr.splitlines()[-1], done.stderr
    assert not (tmp_path / "adm").exists()
