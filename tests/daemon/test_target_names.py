"""One file system has one name in all mount namespaces of a node, and no two nodes share a name of a local one.

A mount namespace stands for a node. With a boot id of its own it has another node's number.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_kit import Daemon
from hocket.bus import Bus
from hocket.mounts import target_of
from mount_kit import NAMESPACE, needs_mounts

pytestmark = pytest.mark.timeout(120)
LIMIT_S = 30
BOOT_ID = "/proc/sys/kernel/random/boot_id"


@pytest.fixture
def names(prefix: Path) -> Callable[..., list[str]]:
    """Return a function that makes mounts in a namespace of their own, and names the targets of paths there."""

    def ask(mounts: str, *paths: Path | str, **settings: str) -> list[str]:
        ask_all = f'for one; do {prefix}/bin/hocketd --target-of "$one"; done'
        done = subprocess.run(
            [*NAMESPACE, mounts, "sh", "-c", ask_all, "sh", *map(str, paths)],
            capture_output=True, text=True, timeout=LIMIT_S, env=os.environ | settings,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return ask


@needs_mounts
def test_a_file_system_has_one_name_through_different_mounts(names, tmp_path: Path) -> None:
    shared, here, there = (tmp_path / name for name in ("shared", "here", "there"))
    for directory in (shared, here, there):
        directory.mkdir()
    one = names(f"mount --bind {shared} {here}", here, shared)
    other = names(f"mount --bind {shared} {there}; mount -t tmpfs none {shared}", there, shared)
    assert one == [target_of(shared)] * 2
    assert other[0] == one[0] != other[1]


@needs_mounts
def test_nodes_share_no_name_of_a_local_file_system(names, tmp_path: Path) -> None:
    boot = tmp_path / "boot"
    boot.write_text("aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee\n")
    (here,) = names("true", tmp_path)
    (there,) = names(f"mount --bind {boot} {BOOT_ID}", tmp_path)
    device, node = here.split("@")
    assert there == f"{device}@aaaaaaaabbbb4ccc" and node != "aaaaaaaabbbb4ccc", "one device number, two nodes"


@needs_mounts
def test_two_file_systems_of_one_kind_differ_unless_the_operator_names_them(names, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    mounts = f"mount -t tmpfs one {tmp_path}/a; mount -t tmpfs one {tmp_path}/b; mkdir {tmp_path}/a/deep"
    places = [tmp_path / "a" / "deep", tmp_path / "b"]
    a, b = names(mounts, *places)
    assert a != b
    chosen = f"{tmp_path}/a=memory {tmp_path}/b=memory"
    assert names(mounts, *places, HOCKET_TARGET_NAMES=chosen) == ["memory", "memory"]


@needs_mounts
def test_files_with_a_device_number_of_their_own_belong_to_their_mount(names, tmp_path: Path) -> None:
    """Overlayfs gives files of its layers numbers that no line of mountinfo has; btrfs does so for subvolumes."""
    for name in ("lower", "memory", "both"):
        (tmp_path / name).mkdir()
    (tmp_path / "lower" / "f").touch()
    layers = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/memory/upper,workdir={tmp_path}/memory/work"
    mounts = f"mount -t tmpfs none {tmp_path}/memory; mkdir {tmp_path}/memory/upper {tmp_path}/memory/work; "
    mounts += f"mount -t overlay none -o userxattr,{layers} {tmp_path}/both"
    if subprocess.run([*NAMESPACE, mounts, "true"], capture_output=True, timeout=LIMIT_S).returncode != 0:
        pytest.skip("this user may not mount with overlayfs")
    both, file, lower = names(mounts, tmp_path / "both", tmp_path / "both" / "f", tmp_path / "lower")
    assert file == both != lower


@needs_mounts
def test_mounts_of_one_server_have_one_name(prefix: Path, tmp_path: Path) -> None:
    """The mounts have no server behind them: naming a target asks no file system."""
    sources = ["alice@host:/data", "bob@host:/data", "bob@host:/other"]
    mounts = ""
    for number, source in enumerate(sources):
        (tmp_path / str(number)).mkdir()
        mounts += f"exec {number + 3}<>/dev/fuse; mount -i -t fuse.sshfs {source} {tmp_path}/{number} "
        mounts += f"-o fd={number + 3},rootmode=40000,user_id=0,group_id=0; "
    done = subprocess.run(
        [*NAMESPACE, mounts, prefix / "bin" / "hocketd", "--print-targets"],
        capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    if "/dev/fuse" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"this user may not mount with FUSE: {done.stderr.strip()}")
    found = {where: (name, device) for name, device, where in map(str.split, done.stdout.splitlines())}
    names, devices = zip(*(found[f"{tmp_path}/{number}"] for number in range(len(sources))), strict=True)
    assert names == ("sshfs:host:/data", "sshfs:host:/data", "sshfs:host:/other")
    assert len(set(devices)) == len(sources)


def test_hocketd_hands_the_operators_names_on(
    start_daemon: Callable[..., Daemon], prefix: Path, tmp_path: Path
) -> None:
    where = next(str(path) for path in (tmp_path, *tmp_path.parents) if path.is_mount())
    settings = tmp_path / "hocket.toml"
    settings.write_text(f'[coordinator]\ntarget_policies = "{tmp_path}=fcfs"\n[daemon]\ntarget_names = "{where}=big"\n')
    daemon = start_daemon("--config", settings)
    assert target_of(tmp_path) == "big"
    with Bus.connect() as bus:
        assert bus.list().daemon["target_policies"] == "big=fcfs"
    header = json.loads(daemon.trace.read_text().splitlines()[0])
    assert "big=fcfs" in json.dumps(header)
    daemon.stop()
    start_daemon()
    assert target_of(tmp_path).startswith("dev:"), "the next daemon has no such names"
    settings.write_text('[daemon]\ntarget_names = "/x=/y"\n')
    refused = subprocess.run(
        [prefix / "bin" / "hocketd", "--config", settings, "--print-config"], capture_output=True, text=True
    )
    assert refused.returncode == 2 and "daemon.target_names: '/y' cannot name a target" in refused.stderr
