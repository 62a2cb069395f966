"""`drill matrix`: the table of drills for which values were varied, again, from their reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.errors import UsageProblemError
from harness.cli.out import check_out
from harness.model.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report.matrix_model import Matrix


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("matrix")(matrix)


def matrix(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...",
            help="Folders of runs, or folders that hold those.",
            show_default=False,
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write matrix.md and matrix.json there."),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print matrix.md instead of the bare table.")
    ] = False,
) -> int:
    """Make the table of drills for which values were varied (`drill run --across`) from their reports.

    With several folders, or one that holds several runs, it is one table of all; rows and columns come in the order of the
    folders. Of several reports of one cell the latest
    counts, so that a cell that was run again replaces itself. Exit code 5: none of the drills has a value that was varied.
    """
    from harness.report.matrix_markdown import matrix_markdown, matrix_text
    from harness.run.artefacts import MATRIX, write_matrix

    if out is not None:
        check_out(out, None)  # it is made again from what is there
    found = _found(folders, out or folders[0])
    if found is None:
        typer.echo("no report of a drill with a value that was varied", err=True)
        return ExitCode.NOTHING_SELECTED
    typer.echo(matrix_markdown(found) if markdown else matrix_text(found), nl=False)
    if out is not None:
        write_matrix(out, found)
        typer.echo(f"matrix: {out / MATRIX}", err=markdown)
    return found.exit_code


def _found(folders: Sequence[Path], beside: Path) -> Matrix | None:
    from harness.report.matrix import matrix
    from harness.report.read_back import ReportError
    from harness.run.matrix import gather

    for folder in folders:
        if not folder.is_dir():
            msg = f"{folder}: is no folder"
            raise UsageProblemError(msg)
    try:
        return matrix(gather(folders, beside))
    except ReportError as error:
        raise UsageProblemError(str(error)) from error
