"""Where the programs of the embedded cluster are kept: one folder per pinned versions and flags, so that nothing is made twice."""

from __future__ import annotations

import hashlib
import platform
from typing import TYPE_CHECKING

from harness.clusters.embedded.components import COMPONENTS, lock_files
from harness.programs.cache import Cache, disk_errors
from harness.programs.golang import FLAGS
from harness.programs.paths import cache_root

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.clusters.embedded.components import Component


def cache_key(locks: Sequence[str] = ()) -> str:
    """Return the name of the folder for the pinned versions: the digest of the lock files (by default, of all shared ones) and flags."""
    digest = hashlib.sha256(repr((FLAGS, platform.machine())).encode())
    for lock in sorted(set(locks) or {component.lock for component in COMPONENTS}):
        for path in lock_files(lock):
            with disk_errors(path):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def built(component: Component = COMPONENTS[0]) -> Cache:
    """Return the folder of a program built on this machine; the six of the default version share one."""
    return Cache(cache_root() / "binaries" / _key_of(component))


def official(component: Component = COMPONENTS[0]) -> Cache:
    """Return the folder of a program that was downloaded."""
    return Cache(cache_root() / "binaries" / f"{_key_of(component)}-official")


def _key_of(component: Component) -> str:
    shared = {one.lock for one in COMPONENTS}
    return cache_key(() if component.lock in shared else (component.lock,))
