"""Mount namespaces, in which a user may mount file systems that nobody else sees."""

from __future__ import annotations

import os
import subprocess

import pytest

LIMIT_S = 30
IN_A_MOUNT_NAMESPACE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
# Runs "$@" in a user and mount namespace, after the commands of $0.
NAMESPACE = ["unshare", "-Urm", "sh", "-c", 'set -e; eval "$0"; exec "$@"']


def can_mount() -> bool:
    done = subprocess.run([*NAMESPACE, "mount -t tmpfs none /mnt", "true"], capture_output=True, timeout=LIMIT_S)
    return done.returncode == 0


needs_mounts = pytest.mark.skipif(not can_mount(), reason="this user may have no mount namespace")
