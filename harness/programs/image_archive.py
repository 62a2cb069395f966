"""An image as `docker save` writes it, of files of this machine: one layer, its configuration, and the manifest that names both.

kind, k3s, containerd, Docker and Podman load such a file; no container engine and no registry is needed to make it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import tarfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.programs.cache import disk_errors
from harness.programs.errors import CancelledError

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping, Sequence
    from pathlib import Path

USER: Final = "65532:65532"
"""Nobody in particular, and not root."""
_EPOCH: Final = "1970-01-01T00:00:00Z"
"""The same content is the same image, whenever it was made."""
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
"""As machines call theirs -> as images do."""
_EXECUTABLE: Final = 0o111
_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Image:
    """What is in an image, and how it is run."""

    name: str
    """With its tag."""
    files: Mapping[str, Path | bytes]
    """Path in the image, without a slash before it -> the file here, or its content."""
    entrypoint: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    also: Sequence[str] = ()
    """Further names of the same image."""
    architecture: str = ""
    """What its files run on, as images call it; this machine's unless given."""


def own_architecture() -> str:
    """Return the architecture of this machine, as images and nodes call it."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def write(image: Image, path: Path, cancelled: threading.Event | None = None) -> None:
    """Write the archive: whole, or not at all. Raises ProgramError when the disk refuses, CancelledError when told to stop."""
    # Other processes may be at it, too; the last one wins, and they are all the same.
    own = f".{path.name}.{os.getpid()}"
    layer, draft = path.with_name(f"{own}.layer"), path.with_name(f"{own}.draft")
    try:
        with disk_errors(path):
            _write_layer(image, layer, cancelled)
            with layer.open("rb") as content:
                layer_id = hashlib.file_digest(content, "sha256").hexdigest()
            _write_archive(image, layer, layer_id, draft)
            draft.replace(path)
    finally:
        for left in (layer, draft):
            left.unlink(missing_ok=True)


def _write_layer(image: Image, layer: Path, cancelled: threading.Event | None) -> None:
    with tarfile.open(layer, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, source in sorted(image.files.items()):
            if cancelled is not None and cancelled.is_set():
                raise CancelledError
            if isinstance(source, bytes):
                _add(tar, name, source)
                continue
            info = tarfile.TarInfo(name)
            told = source.stat()
            info.size = told.st_size
            info.mode = 0o755 if told.st_mode & _EXECUTABLE else 0o644
            # Python compares it with what a compiled file says of its source.
            info.mtime = int(told.st_mtime)
            with source.open("rb") as content:
                tar.addfile(info, content)


def _write_archive(image: Image, layer: Path, layer_id: str, draft: Path) -> None:
    config = _json(
        {
            "created": _EPOCH,
            "architecture": image.architecture or own_architecture(),
            "os": "linux",
            "config": {
                "Entrypoint": list(image.entrypoint),
                "Env": [f"{key}={value}" for key, value in sorted(image.environment.items())],
                "User": USER,
                "WorkingDir": "/",
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_id}"]},
            "history": [{"created": _EPOCH, "created_by": "rollout-drill"}],
        }
    )
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    layer_name = f"{layer_id}/layer.tar"
    manifest = [
        {"Config": config_name, "RepoTags": [image.name, *image.also], "Layers": [layer_name]}
    ]
    with tarfile.open(draft, "w", format=tarfile.PAX_FORMAT) as tar:
        _add(tar, config_name, config)
        info = tarfile.TarInfo(layer_name)
        info.size, info.mode, info.mtime = layer.stat().st_size, 0o644, 0
        with layer.open("rb") as content:
            tar.addfile(info, content)
        _add(tar, "manifest.json", _json(manifest))


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(content), 0o644, 0
    tar.addfile(info, io.BytesIO(content))


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
