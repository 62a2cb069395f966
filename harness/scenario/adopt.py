"""Somebody's own manifests as a scenario: as they are (`drill run -f`), or written down as a start (`drill init -f`)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.model.duration import format_duration, parse_duration
from harness.scenario.dump import to_yaml
from harness.scenario.loaded import SCENARIO_FILE, Loaded, resolve_all, shown
from harness.scenario.manifests import DrillContext, Manifest, collect, is_namespace
from harness.scenario.problem import Problem, ScenarioError
from harness.scenario.reader import Document, read_text, read_yaml

CHANGES: Final = ("template-annotation",)
"""What can be changed to start a promotion."""
_SUFFIXES: Final = (".yaml", ".yml")
_ROLLOUT: Final = "Canary"
_ANNOTATION: Final = "rollout-drill/revision"
_START: Final = 300.0
"""Seconds that the first deployment may take; nothing in the manifests tells."""
_MARGIN: Final = 120.0
"""Seconds that a promotion may take beside its analysis and its progress deadline."""
_DEADLINE: Final = 600
"""Seconds; default of a Deployment's and of a Canary's progressDeadlineSeconds."""
_INTERVAL: Final = 60.0
"""Seconds; default of a Canary's analysis interval."""
_NOT_NAME: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class _Set:
    """A folder's manifests."""

    folder: Path
    files: tuple[str, ...]
    objects: tuple[Manifest, ...]
    canary: Manifest
    target: Manifest
    notes: tuple[str, ...]


def scenario_from(folder: Path | str, change: str = "template-annotation") -> Loaded:
    """Return a scenario that takes a folder's manifests, as they are, through one promotion.

    The folder must hold exactly one Canary, and its target. Other objects are applied first. A namespace that the manifests name is
    dropped, and said so in `notes`; several of them are refused. Raises ScenarioError with everything that is in the way.
    """
    if change not in CHANGES:
        problem = Problem("--change", None, None, "", f"{change!r} is no change", CHANGES)
        raise ScenarioError([problem])
    found = _collect(Path(folder))
    document = _document(found)
    drills, problems = resolve_all(document, found.folder, found.folder, adopted=True)
    if problems:
        raise ScenarioError(problems)
    return Loaded(
        name=drills[0].name,
        file=found.folder,
        folder=found.folder,
        document=document,
        drills=tuple(drills),
        adopted=True,
        notes=found.notes,
    )


def write_scenario(folder: Path | str, out: Path | str) -> list[Path]:
    """Write a scenario and copies of a folder's manifests to `out`, and return the files written, the scenario first.

    Nothing is ever overwritten: raises ScenarioError naming every file that exists already. Copies lose their namespace lines, since
    everything goes to the drill's namespace; everything else of them stays, comments included.
    """
    found = _collect(Path(folder))
    target = Path(out)
    texts = {SCENARIO_FILE: _scenario_text(found, target)}
    texts |= {name: _without_namespace(found.folder / name) for name in found.files}
    texts = {name: text for name, text in texts.items() if text.strip()}
    taken = [name for name in texts if os.path.lexists(target / name)]
    if taken:
        message = "exists already, and nothing is overwritten"
        raise ScenarioError(
            [Problem(shown(target / name), None, None, "", message) for name in taken]
        )
    written: list[Path] = []
    for name, text in texts.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
        written.append(path)
    return written


def _collect(folder: Path) -> _Set:
    files = _files(folder)
    prefix = f"{shown(folder)}/"
    dropped, namespaces = _namespaces(folder, files)
    objects, problems = collect(folder, files, {}, DrillContext(), adopted=True, shown=prefix)
    if len(namespaces) > 1:
        message = "the manifests name several namespaces, and a drill has one"
        problem = Problem(shown(folder), None, None, "", f"{message}: {', '.join(namespaces)}")
        problems = (*problems, problem)
    if problems:
        raise ScenarioError(problems)
    canary = _only_canary(folder, objects)
    target = _target_of(canary, objects, prefix)
    notes = [
        f"Namespace {name!r} in the manifests is replaced by the drill's own."
        for name in namespaces
    ]
    if dropped:
        notes.append(
            f"Not applied, since the drill makes its own namespace: Namespace {', '.join(dropped)}."
        )
    return _Set(folder, tuple(files), tuple(objects), canary, target, tuple(notes))


