"""The manifest that runs the controller in a cluster, with namespace and image filled in."""

from __future__ import annotations

import json
import re
from typing import Final

from harness.data import data_path

_FILES: Final = (("rbac", "controller.yaml"), ("manifests", "controller.yaml"))
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_IMAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*")


class ManifestError(Exception):
    """Namespace or image cannot be that; the message is one sentence."""


def manifest(namespace: str, image: str, *, crd: bool = True) -> str:
    """Return the documents (YAML), in the order in which they can be applied. Raises ManifestError."""
    if not _NAMESPACE.fullmatch(namespace):
        msg = f"--namespace {namespace!r} is not the name of a namespace (lower-case letters, digits and '-')"
        raise ManifestError(msg)
    if not _IMAGE.fullmatch(image):
        msg = f"--image {image!r} is not the name of an image, such as registry.example/rollout-drill:1"
        raise ManifestError(msg)
    files = (("crds", "canaries.yaml"), *_FILES) if crd else _FILES
    texts = [data_path("fixtures", *file).read_text(encoding="utf-8").strip() for file in files]
    text = "\n---\n".join(texts) + "\n"
    for name, value in (("namespace", namespace), ("image", image)):
        text = text.replace(f'"{{{{ {name} }}}}"', json.dumps(value))
    return text
