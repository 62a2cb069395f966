"""From names and options to loaded scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.model.scenario import Resolved
    from harness.scenario.loaded import Loaded


def select(
    names: Sequence[str],
    folders: Sequence[Path],
    variants: Sequence[str] = (),
    sets: Mapping[str, str] | None = None,
) -> list[tuple[Loaded, Resolved]]:
    """Return the drills of the scenarios called `names` (all, when there are none), of all variants or of `variants`.

    A name may carry its variant, as in `node-spread-blue-green[with-key]`. Raises ScenarioError for a scenario that is unknown or
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
        for drill in variants_of(scenario, wanted.get(scenario.name, variants), sets)
    ]


def variants_of(
    loaded: Loaded, variants: Sequence[str], sets: Mapping[str, str] | None = None
) -> list[Resolved]:
    """Return the drills of one scenario, of all variants when none is named; each once."""
    wanted: Sequence[str | None] = variants or [None]
    chosen = [drill for variant in wanted for drill in loaded.resolve(variant, sets)]
    return list({drill.id: drill for drill in chosen}.values())
