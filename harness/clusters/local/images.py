"""The image of workloads for clusters of this machine: one static program, in a cached archive that they load."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from harness.programs.image_archive import Image, write
from harness.programs.paths import cache_root, make_folder

if TYPE_CHECKING:
    import threading
    from pathlib import Path

RESERVED: Final = "registry.example"
"""A registry that cannot exist (RFC 2606). Scenarios name images of it where two revisions differ by their images."""
REVISIONS: Final = tuple(
    f"{RESERVED}/{name}:{tag}" for name in ("web", "agent") for tag in range(4)
)
"""What such scenarios name: on a cluster of this machine all of them are our image, on simulated nodes mere names."""
_DIGITS: Final = 12


def archive(program: Path, image: str, cancelled: threading.Event | None = None) -> Path:
    """Return the archive of an image that is this program alone, by its own name and by `REVISIONS`, made if it is not cached.

    Its file name carries a digest of all that. Raises ProgramError when the disk refuses.
    """
    with program.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    said = f"{digest} {image} {' '.join(REVISIONS)}"
    digest = hashlib.sha256(said.encode()).hexdigest()[:_DIGITS]
    stem = image.replace("/", "-").replace(":", "-")
    path = make_folder(cache_root() / "images") / f"{stem}-{digest}.tar"
    if not path.is_file():
        entrypoint = [f"/{program.name}"]
        made = Image(image, {program.name: program}, entrypoint, also=REVISIONS)
        write(made, path, cancelled)
    return path
