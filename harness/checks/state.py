"""The state of a drill at one moment, folded from the observations up to it.

The runner uses it live to evaluate a step's `until`; the judge uses it to replay a recording. Both therefore see the same.
Order is kept within a kind but not across kinds: a pod may be seen before its ReplicaSet. What an object's view depends on makes
it worked out again when it arrives, and nothing else is: a drill may have hundreds of rollouts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.checks import moments, routes, surroundings, traffic, workloads
from harness.checks import rollout as rollouts
from harness.checks.apex import Apex
from harness.checks.moments import Moments
from harness.checks.objects import POD, Objects, uid
from harness.checks.outside import AUTOSCALERS, CONFIGS, Around, Calls
from harness.checks.paths import KNATIVE_REVISION, KNATIVE_SERVICE, kind_of, name_of
from harness.checks.population import Population
from harness.checks.queries import Asked
from harness.checks.revisions import Revisions
from harness.checks.section import Section
from harness.checks.service_views import ServiceViews
from harness.checks.vocabulary import VARIABLES
from harness.checks.workload_views import WorkloadViews, revision
from harness.model.resolved import Resolved
from harness.model.timeline import ObjectSeen, Requests, StepState, SubjectState, WatchState
from harness.model.timeline_outside import Call, GateChanged, Queries, QueriesCounted
from harness.model.timeline_traffic import TrafficWindow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.checks.expression import Expression, Unknown
    from harness.checks.section import View
    from harness.model.timeline import JSON, Header, Observation

    Uses = Mapping[str, frozenset[str] | None]
    """Variables with those of their fields that matter; None: all of them."""

World = dict[str, Any]
"""The variables of a check (shape: harness/checks/vocabulary.py), all or those that were asked for."""

_LISTS: Final = frozenset(name for name, word in VARIABLES.items() if word.type[:5] == "list(")
_ONE: Final = "one"
"""Key of the only view of a section that has one."""
_GONE: Final = frozenset({"stopped", "killed", "exited"})


class State:
    """Objects, steps and the clock as of the last observation that was applied."""

    def __init__(self, header: Header) -> None:
        self.scenario = Resolved.from_json(header.scenario)
        self.kind = header.subject.rollout
        self.t = 0.0
        self.step = ""
        self.change_at: float | None = None
        self.population = Population(self.kind)
        self._objects = Objects(self.kind.kind)
        self._views = WorkloadViews(self._objects, self._workload_changed)
        self._services = ServiceViews(self._objects, self.kind.primary_suffix, self._revision_of)
        self._nodes = Section()
        self._calls = Calls(self.scenario)
        self._asked = Asked(self.scenario)
        self._traffic = traffic.Seen(self.scenario, self._views.pods)
        self._around = Around(self._views.roles)
        self._route = Section()
        self._route.put(_ONE, dict(routes.ABSENT))
        self._apex = ""
        """Name of the Service that clients of the main rollout use."""
        self._behind = Apex(self._objects)
        self._revisions = Revisions(self._objects)
        self._lent: dict[str, str] = {}
        """Deployments that Knative made for a revision -> its role."""
        self._moments = Moments()
        self._rollout, self._primary, self._target = Section(), Section(), Section()
        self._subject = Section()
        self._subject.put(_ONE, {"name": header.subject.name, "starts": 0})
        self._rollout.put(_ONE, dict(rollouts.ABSENT))
        self._sections = {
            **dict.fromkeys(("rollout", "canary"), self._rollout),
            "rollouts": self.population.section,
            "analyses": self.population.analyses,
            "primary": self._primary,
            "target": self._target,
            "pods": self._views.pods,
            "workloads": self._views.workloads,
            "nodes": self._nodes,
            "subject": self._subject,
            "route": self._route,
            "autoscalers": self._around.autoscalers,
            "configs": self._around.configs,
            "calls": self._calls.calls,
            "gates": self._calls.gates,
            "queries": self._asked.section,
            "traffic": self._traffic.section,
            "answers": self._traffic.answers,
            "at": self._moments.section,
        }
        """All of them, but for those that are worked out when they are asked for."""
        self._main = ""
        """Name of the rollout object that is meant by `rollout`, `primary` and `target`."""
        self._name_main()
        self._synced: set[str] = set()
        self._seen: set[str] = set()
        self._unknown = self._not_known_yet()
        self._born: dict[str, float] = {}
        self._marks = 0
        """Grows when another kind becomes known, and with each step."""
        self._evaluated: dict[Expression, tuple[int, bool | Unknown]] = {}

    # ---- folding

    def apply(self, observation: Observation) -> None:
        """Take an observation into account. They must come in the order in which they were recorded."""
        self.t = observation.t
        match observation:
            case ObjectSeen():
                self._apply_object(observation)
            case WatchState():
                self._know(self._synced, observation.kind)
            case StepState():
                self._apply_step(observation)
            case SubjectState():
                self._apply_subject(observation)
            case Requests():
                self.population.requests(observation)
            case Call():
                self._calls.called(observation)
            case GateChanged():
                self._calls.changed(observation)
            case Queries() | QueriesCounted():
                self._asked.take(observation)
            case TrafficWindow():
                self._traffic.take(observation)

    def _apply_object(self, seen: ObjectSeen) -> None:
        obj = seen.object
        kind, name = kind_of(obj), name_of(obj)
        self._know(self._seen, kind)
        if kind == "Event":
            self._apply_event(obj)
            return
        moved = self._take(seen, kind)
        if moved is None or (kind == POD and traffic.is_probe(obj)):
            return
        deleted = seen.change == "DELETED"
        self._behind.see(kind, name)
        if kind == self.kind.kind:
            self._apply_rollout(name, obj, deleted=deleted)
        if kind == POD or kind in workloads.KINDS:
            if deleted:
                self._traffic.pods.gone(name)
                self._views.gone(kind, name)
            else:
                self._views.see(kind, obj, moved=moved)
        self._apply_around(kind, name, obj, deleted=deleted)
        self._revisions.see(kind)
        if kind in {KNATIVE_SERVICE, "Deployment", self.kind.kind}:
            self._name_revisions()

    def _apply_around(self, kind: str, name: str, obj: JSON, *, deleted: bool) -> None:
        if kind in workloads.KINDS:
            self._services.workload(name)
        elif kind == "Service":
            self._services.see(name)
        elif kind == "Node":
            self._apply_node(name, obj, deleted=deleted)
        elif kind in routes.KINDS:
            self._name_route()
        else:
            self._around.see(kind, obj, deleted=deleted)

    def _take(self, seen: ObjectSeen, kind: str) -> bool | None:
        """Put or remove an object; return whether it belongs to somebody else than before, None if it was old news."""
        if seen.change == "DELETED":
            return False if self._objects.drop(kind, seen.object) else None
        name = name_of(seen.object)
        known = self._objects.get(kind, name)
        if kind == POD and (known is None or uid(known) != uid(seen.object)):
            self._born[name] = seen.t
        return self._objects.put(kind, seen.object)

    def _apply_node(self, name: str, node: JSON, *, deleted: bool) -> None:
        if deleted:
            self._nodes.drop(name)
        else:
            self._nodes.put(name, surroundings.node_view(node))

    def _apply_rollout(self, name: str, obj: JSON, *, deleted: bool) -> None:
        if deleted:
            self.population.gone(name)
        else:
            before = self.population.names(name)
            self.population.see(obj, self.t)
            self._name_roles(name, before, obj)
        raw = self.rollout
        if raw is None:
            # The names that it referred to outlive it: after its deletion the primary is still that.
            self._rollout.put(_ONE, dict(rollouts.ABSENT))
            return
        self._rollout.put(_ONE, rollouts.rollout_view(raw, self.kind))
        if name_of(raw) != self._main or name == self._main:
            self._main = name_of(raw)
            self._apex = rollouts.apex_name(raw, self.kind)
            self._behind.named(self._apex)
            self._name_main()
            self._name_route()

    def _name_revisions(self) -> None:
        """Look again at which of the Deployments that Knative makes stand for target and primary: a Knative Service has no pods itself."""
        self._revisions.named(self.target_name)
        roles = self._revisions.deployments()
        if roles == self._lent:
            return
        for name in self._lent.keys() - roles.keys():
            self._views.role(name, "")
        self._lent = roles
        for name, role in roles.items():
            self._views.role(name, role)
        self._name_main()

    def _name_route(self) -> None:
        """Look again at what splits the traffic: it is called like the apex, or is the Knative Service under promotion."""
        for kind in routes.KINDS:
            name = self.target_name if kind == KNATIVE_SERVICE else self._apex
            found = self._objects.get(kind, name)
            if found is not None:
                view = routes.route_view(kind, found, self._apex, self.kind.primary_suffix)
                self._route.put(_ONE, view)
                return
        self._route.put(_ONE, dict(routes.ABSENT))

    def _name_roles(self, name: str, before: tuple[str, str] | None, obj: JSON) -> None:
        names = self.population.names(name)
        if names is None:
            return
        target, primary = names
        copied = primary == f"{target}{self.kind.primary_suffix}"
        self._objects.kept.name(name, "" if copied else primary)
        if before is not None and before != names:
            for workload in before:
                self._views.role(workload, "")
        self._services.rollout(name, target, primary, rollouts.apex_name(obj, self.kind))
        if before != names:
            for workload, role in ((target, "target"), (primary, "primary")):
                self._views.role(workload, role)
                self._workload_changed(workload, self._views.get(workload))
            self._around.named()

    def _name_main(self) -> None:
        for section, name in zip((self._target, self._primary), self._shown(), strict=True):
            section.put(_ONE, workloads.single(self._views.get(name), name))

    def _shown(self) -> tuple[str, str]:
        """Return the names of the workloads that are told as target and primary."""
        lent = {role: name for name, role in self._lent.items()}
        return lent.get("target", self.target_name), lent.get("primary", self.primary_name)

    def _revision_of(self, name: str) -> str:
        return str((self._views.get(name) or {}).get("hash", ""))

    def _workload_changed(self, name: str, view: View | None) -> None:
        self._services.workload(name)
        target, primary = self._shown()
        if self._main and name == target:
            self._target.put(_ONE, workloads.single(view, name))
        if self._main and name == primary:
            self._primary.put(_ONE, workloads.single(view, name))
        found = self._objects.workload(name)
        if view is not None and found is not None:
            self.population.workload(name, view.get("hash", ""), revision(found[1]))

    def _apply_event(self, event: JSON) -> None:
        if event.get("reason") != "FailedCreate":
            return
        about = event.get("involvedObject") or event.get("regarding") or {}
        kind, name = str(about.get("kind", "")), str(about.get("name", ""))
        # Deployments say it in a condition, which also goes away again; only the other kinds need their events.
        if kind in {"DaemonSet", "StatefulSet"}:
            message = str(event.get("message") or event.get("note") or "FailedCreate")
            self._views.refuse(kind, name, message)

    def _apply_step(self, state: StepState) -> None:
        if state.state == "started" and self.step != state.step:
            self.step = state.step
            self._marks += 1
        if state.state == "held":
            kept = dict.fromkeys(moments.KEPT)
            self._moments.held(state.step, state.t, self._known(kept))
        if state.step != self.scenario.change_step:
            return
        if state.state == "started":
            # Of many targets some are taken up before the last of them is changed.
            self.population.changed()
        if state.state == "acted" and self.change_at is None:
            self.change_at = state.t

    def _apply_subject(self, state: SubjectState) -> None:
        known = self._subject.get(_ONE) or {}
        if state.state == "looked":
            self.population.looked(state.detail.split(" ", 1)[0])
        elif state.state == "started":
            self.population.restarted()
            name = state.detail.split(" ", 1)[0] or known["name"]
            view = {"name": name, "starts": known["starts"] + 1, "running": True}
            self._subject.put(_ONE, view)
        elif state.state in _GONE:
            self._subject.put(_ONE, {**known, "running": False})

    # ---- reading

    @property
    def rollout(self) -> JSON | None:
        """The rollout object: the one that was seen first, should there be several."""
        return next(iter(self._objects.of(self.kind.kind).values()), None)

    @property
    def target_name(self) -> str:
        """Name of the workload under promotion; empty until a rollout object was seen."""
        return (self.population.names(self._main) or ("", ""))[0]

    @property
    def primary_name(self) -> str:
        """Name of the workload that serves; empty until a rollout object was seen."""
        return (self.population.names(self._main) or ("", ""))[1]

    @property
    def known_pods(self) -> traffic.Known:
        """To which revision pods belong that answered requests."""
        return self._traffic.pods

    @property
    def pods_seen(self) -> bool:
        """Whether any pod was ever seen."""
        return POD in self._seen

    @property
    def stuck(self) -> Mapping[str, View]:
        """Views of the pods that the scheduler finds no node for, by name."""
        return self._views.stuck

    def get(self, kind: str, name: str) -> JSON | None:
        """Return a raw object, if it exists at this moment."""
        return self._objects.get(kind, name)

    def workload(self, name: str) -> JSON | None:
        """Return the raw workload of that name, whatever its kind."""
        found = self._objects.workload(name)
        return None if found is None else found[1]

    def since_change(self, t: float | None = None) -> float | None:
        """Return the seconds since the change, None where there is none yet."""
        moment = self.t if t is None else t
        if self.change_at is None or moment < self.change_at:
            return None
        return moment - self.change_at

    def stamp(self, uses: Uses) -> int:
        """Return a number that is the same only as long as nothing of what is used has changed, but for the clock."""
        return self._marks + sum(
            section.stamp(fields)
            for name, fields in uses.items()
            if (section := self._section(name)) is not None
        )

    def facts(self) -> World:
        """Return the part of the world that does not depend on the clock. What is in it is shared, not to be changed."""
        return self._known(dict.fromkeys(VARIABLES))

    def world(self, t: float | None = None, uses: Uses | None = None) -> World:
        """Return the variables that a check sees, now or, with nothing else changed, at a later moment `t`.

        What cannot be known yet is absent: before a watch's first list there is no `pods`, rather than an empty list. Seconds
        are counted from the timeline's time zero. With `uses`, only those variables. What is in it is shared, not to be changed.
        """
        moment = float(self.t if t is None else t)
        wanted = dict.fromkeys(VARIABLES) if uses is None else uses
        world = self._known(wanted)
        if "pods" in world and (wanted["pods"] is None or "age" in wanted["pods"]):
            world["pods"] = [{**p, "age": moment - self._born[p["name"]]} for p in world["pods"]]
        since = self.since_change(moment)
        clock = {
            "t": moment,
            "since_change": -1.0 if since is None else since,
            "step": self.step,
            "values": dict(self.scenario.values),
        }
        return {**world, **{name: value for name, value in clock.items() if name in wanted}}

    def evaluate(self, expression: Expression) -> bool | Unknown:
        """Return what an expression says now; asked again, it is evaluated only if something that it uses has changed."""
        stamp = self.stamp(expression.uses)
        known = self._evaluated.get(expression)
        if known is None or known[0] != stamp or expression.clocked:
            known = stamp, expression.evaluate(self.world(uses=expression.uses))
            self._evaluated[expression] = known
        return known[1]

    def _known(self, wanted: Uses) -> World:
        known: World = {}
        for name in wanted:
            section = self._section(name)
            if section is not None and name not in self._unknown:
                many = name in _LISTS
                known[name] = section.rows if many else section.get(_ONE)
        return known

    def _section(self, name: str) -> Section | None:
        if name == "apex":
            return self._behind.section
        if name == "revisions":
            return self._revisions.section
        return self._services.section if name == "services" else self._sections.get(name)

    def _know(self, among: set[str], kind: str) -> None:
        if kind not in among:
            among.add(kind)
            self._marks += 1
            self._unknown = self._not_known_yet()

    def _not_known_yet(self) -> frozenset[str]:
        """Return the variables that nothing can be said of, since the kinds that they are made from were never listed."""
        known = self._synced | self._seen
        needs = {
            "pods": ({POD},),
            "workloads": ({POD}, {"Deployment", "DaemonSet"}),
            "services": ({"Service"},),
            "nodes": ({"Node"},),
            "apex": ({POD}, {"Service"}, {self.kind.kind}),
            "route": ({*routes.KINDS}, {self.kind.kind}),
            "autoscalers": ({*AUTOSCALERS},),
            "revisions": ({KNATIVE_REVISION}, {KNATIVE_SERVICE}, {POD}),
            "configs": tuple({kind} for kind in CONFIGS),
            **dict.fromkeys(("rollout", "canary", "rollouts", "analyses"), ({self.kind.kind},)),
            **dict.fromkeys(
                ("primary", "target"), ({POD}, {"Deployment", "DaemonSet"}, {self.kind.kind})
            ),
        }
        unknown = {
            name for name, kinds in needs.items() if not all(known & any_of for any_of in kinds)
        }
        if not self._calls.known:
            unknown |= {"calls", "gates"}
        if not self._traffic.known:
            unknown |= traffic.WORDS
        return frozenset(unknown if self._asked.known else unknown | {"queries"})
