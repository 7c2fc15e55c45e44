#!/usr/bin/env python3
"""Set hocket up on the nodes of a cluster, over ssh: user, configuration, key and units.

    setup_cluster.py --leaders adm1,adm2 --dry-run n1 n2 n3     # what would change
    setup_cluster.py --leaders adm1,adm2 n1 n2 n3

hocket itself must be installed on all nodes, the same version, below the same prefix. Each run changes only what
differs, so it can be repeated: for more nodes, for another configuration, or after a failure. ssh must reach root on
each host without a password. Needs nothing but Python's own library.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

LIMIT_S = 120
AT_ONCE = 16  # hosts
KEY_PLACE = "/etc/hocket/cluster.key"
HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*")

# The script that sh runs on each host. It says what it did, or would do, line by line; the last line is "done".
REMOTE = r"""
set -u
umask 022
dirty=0
fail() { echo "failed $*"; exit 0; }
change() { # WHAT COMMAND…
  what=$1; shift
  if [ "$dry" = 1 ]; then echo "would $what"; return; fi
  said=$("$@" 2>&1 </dev/null) || fail "to $what: $(echo "$said" | tail -n 1)"
  echo "did $what"
}
put() { # PATH MODE OWNER TEXT
  new=$(mktemp) && chmod 600 "$new" && printf '%s' "$4" >"$new" || fail "to make a temporary file"
  if ! { [ -f "$1" ] && cmp -s "$new" "$1" && [ "$(stat -c %a:%u "$1")" = "$2:$3" ]; }; then
    dirty=1
    change "write $1" place "$new" "$1" "$2" "$3"
  fi
  rm -f "$new"
}
place() { mkdir -p "$(dirname "$2")" && install -m "$3" -o "$4" "$1" "$2.new" && mv -f "$2.new" "$2"; }
find_user() { sed -n 's/^hocket:[^:]*:\([0-9]*\):.*/\1/p' "$root/etc/passwd" 2>/dev/null; }
make_user() { cat "$root$prefix/lib/sysusers.d/hocket.conf" | systemd-sysusers ${root:+--root="$root"} -; }
system() { systemctl ${root:+--root="$root"} "$@"; }

[ -x "$root$prefix/bin/hocketd" ] || fail "as there is no $root$prefix/bin/hocketd: install hocket there first"
echo "version $("$root$prefix/bin/hocketd" --version 2>/dev/null | tail -n 1)"
[ -n "$(find_user)" ] || change "make the user hocket" make_user
user=$(find_user)
[ -n "$user" ] || [ "$dry" = 1 ] || fail "to make the user hocket: systemd-sysusers made none"
put "$root/etc/hocket/hocket.toml" 644 0 "$config"
[ -z "$key" ] || put "$root$key_place" 600 "${user:-none}" "$key
"

case $prefix in
  /usr | /usr/local) ;;
  *)
    unit=/etc/systemd/system/hocketd-$role.service
    if [ "$(readlink "$root$unit")" != "$prefix/lib/systemd/system/hocketd-$role.service" ]; then
      mkdir -p "$root/etc/systemd/system"
      change "link $unit" ln -sfn "$prefix/lib/systemd/system/hocketd-$role.service" "$root$unit"
    fi ;;
esac
for other in hocketd hocketd-leader hocketd-agent; do
  [ "$other" != "hocketd-$role" ] && system is-enabled -q "$other" 2>/dev/null || continue
  change "disable $other" system disable "$other"
  [ -n "$root" ] || change "stop $other" system stop "$other"
done
system is-enabled -q "hocketd-$role" 2>/dev/null || change "enable hocketd-$role" system enable "hocketd-$role"
if [ -z "$root" ]; then
  if ! system is-active -q "hocketd-$role" 2>/dev/null; then
    change "start hocketd-$role" system start "hocketd-$role"
  elif [ "$dirty" = 1 ]; then
    change "restart hocketd-$role" system restart "hocketd-$role"
  fi
