"""Objects as YAML text that every reader takes for the same thing, those of YAML 1.1 included."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.representer import RoundTripRepresenter

from harness.scenario.manifests import DrillContext, Manifest, render

if TYPE_CHECKING:
    from pathlib import Path

    from ruamel.yaml.nodes import ScalarNode

    from harness.model.resolved import Resolved

_AMBIGUOUS: Final = re.compile(
    r"(?i:y|n|yes|no|on|off|true|false|null|~|)|[-+]?[.0-9][-+0-9_,:.eExXa-fA-FoO]*|=|<<"
    r"|\d{4}-\d\d?-\d\d?(?:[Tt ].*)?"
)
"""Texts that some version of YAML takes for another type: booleans, numbers, octal, base 60, dates."""
_WIDTH: Final = 120


class _Representer(RoundTripRepresenter):
    """Quotes texts that could be taken for something else, and writes long ones as blocks."""


def _text(representer: RoundTripRepresenter, data: str) -> ScalarNode:
    style = None
    if "\n" in data:
        style = "|"
    elif _AMBIGUOUS.fullmatch(data):
        style = '"'
    return representer.represent_scalar("tag:yaml.org,2002:str", data, style=style)


def _null(representer: RoundTripRepresenter, data: None) -> ScalarNode:
    del data
    return representer.represent_scalar("tag:yaml.org,2002:null", "null")


_Representer.add_representer(str, _text)
_Representer.add_representer(type(None), _null)


def to_yaml(value: Any) -> str:
    """Return a JSON value as YAML text, keys in their order."""
    writer = YAML()
    writer.Representer = _Representer
    writer.width = _WIDTH
    writer.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    writer.dump(value, stream)
    return stream.getvalue()


def render_yaml(resolved: Resolved, folder: Path, context: DrillContext | None = None) -> str:
    """Return all objects of a drill as one YAML text, each below a comment that names its source.

    Raises ScenarioError. The namespace of the drill stands in no object; it is given when objects are applied.
    """
    return "".join(_document(item) for item in render(resolved, folder, context))


def _document(manifest: Manifest) -> str:
    return f"---\n# {manifest.source}:{manifest.line}\n{to_yaml(manifest.object)}"
