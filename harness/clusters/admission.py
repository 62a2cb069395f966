"""Which admission webhooks and policies would look at a drill's objects, told from their configurations alone.

Pure functions over raw objects. What a webhook does to an object only it knows; here is who is asked, and what happens when it is silent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.model.timeline import JSON

_TYPES: Final = (
    ("", "pods"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "daemonsets"),
    ("", "services"),
    ("flagger.app", "canaries"),
)
"""Group and plural of what drills make, or have made for them."""
_OPERATIONS: Final = frozenset({"CREATE", "UPDATE", "*"})


@dataclass(frozen=True, slots=True)
class Gate:
    """Somebody who is asked about a drill's objects."""

    name: str
    mutates: bool
    """Whether it may change them, as one that injects sidecars does."""
    types: tuple[str, ...]
    strict: bool
    """Whether objects are refused when it does not answer, or fails."""
    policy: bool = False
    """An expression within the API server, as opposed to a webhook."""

    @property
    def text(self) -> str:
        """The gate in words."""
        kind = "policy" if self.policy else "webhook"
        does = "may change" if self.mutates else "may refuse"
        silent = (
            "" if self.policy or not self.strict else "; without an answer of it nothing is made"
        )
        return f"{kind} {self.name} {does} {', '.join(self.types)}{silent}"


def gates(configurations: Mapping[str, Sequence[JSON]], labels: Mapping[str, str]) -> list[Gate]:
    """Return who would be asked about a drill's objects in a namespace with these labels.

    `configurations`: plural of the admission group -> its objects.
    """
    found: list[Gate] = []
    for plural, mutates in (
        ("mutatingwebhookconfigurations", True),
        ("validatingwebhookconfigurations", False),
    ):
        for configuration in configurations.get(plural) or ():
            for hook in configuration.get("webhooks") or ():
                types = _types(hook, hook.get("rules") or (), labels)
                if types:
                    strict = hook.get("failurePolicy", "Fail") == "Fail"
                    found.append(Gate(str(hook.get("name", "?")), mutates, types, strict))
    for plural, mutates in (
        ("mutatingadmissionpolicies", True),
        ("validatingadmissionpolicies", False),
    ):
        bindings = configurations.get(plural.removesuffix("ies") + "ybindings") or ()
        for policy in configurations.get(plural) or ():
            name = str(policy["metadata"]["name"])
            bound = [one for one in bindings if _spec(one).get("policyName") == name]
            match = _spec(policy).get("matchConstraints") or {}
            types = _types(match, match.get("resourceRules") or (), labels)
            if types and any(_binds(one, labels) for one in bound):
                found.append(Gate(name, mutates, types, strict=True, policy=True))
    return found


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects these labels; none, or an empty one, selects everything."""
    given = selector or {}
    if any(labels.get(key) != value for key, value in (given.get("matchLabels") or {}).items()):
        return False
    return all(_holds(row, labels) for row in given.get("matchExpressions") or ())


def _holds(row: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value = labels.get(str(row.get("key")))
    values = row.get("values") or ()
    match row.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False


def _types(
    match: Mapping[str, Any], rules: Sequence[Mapping[str, Any]], labels: Mapping[str, str]
) -> tuple[str, ...]:
    # Labels of the objects are a scenario's; one that wants a label of its own is not asked about objects without it.
    if not selects(match.get("namespaceSelector"), labels) or not selects(
        match.get("objectSelector"), {}
    ):
        return ()
    return tuple(dict.fromkeys(name for rule in rules for name in _covered(rule)))


def _covered(rule: Mapping[str, Any]) -> Iterator[str]:
    if not _OPERATIONS.intersection(rule.get("operations") or ()) or rule.get("scope") == "Cluster":
        return
    groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
    for group, plural in _TYPES:
        named = {plural, "*", "*/*"}.intersection(resources)
        if named and ("*" in groups or group in groups):
            yield plural


def _binds(binding: JSON, labels: Mapping[str, str]) -> bool:
    spec = _spec(binding)
    actions = spec.get("validationActions")
    match = spec.get("matchResources") or {}
    return (actions is None or "Deny" in actions) and selects(
        match.get("namespaceSelector"), labels
    )


def _spec(obj: JSON) -> dict[str, Any]:
    return dict(obj.get("spec") or {})
