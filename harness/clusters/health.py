"""What a survey of a cluster means for drills: one row for each topic, in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from harness.clusters import admission, health_namespace, rights
from harness.clusters.eligible import told

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.clusters.eligible import Eligible
    from harness.clusters.rights import Need
    from harness.clusters.survey import Survey
    from harness.model.timeline import JSON

State = Literal["ok", "note", "missing", "unknown"]
"""`note`: drills run, and somebody should know; `missing`: they do not; `unknown`: it may not be read."""
CUTOFF: Final = -10
_AUTOSCALERS: Final = ("cluster-autoscaler", "karpenter")
_KARPENTER: Final = "karpenter.sh"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of `drill doctor`."""

    topic: str
    state: State
    text: str


def rows(
    survey: Survey,
    eligible: Eligible,
    needed: Sequence[Need],
    *,
    crds: Sequence[JSON],
    labels: Mapping[str, str],
    priority: str,
) -> list[Row]:
    """Return everything that there is to say, topic by topic.

    Args:
        survey: What was seen.
        eligible: The nodes that drills would use.
        needed: The rights that were asked for (`survey.allowed` has the answers).
        crds: The CRDs of the subject.
        labels: Of a namespace that a drill makes for itself; not used where one was named.
        priority: Name of the PriorityClass of drill pods, and whether it is there and right: `ok`, `wrong`, or empty.
    """
    own = _labels_of(survey, labels)
    return [
        Row("Kubernetes", "ok", survey.kubernetes),
        *_rights(survey, needed),
        *(_crd(survey, crd) for crd in crds),
        _nodes(eligible),
        _autoscaler(survey),
        *_priority(survey, needed, priority),
        *(Row(topic, state, text) for topic, state, text in health_namespace.rows(survey)),
        *_admission(survey, own),
    ]


def _labels_of(survey: Survey, labels: Mapping[str, str]) -> Mapping[str, str]:
    if not survey.namespace:
        return labels
    found = survey.seen("namespaces") or ()
    return next((dict(one["metadata"].get("labels") or {}) for one in found), labels)


def _rights(survey: Survey, needed: Sequence[Need]) -> Iterator[Row]:
    lacking = rights.missing(needed, survey.allowed)
    fatal = [need for need in lacking if not need.without]
    where = f"in namespace {survey.namespace}" if survey.namespace else "cluster-wide"
    if not fatal:
        asked = sum(need.right in survey.allowed for need in needed)
        text = f"{asked} of {len(needed)} asked for, {where}: all that drills need"
        yield Row("rights", "ok" if asked == len(needed) else "unknown", text)
    for text in rights.told(fatal):
        yield Row("rights", "missing", text)
    for without in dict.fromkeys(need.without for need in lacking if need.without):
        group = [need for need in lacking if need.without == without]
        verbs = ", ".join(dict.fromkeys(need.right.verb for need in group))
        yield Row("rights", "note", f"no right to {verbs} {group[0].right.what}: {without}")


def _crd(survey: Survey, crd: JSON) -> Row:
    name = str(crd["metadata"]["name"])
    topic = f"CRD {name.partition('.')[0]}"
    there = next(
        (
            one
            for one in survey.objects.get("customresourcedefinitions", ())
            if one["metadata"]["name"] == name
        ),
        None,
    )
    group = str(crd["spec"]["group"])
    if there is None and "customresourcedefinitions" in survey.refused:
        if group in survey.served:
            return Row(topic, "unknown", f"group {group} is served; the CRD itself may not be read")
        return Row(
            topic,
            "missing",
            f"group {group} is not served, and CRDs may not be read: have {name} installed",
        )
    if there is None:
        if survey.namespace:
            return Row(
                topic,
                "missing",
                "not there, and drills in one namespace make none: have it installed",
            )
        return Row(topic, "ok", "not there; drills make it, and remove it afterwards")
    lacking = lacking_fields(there, crd)
    if not lacking:
        return Row(topic, "ok", "there, and has every field; it is used as it is, never altered")
    shown = ", ".join(lacking[:4]) + (f" and {len(lacking) - 4} more" if len(lacking) > 4 else "")  # noqa: PLR2004 - a few
    return Row(
        topic,
        "note",
        f"there, but another version: without {shown}; what a scenario says there is dropped by the API server",
    )


def lacking_fields(there: JSON, wanted: JSON) -> list[str]:
    """Return the paths of fields that one CRD has in a version and another lacks in it; without what lies below a lacking one."""
    have = {v["name"]: set(_fields(v)) for v in there["spec"].get("versions") or ()}
    lacking: list[str] = []
    for version in wanted["spec"]["versions"]:
        for path in (one for one in _fields(version) if not one.endswith("*")):
            known = have.get(version["name"], set())
            if (
                path not in known
                and not _is_open(path, known)
                and not any(path.startswith(f"{one}.") for one in lacking)
            ):
                lacking.append(path)
    return lacking


