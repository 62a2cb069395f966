"""From names and options to loaded scenarios and their subjects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.model.names import BUNDLED, IN_CLUSTER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.model.scenario import Resolved
    from harness.run.plan import Plan
    from harness.scenario.loaded import Loaded


class SelectionError(Exception):
    """Options that do not go with a scenario; the message is one sentence for the user."""


def subject_of(resolved: Resolved, asked: str | None, otherwise: str = BUNDLED) -> str:
    """Return the subject that a drill begins with: what was `asked` for, else the scenario's own, else `otherwise`.

    Raises SelectionError when one was asked for and the scenario names its own.
    """
    if resolved.subject is None:
        return asked or otherwise
    if asked is not None:
        names = ", then ".join(name for name in resolved.subjects if name is not None)
        msg = f"{resolved.id} names its subject itself ({names}), so none can be chosen for it: leave out {asked!r}"
        raise SelectionError(msg)
    return resolved.subject


def check(plan: Plan) -> None:
    """Raise ChoiceError or SubjectError when a drill asks for what there is not; looked at before anything is begun.

    Its subjects' names, the cluster (a protected context is none), the versions of Kubernetes, and a cluster of its own where it needs one.
    """
    from harness.clusters.base import ChoiceError
    from harness.clusters.protected import refuse_protected
    from harness.clusters.select import ALONE, parse
    from harness.subjects.select import check_subject

    for subject in plan.subjects:
        check_subject(subject)
    choice = parse(plan.cluster)
    if choice.kind == "context":
        refuse_protected(choice.name)
    if why := no_pod(plan):
        raise ChoiceError(why)
    if plan.alone and choice != ALONE:
        raise ChoiceError(needs_own_cluster(plan))
    if choice.kind == "embedded":
        from harness.clusters.embedded.components import kubernetes_version

        for version in filter(None, (plan.resolved.kubernetes, *plan.kubernetes)):
            kubernetes_version(version)


def no_pod(plan: Plan) -> str:
    """Return why a subject that runs as a pod cannot run there; empty when it can.

    On an embedded cluster a scenario that names such a subject itself is `unsupported`, like one that requires real pods.
    """
    from harness.clusters.select import parse

    if not plan.in_cluster:
        return ""
    kind = parse(plan.cluster).kind
    if kind == "embedded" and plan.resolved.subject is None:
        return f"{IN_CLUSTER} runs as a pod, and on an embedded cluster no container runs: use --cluster kind, k3s or context:NAME, or --subject {BUNDLED}."
    if kind == "context" and not plan.controller_image:
        return f"{IN_CLUSTER} on a cluster of your own needs an image that it can pull, or has: --controller-image IMAGE; `drill controller image` makes one."
    return ""


def needs_own_cluster(plan: Plan) -> str:
    """Return the sentence for a drill that changes, on a cluster that others use, what they share."""
    upgrades = plan.kubernetes or len(plan.subjects) > 1
    what = "upgrades what" if upgrades else "changes the nodes that"
    return (
        f"{plan.resolved.id} {what} drills on one cluster share, so it runs on a cluster of its own only: "
        f"--cluster embedded, not {plan.cluster}."
    )


def select(  # noqa: PLR0917 - what a selection consists of
    names: Sequence[str],
    folders: Sequence[Path],
    variants: Sequence[str] = (),
    sets: Mapping[str, str] | None = None,
    across: Mapping[str, Sequence[Any]] | None = None,
    eligible: int | None = None,
) -> list[tuple[Loaded, Resolved]]:
    """Return the drills of the scenarios called `names` (all, when there are none), of all variants or of `variants`.

    With `across`, each of them for every combination of these values, as if they stood in the scenario's matrix. `eligible` is
    the number of nodes on a cluster that is not ours, for scenarios whose replicas follow from it. A name may carry its variant, as in `node-spread-blue-green[with-key]`. Raises ScenarioError for a scenario that is unknown or
    broken, an unknown variant, or a value that does not fit.
    """
    from harness.scenario.catalogue import find, split

    dirs = [Path(folder) for folder in folders]
    own = [split(name) for name in names]
    loaded = find(list(dict.fromkeys(name for name, _ in own)), dirs)
    # A scenario may be named several times, each time with another variant.
    wanted: dict[str, list[str | None]] = {}
    for name, variant in own:
        known = next((one.name for one in loaded if one.name == name), None)
        wanted.setdefault(known or find([name], dirs)[0].name, []).append(variant)
    return [
        (scenario, drill)
        for scenario in loaded
        for drill in variants_of(
            scenario, _asked(wanted.get(scenario.name, [None]), variants), sets, across, eligible
        )
    ]


def _asked(own: Sequence[str | None], variants: Sequence[str]) -> list[str]:
    """Return the variants that stand with a scenario's name; where it stands alone once, those that are asked of all."""
    return list(variants) if None in own else [one for one in own if one is not None]


def variants_of(
    loaded: Loaded,
    variants: Sequence[str],
    sets: Mapping[str, str] | None = None,
    across: Mapping[str, Sequence[Any]] | None = None,
    eligible: int | None = None,
) -> list[Resolved]:
    """Return the drills of one scenario, of all variants when none is named; each once."""
    wanted: Sequence[str | None] = variants or [None]
    chosen = [
        drill for variant in wanted for drill in loaded.resolve(variant, sets, across, eligible)
    ]
    return list({drill.id: drill for drill in chosen}.values())
