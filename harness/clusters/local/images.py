"""Images for clusters of this machine: that of workloads, one static program in a cached archive, and those that Docker has already."""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ClusterError
from harness.clusters.local.tool import call, program, which
from harness.programs.image_archive import Image, write
from harness.programs.paths import cache_root, make_folder

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence
    from pathlib import Path

RESERVED: Final = "registry.example"
"""A registry that cannot exist (RFC 2606). Scenarios name images of it where two revisions differ by their images."""
REVISIONS: Final = tuple(
    f"{RESERVED}/{name}:{tag}" for name in ("web", "agent") for tag in range(4)
)
"""What such scenarios name: on a cluster of this machine all of them are our image, on simulated nodes mere names."""
_DIGITS: Final = 12


def in_engine(images: Sequence[str]) -> dict[str, str]:
    """Return those images that this machine's Docker has, each with its id; none where there is no Docker. Blocks."""
    if which("docker") is None:
        return {}
    found: dict[str, str] = {}
    for image in dict.fromkeys(images):
        argv = [program("docker"), "image", "inspect", "--format", "{{.Id}}", image]
        # One that Docker does not have is pulled by the nodes, or is none: their kubelets say so.
        with contextlib.suppress(ClusterError):
            found[image] = call(argv, what=f"Looking for {image}").strip()
    return found


def archive(binary: Path, image: str, cancelled: threading.Event | None = None) -> Path:
    """Return the archive of an image that is this program alone, by its own name and by `REVISIONS`, made if it is not cached.

    Its file name carries a digest of all that. Raises ProgramError when the disk refuses.
    """
    with binary.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    said = f"{digest} {image} {' '.join(REVISIONS)}"
    digest = hashlib.sha256(said.encode()).hexdigest()[:_DIGITS]
    stem = image.replace("/", "-").replace(":", "-")
    path = make_folder(cache_root() / "images") / f"{stem}-{digest}.tar"
    if not path.is_file():
        entrypoint = [f"/{binary.name}"]
        made = Image(image, {binary.name: binary}, entrypoint, also=REVISIONS)
        write(made, path, cancelled)
    return path