def _files(folder: Path) -> list[str]:
    """Return the YAML files of a folder and of the folders in it, relative, sorted."""
    if not folder.is_dir():
        why = "there is no such folder" if not folder.exists() else "is a file; give its folder"
        raise ScenarioError([Problem(shown(folder), None, None, "", why)])
    found = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.suffix in _SUFFIXES and path.is_file() and path.name != SCENARIO_FILE
    )
    if not found:
        raise ScenarioError([Problem(shown(folder), None, None, "", "holds no YAML files")])
    return found


def _namespaces(folder: Path, files: list[str]) -> tuple[list[str], list[str]]:
    """Return the names of Namespace objects, and all namespaces that objects are in."""
    dropped: list[str] = []
    used: dict[str, None] = {}
    problems: list[Problem] = []
    for name in files:
        label = shown(folder / name)
        try:
            documents = read_yaml(read_text(folder / name, label), label, octal=True)
        except ScenarioError as error:
            problems += error.problems
            continue
        for obj in (item for document in documents for item in _items(document.data)):
            metadata = obj.get("metadata")
            row = metadata if isinstance(metadata, dict) else {}
            if is_namespace(obj):
                dropped.append(str(row.get("name")))
            elif isinstance(row.get("namespace"), str):
                used[row["namespace"]] = None
    if problems:
        raise ScenarioError(problems)
    return dropped, sorted(used)


def _items(data: Any) -> list[dict[str, Any]]:
    if not isinstance(data, dict):
        return []
    items = data.get("items")
    if data.get("kind") == "List" and isinstance(items, list):
        return [item for item in items if isinstance(item, dict)]
    return [data]


def _only_canary(folder: Path, objects: list[Manifest]) -> Manifest:
    canaries = [item for item in objects if item.object["kind"] == _ROLLOUT]
    if len(canaries) == 1:
        return canaries[0]
    if not canaries:
        message = "holds no Canary, so there is no promotion to drill"
        raise ScenarioError([Problem(shown(folder), None, None, "", message)])
    names = ", ".join(item.object["metadata"]["name"] for item in canaries)
    message = f"there are several Canaries ({names}), and a drill takes one through its promotion"
    raise ScenarioError(
        [Problem(f"{shown(folder)}/{c.file}", c.line, None, "kind", message) for c in canaries[1:]]
    )


def _target_of(canary: Manifest, objects: list[Manifest], prefix: str) -> Manifest:
    spec = canary.object.get("spec")
    reference = spec.get("targetRef") if isinstance(spec, dict) else None
    row = reference if isinstance(reference, dict) else {}
    kind, name = row.get("kind"), row.get("name")
    for item in objects:
        if item.object["kind"] == kind and item.object["metadata"]["name"] == name:
            return item
    message = f"{kind} {name!r} is in none of the manifests" if kind and name else "names no target"
    problem = Problem(f"{prefix}{canary.file}", canary.line, None, "spec.targetRef", message)
    raise ScenarioError([problem])


def _name(found: _Set) -> str:
    text = _NOT_NAME.sub("-", str(found.canary.object["metadata"]["name"]).lower()).strip("-")
    return f"{text[:30].strip('-') or 'rollout'}-as-it-is"


