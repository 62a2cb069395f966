"""Who refused an object, told from the API server's words, and where a report says it."""

from __future__ import annotations

import pytest

from harness.checks.judge import judge
from harness.checks.refusals import explained, refusal, refused
from harness.data import data_path
from harness.model.timeline import StepState, Timeline, parse
from harness.report.markdown import markdown
from harness.tests import stories

RECORDED = data_path("fixtures", "timelines", "recorded")

TEXTS = {
    'pods "w" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=4, limited: pods=4': (
        "quota",
        "refused by ResourceQuota pods: pods=1 asked for, pods=4 used, pods=4 allowed. Raise the quota",
    ),
    'pods "w" is forbidden: failed quota: q: must specify limits.cpu for: web': (
        "quota",
        "refused by ResourceQuota q: containers have to state limits.cpu for: web. State it",
    ),
    'pods "w" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true (pod or container "w" must set it)': (
        "pod-security",
        "refused by Pod Security (restricted:latest): runAsNonRoot != true (pod or",
    ),
    'admission webhook "deny.example" denied the request: not on fridays': (
        "webhook",
        "refused by admission webhook deny.example: not on fridays. Make the manifest",
    ),
    'Internal error occurred: failed calling webhook "v.example": failed to call webhook: Post "https://x": refused': (
        "webhook-silent",
        "refused by admission webhook v.example, which gave no answer: failed to call webhook: Post",
    ),
    "pods \"w\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no": (
        "policy",
        "refused by ValidatingAdmissionPolicy p: no. Make the manifest",
    ),
    'pods "w" is forbidden: [maximum cpu usage per Container is 1, but limit is 2]': (
        "limits",
        "refused by a LimitRange of the namespace: maximum cpu usage per Container is 1, but limit is 2. State",
    ),
    'pods "w" is forbidden: no PriorityClass with name high was found': (
        "priority",
        "refused by the API server: there is no PriorityClass high.",
    ),
    'pods is forbidden: User "me" cannot create resource "pods" in API group "" in the namespace "x"': (
        "rights",
        'refused by the API server: me may not create resource "pods" in API group "". `drill doctor`',
    ),
}


@pytest.mark.parametrize("message", TEXTS)
def test_each_sort_is_told_apart(message: str) -> None:
    sort, text = TEXTS[message]
    found = refusal(message)
    assert found is not None
    assert found.sort == sort
    assert found.text.startswith(text)
    assert explained(message).startswith(f"{message.rstrip('.')} (refused by ")


@pytest.mark.parametrize(
    "message", ["", "the object has been modified", "0/3 nodes are available: 3 Insufficient cpu."]
)
def test_what_is_no_refusal_stays_as_it_is(message: str) -> None:
    assert refusal(message) is None
    assert explained(message) == message


def test_a_long_message_is_cut() -> None:
    long = f'violates PodSecurity "restricted:latest": {"x" * 5000}'
    found = refusal(long)
    assert found is not None
    assert len(found.text) < 600


def recording() -> Timeline:
    text = (RECORDED / "quota-refusal-too-few.jsonl").read_text(encoding="utf-8")
    return parse(text.splitlines())


def test_the_finding_that_saw_it_says_who_refused() -> None:
    report = judge(recording())
    noted = {finding.id: finding.notes for finding in report.findings if finding.notes}
    assert set(noted) == {"never-blocked"}
    (note,) = noted["never-blocked"]
    assert note.kind == "REFUSED"
    assert "was refused a pod by ResourceQuota pods: pods=1 asked for, pods=4 used" in note.text
    assert "never-blocked failed (REFUSED: " in report.verdict.sentence
    assert f"> **REFUSED:** {note.text.split('=')[0]}" in markdown(report)


def test_where_nothing_went_wrong_nobody_was_in_the_way() -> None:
    story = stories.promotion()
    failure = {
        "type": "ReplicaFailure",
        "status": "True",
        "message": "pods is forbidden: exceeded quota: few, requested: pods=1, used: pods=4, limited: pods=4",
    }
    timeline = story.timeline()
    assert refused(timeline) == []
    story.at(294.01).deployment("web-primary", stories.NEW, number=2, conditions=[failure])
    assert [one.refusal.sort for one in refused(story.timeline())] == ["quota"]


def test_a_step_that_was_refused_is_told_too() -> None:
    story = stories.promotion()
    detail = 'POST /x: 403 Forbidden: admission webhook "deny.example" denied the request: no'
    story.at(1.0).add(StepState, step="initialise", state="failed", detail=detail)
    (one,) = refused(story.timeline())
    assert one.note.text.startswith(
        "Step initialise was refused by admission webhook deny.example: no."
    )
