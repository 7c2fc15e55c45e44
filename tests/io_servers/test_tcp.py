"""Who may connect to hocket-server: another user gets no session, and a stranger on the way alters nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from put_get_kit import MIB, NO_SERVER, noise, operations
from relay_kit import Relay, host_and_port

pytestmark = pytest.mark.timeout(120)
LIMIT_S = 20
OTHER_USER = 65534
SECRET_DATA = b"the victim's data " * 1000


def test_a_server_that_died_is_not_replaced_by_a_relay_to_another(
    program, start_server, served_directory: Path
) -> None:
    """Its port is free, so a stranger binds it, relays the greeting to a live server, and would own the session."""
    dead, live = (start_server(name, "--tcp", "127.0.0.1:0") for name in ("s1", "s2"))
    dead.kill()
    one = program()
    address = dead.addresses[1].partition("@")[0]
    with Relay(host_and_port(address), host_and_port(live.addresses[1])) as relay:
        code, text = one.call("open", served_directory / "f", "rwc", f"servers={address}")
        if code == 0:
            one.put(0, SECRET_DATA)
            one.must("close")
    assert relay.connections > 0
    assert SECRET_DATA[:100] not in relay.seen
    assert (code, operations(live)) == (NO_SERVER, 0), text


def test_on_one_node_there_is_no_tcp(program, start_server, served_directory: Path) -> None:
    """The Unix socket of a server has gone, and its TCP address leads to whoever has bound the port."""
    dead, live = (start_server(name, "--tcp", "127.0.0.1:0") for name in ("s1", "s2"))
    dead.socket.unlink()
    dead.kill()
    path, tcp = served_directory / "f", dead.addresses[1]
    servers = "|".join(f"{one.name},{served_directory},{','.join(one.addresses)}" for one in (dead, live))
    one = program()
    with Relay(host_and_port(tcp), host_and_port(live.addresses[1])) as relay:
        one.must("open", path, "rwc", f"servers={servers}")
        one.put(0, SECRET_DATA)
        one.must("close")
        code, text = one.call("open", path, "rwc", f"servers={tcp}")
    assert path.read_bytes() == SECRET_DATA
    assert operations(live) > 0
    assert (code, relay.connections) == (NO_SERVER, 0)
    assert "is on this node, where only its Unix socket is used" in text


def test_to_another_node_data_go_over_tcp(program, start_server, served_directory: Path) -> None:
    server = start_server("s1", "--tcp", "127.0.0.1:0", elsewhere=True)
    data = noise(3 * MIB)
    one = program()
    one.must("open", served_directory / "f", "rwc", f"servers={server.addresses[1]}")
    one.put(5, data)
    assert one.get("get", 5, len(data)) == data
    one.must("flush")
    one.must("close")
    assert (served_directory / "f").read_bytes() == bytes(5) + data
    assert operations(server) > 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
def test_another_user_may_not_connect(start_server, hocket_dir: Path) -> None:
    """The file modes keep other users out already. If they do not, the server asks the kernel for the user."""
    server = start_server("s1")
    path = server.socket
    for directory in (hocket_dir, path.parent):
        directory.chmod(0o711)
    path.chmod(0o666)
    asks = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({str(path)!r}); print(s.recv(1))"
    done = subprocess.run(
        ["python3", "-c", asks], user=OTHER_USER, group=OTHER_USER, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.stdout == "b''\n", done.stderr
    assert f"refused a client of user {OTHER_USER}" in server.log.read_text()
    assert server.client().state()["clients"] == "1"