def _data(found: _Set, name: str) -> dict[str, Any]:
    """Return the scenario as a document."""
    target = found.target.object
    steps = [
        {
            "name": "initialise",
            "apply": list(found.files),
            "until": 'rollout.phase == "Initialized"',
            "within": format_duration(_START),
        },
        {
            "name": "new revision",
            "patch": {"target": "workload", "template": {"annotations": {_ANNOTATION: "2"}}},
            "change": True,
        },
        {
            "name": "promote",
            "until": "rollout.ended",
            "within": format_duration(_promotion_time(found)),
        },
    ]
    checks = [
        {
            "id": "never-blocked",
            "title": "No pod was ever blocked",
            "never": "pods.exists(p, p.unschedulable || p.gated) || workloads.exists(w, w.createFailed)",
        },
        {
            "id": "primary-served-throughout",
            "title": "The primary had a ready pod at every moment",
            "always": "primary.ready >= 1",
            "from": "initialise",
        },
    ]
    return {
        "apiVersion": "drill/v1",
        "kind": "Scenario",
        "metadata": {"name": name},
        "spec": {
            "question": f"Does a promotion of {target['kind']} {target['metadata']['name']} complete?",
            "setup": f"{target['kind']} {target['metadata']['name']} with its Canary, from the manifests given.",
            "nodes": {"min": 1},
            "settle": "1s",
            "manifests": list(found.files),
            "steps": steps,
            "record": [
                {
                    "title": "The template of the primary",
                    "object": "primary",
                    "path": "spec.template",
                }
            ],
            "checks": checks,
            "doneWhen": [
                {"text": "A whole promotion was observed.", "by": ["steps-completed", "ends-in"]},
                {"text": "Nothing that the drill made is left.", "by": ["nothing-left"]},
            ],
        },
    }


def _promotion_time(found: _Set) -> float:
    """Return the seconds that a promotion may take: its analysis twice, its progress deadline, and a margin."""
    spec = found.canary.object.get("spec")
    analysis = spec.get("analysis") if isinstance(spec, dict) else None
    row = analysis if isinstance(analysis, dict) else {}
    try:
        interval = parse_duration(row.get("interval", f"{int(_INTERVAL)}s"))
    except ValueError:
        interval = _INTERVAL
    rounds = row.get("iterations")
    if not isinstance(rounds, int) or rounds < 1:
        step, most = row.get("stepWeight"), row.get("maxWeight", 100)
        weights = isinstance(step, int) and isinstance(most, int) and step > 0
        rounds = -(-most // step) if weights else len(row.get("stepWeights") or [1] * 10)
    deadline = spec.get("progressDeadlineSeconds") if isinstance(spec, dict) else None
    wait = deadline if isinstance(deadline, int) else _DEADLINE
    return round(2 * interval * (rounds + 3) + wait + _MARGIN)


def _document(found: _Set) -> Document:
    text = to_yaml(_data(found, _name(found)))
    return read_yaml(text, shown(found.folder))[0]


def _scenario_text(found: _Set, out: Path) -> str:
    name = _NOT_NAME.sub("-", out.resolve().name.lower()).strip("-")[:40].strip("-") or _name(found)
    data = _data(found, name)
    # Files that only held a Namespace are not copied.
    kept = [file for file in found.files if _without_namespace(found.folder / file).strip()]
    data["spec"]["manifests"] = kept
    data["spec"]["steps"][0]["apply"] = kept
    head = "# A start, made from manifests as they were. Give it a question of your own, and checks that answer it;\n"
    head += "# `drill lint` says what is wrong. The format: scenarios/README.md of rollout-drill.\n"
    return head + to_yaml(data)


def _without_namespace(path: Path) -> str:
    """Return a manifest's text without namespaces: the lines of metadata.namespace and documents that are a Namespace.

    Whatever cannot be cut out line by line (flow style, a List) is written anew from the objects.
    """
    text = read_text(path, shown(path))
    documents = read_yaml(text, shown(path), octal=True)
    wanted = [_stripped(obj) for d in documents for obj in _items(d.data) if not is_namespace(obj)]
    drop: set[int] = set()
    lines = text.splitlines(keepends=True)
    for document in documents:
        metadata = document.data.get("metadata") if isinstance(document.data, dict) else None
        if isinstance(metadata, dict) and "namespace" in metadata:
            where = document.positions.keys[("metadata", "namespace")]
            drop.add(where.line - 1)
    cut = "".join(line for i, line in enumerate(lines) if i not in drop)
    try:
        again = [document.data for document in read_yaml(cut, shown(path), octal=True)]
    except ScenarioError:
        again = []
    return cut if again == wanted else "".join(f"---\n{to_yaml(obj)}" for obj in wanted)


def _stripped(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return obj
    return {**obj, "metadata": {k: v for k, v in metadata.items() if k != "namespace"}}