def _is_open(path: str, known: set[str]) -> bool:
    """Whether a CRD keeps whatever stands at this path, since it keeps what it does not know somewhere above."""
    parts = path.split(".")
    return any(".".join((*parts[:i], "*")) in known for i in range(len(parts)))


def _fields(version: JSON) -> Iterator[str]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    yield from _below(schema, "")


def _below(schema: JSON, path: str) -> Iterator[str]:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        yield f"{path}.*" if path else "*"
    for name, inner in (schema.get("properties") or {}).items():
        below = f"{path}.{name}" if path else name
        yield below
        if isinstance(inner, dict):
            yield from _below(inner, below)
    items = schema.get("items")
    if isinstance(items, dict):
        yield from _below(items, path)


def _nodes(eligible: Eligible) -> Row:
    out = f"; left out: {told(eligible.left_out)}" if eligible.left_out else ""
    if not eligible.seen:
        if eligible.names:
            return Row(
                "nodes",
                "unknown",
                f"may not be listed; {', '.join(eligible.names)} were named and are taken for usable",
            )
        return Row(
            "nodes", "unknown", "may not be listed: name those that drills may use with --nodes"
        )
    if not eligible.names:
        return Row("nodes", "missing", f"none takes pods{out}")
    return Row("nodes", "ok", f"{len(eligible.names)} take pods: {', '.join(eligible.names)}{out}")


def autoscalers(survey: Survey) -> list[str]:
    """Return what adds nodes by itself here, each with how it shows."""
    found: dict[str, str] = {}
    for node in survey.seen("nodes") or ():
        if any(key.startswith(f"{_KARPENTER}/") for key in node["metadata"].get("labels") or {}):
            found.setdefault("Karpenter", "by a label of its nodes")
    if _KARPENTER in survey.served:
        found.setdefault("Karpenter", "by its types")
    for deployment in survey.seen("deployments") or ():
        metadata = deployment["metadata"]
        label = (metadata.get("labels") or {}).get("app.kubernetes.io/name", "")
        for known in _AUTOSCALERS:
            if known in metadata["name"] or known in label:
                name = "Karpenter" if known == "karpenter" else "a cluster autoscaler"
                found.setdefault(name, f"by Deployment {metadata['namespace']}/{metadata['name']}")
    if survey.objects.get("configmaps"):
        found.setdefault("a cluster autoscaler", "by its status in kube-system")
    return [f"{name} ({how})" for name, how in sorted(found.items())]


def _autoscaler(survey: Survey) -> Row:
    found = autoscalers(survey)
    if found:
        text = (
            f"{' and '.join(found)}: a node that it adds for a pod without a place would let a control pass, so pods are bound to the "
            "nodes that are there when a drill begins"
        )
        return Row("autoscaler", "note", text)
    if survey.seen("deployments") is None or survey.seen("nodes") is None:
        return Row("autoscaler", "unknown", "none seen, but Deployments or nodes may not be listed")
    return Row("autoscaler", "ok", "none seen")


def _priority(survey: Survey, needed: Sequence[Need], priority: str) -> Iterator[Row]:
    topic = "priority"
    lacking = [
        n for n in rights.missing(needed, survey.allowed) if n.right.resource == "priorityclasses"
    ]
    if priority == "wrong":
        yield Row(
            topic,
            "note",
            "a PriorityClass of our name is there with other values, so drill pods have the cluster's default",
        )
    elif priority == "ok" or (not lacking and not survey.namespace):
        yield Row(
            topic, "ok", f"drill pods never preempt others, and have a priority below {CUTOFF}"
        )
    elif not lacking:
        yield Row(
            topic,
            "note",
            "drills in one namespace make no PriorityClass, so drill pods have the cluster's default",
        )


def _admission(survey: Survey, labels: Mapping[str, str]) -> Iterator[Row]:
    kinds = ("webhookconfigurations", "admissionpolicies", "admissionpolicybindings")
    refused = [name for name in survey.refused if name.endswith(kinds)]
    if refused:
        yield Row("admission", "unknown", f"{', '.join(refused)} may not be listed")
    found = admission.gates(survey.objects, labels)
    for gate in found:
        yield Row("admission", "note", gate.text)
    if not found and not refused:
        yield Row("admission", "ok", "no webhook and no policy looks at drills' objects")
