"""Which nodes of a cluster that is not ours a drill may use: those that take pods, and that the user chose.

Pure functions over raw Node objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.clusters.base import ChoiceError
from harness.model.nodes import KEEPS_OUT, taint_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HOSTNAME: Final = "kubernetes.io/hostname"
_MANY: Final = 12


@dataclass(frozen=True, slots=True)
class Eligible:
    """The nodes that a drill counts, and those that it does not."""

    names: tuple[str, ...]
    hostnames: tuple[str, ...]
    """Their values of the label kubernetes.io/hostname, which need not be their names."""
    left_out: Mapping[str, str]
    """Of those that were chosen: name -> why it takes no pods."""
    seen: bool = True
    """Whether the nodes could be listed; otherwise the names are what the user said."""


def why_out(node: Mapping[str, Any]) -> str:
    """Return why an ordinary pod cannot be placed on a node, in words; empty when it can."""
    spec = node.get("spec") or {}
    conditions = (node.get("status") or {}).get("conditions") or []
    if spec.get("unschedulable"):
        return "cordoned"
    if not any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions):
        return "not ready"
    taints = [one for one in spec.get("taints") or [] if one.get("effect") in KEEPS_OUT]
    return f"tainted {', '.join(taint_text(one) for one in taints)}" if taints else ""


def parse_selector(text: str) -> dict[str, str]:
    """Return `key=value,…` as labels. Raises ChoiceError for anything else."""
    labels: dict[str, str] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        key, equals, value = part.partition("=")
        if not key.strip() or not equals:
            msg = f"--node-selector {text!r}: expected key=value, several with commas between them, not {part!r}."
            raise ChoiceError(msg)
        labels[key.strip()] = value.strip().removeprefix("=")
    return labels


def eligible(
    nodes: Sequence[Mapping[str, Any]] | None, names: Sequence[str] = (), selector: str = ""
) -> Eligible:
    """Return the nodes among `nodes` (None: they cannot be listed) that take pods, have one of `names` and the labels of `selector`.

    Raises ChoiceError when a name or the selector matches no node, when none of those chosen takes pods, and for a selector where nodes
    cannot be listed.
    """
    if nodes is None:
        if selector:
            msg = (
                f"--node-selector {selector}: the nodes cannot be listed with these rights, so that labels say nothing; name them with "
                "--nodes NAME,…"
            )
            raise ChoiceError(msg)
        chosen_names = tuple(dict.fromkeys(names))
        return Eligible(chosen_names, chosen_names, {}, seen=False)
    by_name = {str(node["metadata"]["name"]): node for node in nodes}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        msg = f"--nodes: there is no node {', '.join(unknown)}; there are: {_few(sorted(by_name))}."
        raise ChoiceError(msg)
    wanted = parse_selector(selector)
    chosen = {
        name: node
        for name, node in sorted(by_name.items())
        if (not names or name in names) and wanted.items() <= _labels(node).items()
    }
    if not chosen and (names or wanted):
        among = f" among {', '.join(names)}" if names else ""
        msg = f"--node-selector {selector}: no node{among} has these labels."
        raise ChoiceError(msg)
    out = {name: why for name, node in chosen.items() if (why := why_out(node))}
    taken = {name: node for name, node in chosen.items() if name not in out}
    if not taken and (names or wanted):
        msg = f"None of the nodes that were chosen takes pods: {told(out)}."
        raise ChoiceError(msg)
    hostnames = tuple(_labels(node).get(HOSTNAME) or name for name, node in taken.items())
    return Eligible(tuple(taken), hostnames, out)


def told(left_out: Mapping[str, str]) -> str:
    """Return the nodes that do not count, each with its reason."""
    return _few([f"{name} is {why}" for name, why in left_out.items()])


def _few(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _MANY} more" if len(texts) > _MANY else ""
    return (", ".join(texts[:_MANY]) or "none") + more


def _labels(node: Mapping[str, Any]) -> dict[str, str]:
    return dict(node["metadata"].get("labels") or {})
