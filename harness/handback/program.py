"""The program that answers for a version of Flagger: a main of ours, compiled among that version's sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.data import data_path
from harness.handback.told import HandbackError
from harness.programs.errors import ProgramError
from harness.programs.from_module import ModuleProgram, build_from_module
from harness.programs.modules import Module
from harness.programs.threads import in_thread
from harness.subjects.base import SubjectError
from harness.subjects.names import parse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODULE: Final = "github.com/fluxcd/flagger"
_NAME: Final = "legacy-hash"
_SECONDS: Final = 90
"""What building it takes on two cores with nothing cached; most of it is Kubernetes' client."""


class TargetNameError(HandbackError):
    """`--to` names nothing that can be handed back to: the user's to mend."""


def version_of(name: str) -> str:
    """Return the version in a subject's name, e.g. `1.44.0` of `flagger@1.44.0`.

    Raises TargetNameError for other subjects: only a released version has sources that can be asked.
    """
    try:
        subject = parse(name)
    except SubjectError:
        subject = None
    if subject is None or not subject.version:
        msg = (
            f"{name!r}: name the released version of Flagger that takes over, as in flagger@1.44.0; its sources say which hash"
            " it needs, so neither a program file nor another controller can be named."
        )
        raise TargetNameError(msg)
    return subject.version


def program_for(version: str) -> ModuleProgram:
    """Return what is to be built for a version such as `1.44.0`."""
    source = data_path("fixtures", "go", _NAME, "main.go")
    return ModuleProgram(
        Module(MODULE, f"v{version}"), _NAME, f"cmd/{_NAME}", _SECONDS, sources=(source,)
    )


async def obtain(version: str, progress: Callable[[str], None]) -> Path:
    """Return the program for a version, built if need be, which takes a minute or two once.

    Raises HandbackError: no such version, no Go, or sources too old or too new to be asked this way.
    """
    wanted = program_for(version)
    try:
        return await in_thread(
            lambda cancelled: build_from_module(
                wanted,
                progress,
                cancelled,
                otherwise="let the Canaries start their analyses one by one, suspended until their turn",
            )
        )
    except ProgramError as error:
        msg = f"Flagger {version} cannot be asked for its hashes: {error}"
        raise HandbackError(msg) from error
