"""From names and options to loaded scenarios and their subjects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.model.names import BUNDLED

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

    Its subjects' names, the cluster, the versions of Kubernetes, and a cluster of its own where it needs one.
    """
    from harness.clusters.base import ChoiceError
    from harness.clusters.select import ALONE, parse
    from harness.subjects.select import check_subject

    for subject in plan.subjects:
        check_subject(subject)
    choice = parse(plan.cluster)
    if plan.alone and choice != ALONE:
        raise ChoiceError(needs_own_cluster(plan))
    if choice.kind == "embedded":
        from harness.clusters.embedded.components import kubernetes_version

        for version in filter(None, (plan.resolved.kubernetes, *plan.kubernetes)):
            kubernetes_version(version)


def needs_own_cluster(plan: Plan) -> str:
    """Return the sentence for a drill that changes, on a cluster that others use, what they share."""
    upgrades = plan.kubernetes or len(plan.subjects) > 1
    what = "upgrades what" if upgrades else "changes the nodes that"
    return (
        f"{plan.resolved.id} {what} drills on one cluster share, so it runs on a cluster of its own only: "
        f"--cluster embedded, not {plan.cluster}."
    )


def select(
    names: Sequence[str],
    folders: Sequence[Path],
    variants: Sequence[str] = (),
    sets: Mapping[str, str] | None = None,
    across: Mapping[str, Sequence[Any]] | None = None,
) -> list[tuple[Loaded, Resolved]]:
    """Return the drills of the scenarios called `names` (all, when there are none), of all variants or of `variants`.

    With `across`, each of them for every combination of these values, as if they stood in the scenario's matrix. A name may carry its variant, as in `node-spread-blue-green[with-key]`. Raises ScenarioError for a scenario that is unknown or
    broken, an unknown variant, or a value that does not fit.
    """
    from harness.scenario.catalogue import find, split

    own = [split(name) for name in names]
    loaded = find([name for name, _ in own], [Path(folder) for folder in folders])
    wanted: dict[str, list[str]] = {}
    for (_, variant), scenario in zip(own, loaded, strict=False):
        if variant is not None:
            wanted.setdefault(scenario.name, []).append(variant)
    return [
        (scenario, drill)
        for scenario in loaded
        for drill in variants_of(scenario, wanted.get(scenario.name, variants), sets, across)
    ]


def variants_of(
    loaded: Loaded,
    variants: Sequence[str],
    sets: Mapping[str, str] | None = None,
    across: Mapping[str, Sequence[Any]] | None = None,
) -> list[Resolved]:
    """Return the drills of one scenario, of all variants when none is named; each once."""
    wanted: Sequence[str | None] = variants or [None]
    chosen = [drill for variant in wanted for drill in loaded.resolve(variant, sets, across)]
    return list({drill.id: drill for drill in chosen}.values())
