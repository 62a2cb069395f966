"""The program that pods of a drill run where containers are real: ours, built here, and the image that has it.

`fixtures/go/workload` is its source, and says what it can do. It is linked statically and needs no files, so an image of it is the
program alone.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from harness import __version__
from harness.clusters.base import ChoiceError, ClusterError
from harness.data import data_path
from harness.programs import build, toolchain
from harness.programs.cache import Cache, disk_errors
from harness.programs.errors import ProgramError
from harness.programs.image_archive import Image, own_architecture, write
from harness.programs.paths import cache_root

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from harness.clusters.base import Progress

IMAGE: Final = f"rollout-drill/workload:{__version__}"
"""In no registry: kind and k3s get it loaded into their nodes."""
PROGRAM: Final = "workload"
"""The file name of the program, and the end of the image's name."""
OTHERWISE: Final = "use an image that your cluster can pull (--image)"

_SECONDS: Final = 20
_DIGITS: Final = 12


def obtain(
    progress: Progress, cancelled: threading.Event | None = None, *, architecture: str = ""
) -> Path:
    """Return the path of the program, built if need be (20 s once, nothing is downloaded but Go where it lacks). Blocks.

    `architecture` is that of the nodes, as a Node states it (`amd64`, `arm64`); this machine's unless given. Raises ClusterError.
    """
    target = architecture or own_architecture()
    try:
        program, cache = _program(target)
        order = build.Order(toolchain.ANY_GO, f"is building {program.label}", "", OTHERWISE)
        build.build(cache, [program], order, progress, cancelled)
    except ProgramError as error:
        msg = f"The program that pods of drills run cannot be had: {error}"
        raise ClusterError(msg) from error
    return cache.folder / PROGRAM


def save_image(path: Path, name: str, progress: Progress, *, architecture: str = "") -> None:
    """Write the image's archive, as `docker save` would, under a name that `is_ours`. Raises ChoiceError, ClusterError."""
    if not is_ours(name):
        msg = f"--name {name}: an image of ours is known by its name, which has to end like {IMAGE}; any registry may stand before it."
        raise ChoiceError(msg)
    program = obtain(progress, architecture=architecture)
    image = Image(name, {PROGRAM: program}, [f"/{PROGRAM}"], architecture=architecture)
    try:
        write(image, path)
    except ProgramError as error:
        msg = f"The image of workloads cannot be made: {error}"
        raise ClusterError(msg) from error


def is_ours(image: str) -> bool:
    """Return whether an image, by its name, is one of ours of any version in any registry: it has the probe of traffic."""
    name = image.partition("@")[0]
    last = name.rpartition("/")[2].partition(":")[0]
    return last == PROGRAM and name.rpartition("/")[0].endswith("rollout-drill")


def _program(architecture: str) -> tuple[build.Program, Cache]:
    folder = data_path("fixtures", "go", PROGRAM)
    digest = hashlib.sha256(architecture.encode())
    for path in sorted(folder.iterdir()):
        with disk_errors(path):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    cache = Cache(
        cache_root() / "programs" / f"{PROGRAM}-{__version__}-{digest.hexdigest()[:_DIGITS]}"
    )
    program = build.Program(
        PROGRAM,
        __version__,
        folder,
        ".",
        _SECONDS,
        flags=("-trimpath",),
        architecture=architecture,
    )
    return program, cache
