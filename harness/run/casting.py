"""The subjects that a run needs: each obtained once, before any cluster is opened, and made anew for each drill."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING

from harness.clusters.addons import chosen
from harness.clusters.base import SIMULATED_IMAGE, ClusterError
from harness.programs.threads import in_thread
from harness.run.addons import needed
from harness.run.beside import must_be_possible
from harness.subjects.base import SubjectError, crd_digest
from harness.subjects.select import make_subject

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.clusters.addons import AddOn
    from harness.model.timeline import JSON
    from harness.run.plan import Plan
    from harness.subjects.base import Subject


class Casting:
    """Gets subjects' programs; `say` takes lines of progress, since a build takes minutes."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._had: dict[str, Subject] = {}
        self._addons: dict[str, list[JSON]] = {}
        self._refused: dict[str, str] = {}
        """Why there is no such add-on here, by its name."""
        self._getting = asyncio.Lock()

    async def obtain(self, plan: Plan) -> None:
        """Get the programs of all subjects of a drill, what its handbacks need, and the CRDs of its add-ons.

        Raises SubjectError, and ClusterError for an add-on. On a cluster that is not ours there is nothing to get for add-ons.
        """
        must_be_possible(plan)
        for addon in chosen(plan.addons) if plan.embedded else ():
            async with self._getting:
                await self._addon(addon)
        for version in plan.handbacks:
            async with self._getting:
                await self._handback(version)
        if plan.resolved.metrics is not None:
            async with self._getting:
                await self._prometheus()
        for name in plan.subjects:
            # One after the other: two builds at once take longer than one after the other, and say less.
            async with self._getting:
                if name not in self._had:
                    subject = make_subject(name, _image(plan))
                    await subject.obtain(self._say)
                    self._had[name] = subject

    async def _addon(self, addon: AddOn) -> None:
        if addon.name in self._addons:
            return
        if addon.name in self._refused:
            # The next drill need not wait for what this run cannot have.
            raise ClusterError(self._refused[addon.name])
        try:
            self._addons |= await in_thread(partial(needed, [addon], self._say))
        except ClusterError as error:
            self._refused[addon.name] = str(error)
            raise

    async def _prometheus(self) -> None:
        from harness.programs.errors import ProgramError
        from harness.standins.prometheus_program import obtain

        # Each drill says for itself what it does without one.
        with contextlib.suppress(ProgramError):
            await in_thread(lambda cancelled: obtain(self._say, cancelled))

    async def _handback(self, version: str) -> None:
        from harness.handback.program import obtain
        from harness.handback.told import HandbackError

        try:
            await obtain(version, self._say)
        except HandbackError as error:
            raise SubjectError(str(error)) from error

    async def subjects(self, plan: Plan) -> list[Subject]:
        """Return new subjects for a drill, in the order of their turns. Raises SubjectError."""
        await self.obtain(plan)
        made = [make_subject(name, _image(plan)) for name in plan.subjects]
        for subject in made:
            await subject.obtain(self._say)
        return made

    def crds(self, plan: Plan) -> list[JSON]:
        """Return the CRDs of the subject that a drill begins with; only after `obtain`."""
        return self._had[plan.subject].cluster_objects()

    def archives(self, plan: Plan) -> list[Path]:
        """Return the images of a drill's subjects that are in no registry; only after `obtain`."""
        found = (getattr(self._had[name], "archive", None) for name in plan.subjects)
        return list(dict.fromkeys(one for one in found if one is not None))

    def roles(self, plan: Plan) -> list[JSON]:
        """Return what the subject that a drill begins with has in the drill's namespace, its rights among it; only after `obtain`."""
        return self._had[plan.subject].namespace_objects("drill")

    def addon_crds(self, plan: Plan) -> list[JSON]:
        """Return the CRDs of a drill's add-ons, none on a cluster that is not ours; only after `obtain`."""
        return [crd for name in plan.addons for crd in self._addons.get(name, ())]

    def digest(self, plan: Plan) -> str:
        """Return what subjects with the same CRDs have in common; only after `obtain`."""
        return crd_digest(self._had[plan.subject])


def _image(plan: Plan) -> str:
    """Return the image of a controller that runs as a pod; empty: one has to be made."""
    # On an embedded cluster no container runs, and the drill is not begun.
    return plan.controller_image or (SIMULATED_IMAGE if plan.embedded else "")