fi
echo done
"""


class SetupError(Exception):
    """Says what is wrong, and what to do."""


@dataclass
class Outcome:
    """What one host said."""

    host: str
    version: str = ""
    changes: list[str] = field(default_factory=list)
    failure: str = ""

    def text(self, dry: bool) -> str:
        if self.failure:
            return f"{self.host}: {self.failure}"
        verb = "would " if dry else ""
        return f"{self.host}: {verb}{', '.join(self.changes)}" if self.changes else f"{self.host}: nothing to change"


def main() -> int:
    arguments = parse()
    try:
        leaders, agents = hosts_of(arguments)
        config = configuration(arguments, leaders)
        key = "" if arguments.munge else read_key(arguments.key, arguments.dry_run)
    except (SetupError, OSError) as error:
        print(f"setup_cluster: {error}", file=sys.stderr)
        return 2
    work = [(host, "leader") for host in leaders] + [(host, "agent") for host in agents]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        outcomes = list(threads.map(lambda one: set_up(arguments, *one, config, key), work))
    versions = {one.version for one in outcomes if one.version}
    for one in outcomes:
        print(one.text(arguments.dry_run), file=sys.stderr if one.failure else sys.stdout)
    if len(versions) > 1:
        print(f"setup_cluster: versions differ: {', '.join(sorted(versions))}; install one on all", file=sys.stderr)
    return 1 if len(versions) > 1 or any(one.failure for one in outcomes) else 0


def parse() -> argparse.Namespace:
    words = (__doc__ or "").split("\n\n")
    parser = argparse.ArgumentParser(
        description="\n\n".join(words), formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("hosts", nargs="*", metavar="HOST", help="a host that gets an agent: [USER@]NAME")
    parser.add_argument("--hosts", dest="file", metavar="FILE", help="such hosts, one a line; # for comments")
    parser.add_argument(
        "--leaders", required=True, metavar="HOST,…", help="hosts that get a leader, the first before the others"
    )
    parser.add_argument("--port", type=int, default=7117, help="at which the leaders listen (default: 7117)")
    parser.add_argument("--prefix", default="/usr", help="below which hocket is installed (default: /usr)")
    parser.add_argument("--config", metavar="FILE", help="hocket.toml for all nodes, without a table [cluster]")
    trust = parser.add_mutually_exclusive_group()
    trust.add_argument(
        "--key", metavar="FILE", default="~/.config/hocket/cluster.key",
        help="the key of all nodes, made if there is none (default: ~/.config/hocket/cluster.key)",
    )  # fmt: skip
    trust.add_argument("--munge", action="store_true", help="in place of a key: MUNGE runs on all nodes")
    parser.add_argument("--ssh", default="ssh -o BatchMode=yes", help="default: ssh -o BatchMode=yes")
    parser.add_argument(
        "--root", default="", metavar="DIR", help="set up the image of a system in DIR of each host, which starts later"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
    return parser.parse_args()


def hosts_of(arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return the leaders and the agents."""
    lines = Path(arguments.file).read_text().splitlines() if arguments.file else []
    named = [word for line in lines for word in line.partition("#")[0].split()]
    leaders = unique(word for word in arguments.leaders.split(",") if word)
    agents = [host for host in unique([*arguments.hosts, *named]) if host not in leaders]
    if wrong := [host for host in (*leaders, *agents) if not HOST.fullmatch(host)]:
        raise SetupError(f"{wrong[0]!r} is no host: give [USER@]NAME")
    if not leaders:
        raise SetupError("--leaders names no host: give at least one")
    return leaders, agents


def unique(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))


def configuration(arguments: argparse.Namespace, leaders: list[str]) -> str:
    """Return the hocket.toml of all nodes."""
    own = Path(arguments.config).read_text() if arguments.config else ""
    if re.search(r"^\s*\[cluster\]", own, re.MULTILINE):
        raise SetupError(f"{arguments.config} has a table [cluster], which comes from the options: remove it")
    addresses = ", ".join(f'"{host.rpartition("@")[2]}:{arguments.port}"' for host in leaders)
    lines = [
        "# Written by setup_cluster.py, which replaces it at its next run.",
        *([own.rstrip("\n")] if own else []),
        "",
        "[cluster]",
        f'listen = "0.0.0.0:{arguments.port}"',
        f"leaders = [{addresses}]",
        f'key = "{"munge" if arguments.munge else KEY_PLACE}"',
    ]
    needed = {"users": "all", "dir": "/run/hocket"}
    try:
        daemon = tomllib.loads(own).get("daemon")
    except tomllib.TOMLDecodeError as error:
        raise SetupError(f"{arguments.config}: this is no TOML: {error}") from error
    if daemon is None:
        lines += ["", "[daemon]", *(f'{key} = "{value}"' for key, value in needed.items())]
        daemon = needed
    for key, value in needed.items():
        if daemon.get(key) != value:
            raise SetupError(f'{arguments.config}: [daemon] needs {key} = "{value}", where programs find the daemon')
    return "\n".join(lines) + "\n"


def read_key(path: str, dry: bool) -> str:
    """Return the key, which is made if there is none."""
    file = Path(path).expanduser()
    try:
        if file.stat().st_mode & 0o077:
            raise SetupError(f"others may use the key {file}: 'chmod 600' it; make a new one if somebody has read it")
        key = file.read_text().strip()
    except FileNotFoundError:
        key = secrets.token_hex(32)
        if dry:
            print(f"would make the key {file}")
            return key
        file.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as new:
            new.write(key + "\n")
        print(f"made the key {file}")
    if not 32 <= len(key) <= 256 or not key.isascii() or not key.isprintable():
        raise SetupError(f"the key {file} must have 32 to 256 printable characters: hocketd --make-key makes one")
    return key


def set_up(arguments: argparse.Namespace, host: str, role: str, config: str, key: str) -> Outcome:
    """Run REMOTE on the host. Its input has the key, so that no list of processes shows it."""
    values = {
        "dry": "1" if arguments.dry_run else "0", "root": arguments.root.rstrip("/"), "prefix": arguments.prefix,
        "role": role, "config": config, "key": key, "key_place": KEY_PLACE,
    }  # fmt: skip
    script = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items()) + REMOTE
    outcome = Outcome(host)
    try:
        done = subprocess.run(
            [*shlex.split(arguments.ssh), host, "sh", "-s"],
            input=script, capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        outcome.failure = f"the remote shell failed: {error}"
        return outcome
    lines = done.stdout.splitlines()
    for line in lines:
        kind, _, rest = line.partition(" ")
        if kind in ("did", "would"):
            outcome.changes.append(rest)
        elif kind == "version":
            outcome.version = rest
        elif kind == "failed":
            outcome.failure = f"failed {rest}"
    if not outcome.failure and "done" not in lines:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        outcome.failure = f"the remote shell failed: {said[-1] if said else f'exit code {done.returncode}'}"
    return outcome


if __name__ == "__main__":
    sys.exit(main())
