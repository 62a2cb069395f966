"""From a validated file to what the runner and the timeline use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.model.outcome import Outcome
from harness.model.resolved import (
    Action,
    ApplyAsStep,
    ApplyStep,
    Check,
    CheckKind,
    DeleteStep,
    DoneWhen,
    Expect,
    GateStep,
    HandbackStep,
    KillStep,
    MetricStep,
    Nodes,
    NodeStep,
    PatchStep,
    Record,
    Resolved,
    ScaleStep,
    StartStep,
    Step,
    StopStep,
    TemplatePatch,
    UpgradeStep,
    WaitStep,
)
from harness.model.scenario_checks import SETTLED
from harness.model.scenario_steps import CHANGING_VERBS, DEFAULT_WITHIN
from harness.model.standins import GateAnswer, Receiver
from harness.model.traffic import Traffic

if TYPE_CHECKING:
    from harness.model.flags import FlagValue
    from harness.model.scenario import ScenarioFile, Spec
    from harness.model.scenario_checks import CheckSpec
    from harness.model.scenario_nodes import NodesSpec
    from harness.model.scenario_standins import AnswerSpec
    from harness.model.scenario_steps import PatchSpec, StepSpec
    from harness.scenario.variants import Combination


def resolve(
    scenario: ScenarioFile, combination: Combination, digest: str, *, adopted: bool = False
) -> Resolved:
    """Return the scenario for one combination of variant and values; `scenario` was rendered for that combination."""
    spec = scenario.spec
    name = scenario.metadata.name
    variant = (spec.variants or {}).get(combination.variant)
    absent = {check.id for check in spec.checks if not check.when}
    return Resolved(
        name=name,
        variant=combination.label,
        id=f"{name}[{combination.label}]",
        question=spec.question,
        setup=spec.setup,
        description=variant.description if variant else "",
        requires=tuple(spec.requires),
        nodes=_nodes(spec.nodes),
        values=dict(combination.values),
        expect=_expect(spec, combination.variant),
        settle=spec.settle,
        manifests=tuple(spec.manifests),
        steps=_steps(spec.steps),
        record=tuple(Record(row.title, row.object, row.path, tuple(row.at)) for row in spec.record),
        checks=tuple(_check(check) for check in spec.checks if check.when),
        done_when=tuple(
            DoneWhen(row.text, tuple(row.by)) for row in spec.done_when if absent.isdisjoint(row.by)
        ),
        digest=digest,
        adopted=adopted,
        subject=(variant.subject if variant else None) or spec.subject,
        kubernetes=spec.kubernetes,
        slow=variant.slow if variant else False,
        receiver=_receiver(spec),
        metrics=None if spec.metrics is None else dict(spec.metrics),
        controller=_controller(spec),
        traffic=_traffic(spec),
    )


def _traffic(spec: Spec) -> Traffic | None:
    given = spec.traffic
    if given is None:
        return None
    first = next((step.name for step in spec.steps if step.when), "")
    return Traffic(
        after=given.after or first,
        service=given.service or "",
        port=given.port or 0,
        path=given.path,
        host=given.host or "",
        rate=given.rate,
        timeout=given.timeout,
        keep_alive=given.keep_alive,
    )


def _nodes(given: NodesSpec) -> Nodes:
    taints = {name: tuple(several) for name, several in given.taints.items()}
    return Nodes(given.count, given.min, given.labels, taints, given.replicas_per_eligible)


def _controller(spec: Spec) -> dict[str, FlagValue] | None:
    given = {name: value for name, value in (spec.controller or {}).items() if value is not None}
    return given or None


def _receiver(spec: Spec) -> Receiver | None:
    if spec.receiver is None:
        return None
    gates, alerts = (
        {name: _answer(given) for name, given in group.items()}
        for group in (spec.receiver.gates, spec.receiver.alerts)
    )
    return Receiver(gates, alerts)


def _answer(given: AnswerSpec) -> GateAnswer:
    return GateAnswer(given.answer, given.body, _seconds(given.delay, 0.0), tuple(given.first))


def _expect(spec: Spec, variant: str) -> Expect:
    own = (spec.variants or {}).get(variant)
    phase = (own.expect.phase if own else None) or spec.expect.phase or Expect().phase
    fail = own.expect.fail if own and own.expect.fail is not None else spec.expect.fail
    return Expect(phase, tuple(fail or ()))


def _steps(steps: list[StepSpec]) -> tuple[Step, ...]:
    found = [(step, _action(step)) for step in steps if step.when]
    marked = next((step.name for step, _ in found if step.change), None)
    first = next(
        (step.name for step, action in found if action and action.VERB in CHANGING_VERBS), None
    )
    change = marked or first
    return tuple(
        Step(
            name=step.name,
            action=action,
            until=step.until,
            within=None if step.until is None else _seconds(step.within, DEFAULT_WITHIN),
            change=step.name == change,
        )
        for step, action in found
    )


def _action(step: StepSpec) -> Action | None:
    if step.apply is not None:
        return ApplyStep(tuple(step.apply))
    if step.patch is not None:
        return _patch(step.patch)
    if step.delete is not None:
        return DeleteStep(step.delete.target, step.delete.where or {}, step.delete.orphan)
    if step.scale is not None:
        return ScaleStep(step.scale.target, step.scale.replicas, step.scale.where or {})
    if step.upgrade is not None:
        return UpgradeStep(step.upgrade.subject, step.upgrade.kubernetes)
    if step.handback is not None:
        return HandbackStep(step.handback.to)
    if step.node is not None:
        given = step.node
        taints = None if given.taints is None else tuple(given.taints)
        return NodeStep(given.name, given.becomes, given.labels, taints)
    if step.wait is not None:
        return WaitStep(step.wait)
    outside = _outside(step)
    if outside is not None:
        return outside
    simple: dict[str, Any] = {"stop": StopStep, "start": StartStep, "kill": KillStep}
    return next((cls() for verb, cls in simple.items() if getattr(step, verb) is not None), None)


def _outside(step: StepSpec) -> Action | None:
    if step.gate is not None:
        return GateStep(step.gate.name, _answer(step.gate))
    if step.metric is not None:
        return MetricStep(dict(step.metric))
    if step.apply_as is not None:
        given = step.apply_as
        return ApplyAsStep(
            given.manager,
            tuple(given.manifests),
            given.target,
            given.merge,
            given.force,
            tuple(given.prune),
        )
    return None


def _patch(patch: PatchSpec) -> PatchStep:
    template = patch.template
    change = None
    if template is not None:
        change = TemplatePatch(template.annotations, template.labels, template.image)
    return PatchStep(
        patch.target, change, patch.merge, patch.status, patch.where or {}, patch.refused
    )


def _check(check: CheckSpec) -> Check:
    given: dict[CheckKind, str | None] = {
        "eventually": check.eventually,
        "always": check.always,
        "never": check.never,
    }
    kind, expression = next((kind, text) for kind, text in given.items() if text is not None)
    return Check(
        id=check.id,
        title=check.title or check.id.replace("-", " ").capitalize(),
        kind=kind,
        expression=str(expression),
        from_=check.from_,
        until=check.until or SETTLED,
        hold_for=_seconds(check.for_, 0.0),
        otherwise=Outcome(check.otherwise),
    )


def _seconds(given: float | None, default: float) -> float:
    return default if given is None else given
