"""junit.xml: one test suite for a run, one test case for a drill, its checks as properties of the case.

How a drill ends up in JUnit's four words:

* as expected (a failing control included): a passed case;
* `fail`, or a control that did not behave: `<failure>` with the text of the findings concerned;
* `unknown` and `error`, something left behind, interrupted: `<error>` whose type is that word. Not knowing is never a pass;
* `unsupported`: `<skipped>`.

Checks are no cases of their own: a failing control would then count as a failure wherever cases are only counted.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from harness.model.outcome import ExitCode, Outcome
from harness.report.text import xml_clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model.report import DrillReport, Finding, RunReport


def junit(run: RunReport) -> str:
    """Return the text of junit.xml."""
    suites = ET.Element("testsuites", name="rollout-drill")
    suite = ET.SubElement(suites, "testsuite", name=xml_clean(run.run_id))
    for drill in run.drills:
        _case(suite, drill)
    _count(suite)
    if run.drills:
        suite.set("timestamp", xml_clean(run.drills[0].started_at))
    for key in ("tests", "failures", "errors", "skipped", "time"):
        suites.set(key, suite.get(key, "0"))
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, drill: DrillReport) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        classname=xml_clean(f"scenarios.{drill.scenario.name}"),
        name=xml_clean(drill.scenario.variant),
        time=f"{drill.seconds:.3f}",
    )
    properties = ET.SubElement(case, "properties")
    facts = {
        "run": drill.run_id,
        "drill": drill.drill_id,
        "subject": drill.environment.subject_text,
        "kubernetes": drill.environment.kubernetes_text,
        "nodes": drill.environment.simulated or "real",
        "outcome": drill.verdict.outcome,
        "as-expected": str(drill.verdict.as_expected).lower(),
    }
    facts |= {f"check.{f.id}": f"{f.outcome}: {f.evidence}" for f in drill.findings}
    for name, value in facts.items():
        ET.SubElement(properties, "property", name=xml_clean(name), value=xml_clean(value))
    _result(case, drill)


def _result(case: ET.Element, drill: DrillReport) -> None:
    verdict = drill.verdict
    if verdict.exit_code is ExitCode.OK:
        return
    bad = [f for f in drill.findings if f.outcome is not f.expected]
    if verdict.exit_code is ExitCode.FAILED:
        _element(case, "failure", Outcome.FAIL, verdict.sentence, bad)
    elif verdict.outcome is Outcome.UNSUPPORTED:
        ET.SubElement(case, "skipped", message=xml_clean(verdict.sentence))
    else:
        types = {
            ExitCode.INTERRUPTED: "interrupted",
            ExitCode.LEFT_BEHIND: "left-behind",
            ExitCode.ERROR: Outcome.ERROR,
        }
        word = types.get(verdict.exit_code, Outcome.UNKNOWN)
        _element(case, "error", word, verdict.sentence, bad)


def _element(
    case: ET.Element, tag: str, word: str, sentence: str, findings: Sequence[Finding]
) -> None:
    element = ET.SubElement(case, tag, type=str(word), message=xml_clean(sentence))
    lines = [f"{f.outcome} {f.id}: {f.title}\n  {f.evidence}" for f in findings]
    lines += [f"{note.kind}: {note.text}" for f in findings for note in f.notes]
    element.text = xml_clean("\n".join(lines))


def _count(suite: ET.Element) -> None:
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for tag, key in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(key, str(sum(1 for case in cases if case.find(tag) is not None)))
    suite.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")
