"""Objects out of YAML files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from harness.subjects.base import SubjectError

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.timeline import JSON


def documents(path: Path) -> list[JSON]:
    """Return the objects of a YAML file. Raises SubjectError."""
    try:
        with path.open(encoding="utf-8") as file:
            loaded = list(YAML(typ="safe", pure=True).load_all(file))
    except (OSError, YAMLError) as error:
        words = str(error).splitlines()[0]
        msg = f"{path} cannot be read: {words}"
        raise SubjectError(msg) from error
    return [dict(document) for document in loaded if isinstance(document, dict)]
