"""`drill judge`: the verdict again, from a recording, without a cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.errors import UsageProblemError


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("judge")(judge)


def judge(
    timeline: Annotated[
        Path, typer.Argument(metavar="TIMELINE", help="A timeline.jsonl, or - for standard input.")
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Write report.md, report.json, junit.xml and timeline.svg there.",
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the whole report instead of a summary.")
    ] = False,
) -> int:
    """Judge a recording again; the same recording always gets the same report."""
    from harness.checks.judge import judge as judge_timeline
    from harness.model.report import RunReport
    from harness.model.timeline import TimelineError, parse
    from harness.report.markdown import markdown as render
    from harness.report.summary import summary
    from harness.run.artefacts import write_drill

    try:
        text = sys.stdin.read() if str(timeline) == "-" else timeline.read_text(encoding="utf-8")
        report = judge_timeline(parse(text.splitlines()))
    except (TimelineError, UnicodeDecodeError) as error:
        msg = f"{timeline}: {error}"
        raise UsageProblemError(msg) from error
    except (FileNotFoundError, IsADirectoryError) as error:
        msg = f"{timeline}: {error.strerror}"
        raise UsageProblemError(msg) from error
    if out is not None:
        write_drill(out, report)
    text = render(report) if markdown else summary(RunReport(report.run_id, (report,)))
    typer.echo(text, nl=False)
    return report.verdict.exit_code
