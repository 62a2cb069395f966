"""timeline.svg: the drill at a glance. Phases along the time axis, a lane for each node, a bar for each pod."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.model.clock import moment
from harness.report import svg_rollouts
from harness.report.svg_canvas import WIDTH, Canvas, Scale, fitted, number, width_of
from harness.report.svg_phases import Band, Spot, bands, overlaps, place
from harness.report.svg_pods import ROLES, Look, Stay, lanes, most_telling, role, stays
from harness.report.svg_words import bad, description, failed, hint, violated
from harness.report.text import plural

if TYPE_CHECKING:
    from harness.model.report import DrillReport, Finding, RolloutRow

_MARGIN: Final = 16
_LEFT: Final = 140
"""Where the plot begins; left of it are the names of lanes."""
_RIGHT: Final = 78
"""Room right of the plot, for the name of a last phase that is short: `Succeeded` fits."""
_POD: Final = 25
"""Height of a pod's label with its bar."""
_ROW: Final = 17
_LINE: Final = 15
_LANE: Final = 13
"""Height of a rollout's lane."""
_MOST_PODS: Final = 48
_MOST_PHASES: Final = 60
_MOST_FINDINGS: Final = 8
_MOST_EMPTY_NODES: Final = 12
_WRAP: Final = 150
"""Characters in a line of text across the picture."""


def svg(report: DrillReport) -> str:
    """Return the picture as SVG 1.1, 960 pixels wide. The same report always gives the same bytes."""
    return _Picture(report).draw()


@dataclass
class _Picture:
    report: DrillReport
    y: float = 0.0
    """How far down the picture has got, in pixels."""
    notes: list[str] = field(default_factory=list)
    """What is not shown, one sentence each."""

    def draw(self) -> str:
        report = self.report
        last = report.rows[-1].t if report.rows else 0.0
        self.scale = Scale(_LEFT, WIDTH - _RIGHT, max(report.observed_until, last) or 1.0)
        self.canvas = Canvas(f"Drill {report.scenario.id}", description(report))
        if report.rollouts:
            return self._draw_rollouts()
        everything = stays(report.rows)
        shown, hidden = most_telling(everything, _MOST_PODS)
        if hidden:
            self.notes.append(f"{plural(hidden, 'pod')} not shown; report.json has them all.")
        self._head(shown)
        phases = self._phases()
        top = self.y
        self._change_label()
        self._findings()
        guides = self.y
        self._lanes(lanes(shown, report.environment.nodes, _MOST_EMPTY_NODES))
        self._weight()
        for index, band in enumerate(phases):
            x, end = self.scale.x(band.since), self.scale.x(band.until)
            kind = (
                band.phase
                if band.phase in {"Succeeded", "Failed", "Frozen"}
                else f"band{index % 2}"
            )
            told = f"{band.phase} from {moment(band.since)} to {moment(band.until)}"
            corners = (x, top - _ROW), (max(end, x + 1), self.y)
            self.canvas.rect(kind, *corners, told)
        self._guides(guides)
        if report.change_at is not None:
            x = self.scale.x(report.change_at)
            self.canvas.line("change", (x, top), (x, self.y), back=True)
        self._axis(top)
        self._foot()
        return self.canvas.done(self.y + _MARGIN / 2)

    def _draw_rollouts(self) -> str:
        """Draw lanes of rollouts instead of nodes and pods: where hundreds of pods run says less than what their rollouts did."""
        report = self.report
        self.canvas.style(svg_rollouts.css())
        shown, hidden = svg_rollouts.chosen(report.rollouts)
        if hidden:
            self.notes.append(
                f"{plural(hidden, 'rollout')} like these not shown; report.json has them all."
            )
        self._head([])
        self._legend({piece.kind for row in shown for piece in self._stretches(row)})
        top = self.y
        self._moment_label(report.upgrade_at, "upgrade")
        self._change_label()
        self._findings()
        guides = self.y
        for row in shown:
            self._rollout(row)
        self._guides(guides)
        for at in {report.upgrade_at, report.change_at} - {None}:
            x = self.scale.x(at or 0.0)
            self.canvas.line("change", (x, top), (x, self.y), back=True)
        self.y += 6
        self._axis(top)
        self._foot()
        return self.canvas.done(self.y + _MARGIN / 2)

    def _stretches(self, row: RolloutRow) -> list[svg_rollouts.Stretch]:
        return svg_rollouts.stretches(row, self.report.observed_until)

    def _legend(self, kinds: set[str]) -> None:
        x = float(_LEFT)
        self.y += _LINE
        for kind, text in svg_rollouts.LEGEND.items():
            if kind in kinds:
                self.canvas.path(f"lane p-{kind}", f"M{number(x)} {number(self.y - 4)}h26")
                self.canvas.text(x + 32, self.y, text)
                x += 32 + width_of(text) + 18
        self.y += 5

    def _rollout(self, row: RolloutRow) -> None:
        self._lane_name(svg_rollouts.label(row), self.y + 9, "")
        group = self.canvas.group(svg_rollouts.hint(row))
        for piece in self._stretches(row):
            x, end = self.scale.x(piece.since), self.scale.x(piece.until)
            shape = f"M{number(x)} {number(self.y + 5)}h{number(max(end - x, 1.0))}"
            self.canvas.path(f"lane p-{piece.kind}", shape, parent=group)
        self.y += _LANE

    # ---- above the plot

    def _head(self, shown: list[Stay]) -> None:
        report, env = self.report, self.report.environment
        room = WIDTH - 2 * _MARGIN
        self.y = 28
        self.canvas.text(_MARGIN, self.y, fitted(report.scenario.id, room, 16), "title")
        self.y += 4
        sentence = f"Verdict: {report.verdict.sentence}"
        for line in _wrapped(sentence, 140, 3):
            self.y += _LINE + 1
            self.canvas.text(_MARGIN, self.y, line, "lead")
        self.y += _LINE + 2
        nodes = f"nodes simulated ({env.simulated})" if env.simulated else "real nodes"
        facts = f"{env.subject_text}, Kubernetes {env.kubernetes_text}, {nodes}; time zero {report.started_at}"
        self.canvas.text(_MARGIN, self.y, fitted(facts, room), "faint")
        self.y += 10
        if shown:
            self._key(shown)

    def _key(self, shown: list[Stay]) -> None:
        roles = {role(stay.pod) for stay in shown}
        looks = {piece.look for stay in shown for piece in stay.pieces}
        strokes = [
            (name, name) for name in ROLES if any(role(s.pod) == name and s.pod.node for s in shown)
        ]
        sample = next(name for name in ROLES if name in roles)
        if any(not look.ready and not look.pending for look in looks):
            strokes.append((f"{sample} soft", "not ready"))
        if any(look.terminating for look in looks):
            strokes.append((f"{sample} leaving", "terminating"))
        if any(look.pending for look in looks):
            strokes.append(("pending", "Pending: no node"))
        x = float(_LEFT)
        self.y += _LINE
        for kind, text in strokes:
            self.canvas.path(f"bar {kind}", f"M{number(x)} {number(self.y - 4)}h26")
            self.canvas.text(x + 32, self.y, text)
            x += 32 + width_of(text) + 18
        self.y += 5

    def _phases(self) -> list[Band]:
        """Write the phases' names, those too wide for their bands above them with a leader down; return the bands."""
        found, dropped = bands(self.report.rows, _MOST_PHASES)
        if dropped:
            self.notes.append(f"The first {plural(dropped, 'phase')} not shown.")
        names, nameless = place(found, self.scale)
        if nameless:
            self.notes.append(f"{plural(nameless, 'phase')} too short for a name.")
        bottom = self.y + (max((name.row for name in names), default=0) + 1) * _ROW + 2
        for name in names:
            y = bottom - name.row * _ROW
            self.canvas.text(name.begin + 4, y - 5, name.text, "strong")
            if name.row:
                self.canvas.line("leader", (name.x + 0.5, y - 12), (name.x + 0.5, bottom))
        self.y = bottom
        return found

    # ---- the plot

    def _change_label(self) -> None:
        self._moment_label(self.report.change_at, f"change: {self.report.change_step}")

    def _moment_label(self, at: float | None, words: str) -> None:
        if at is None:
            return
        x = self.scale.x(at)
        text = fitted(words, 260)
        fits = x + 5 + width_of(text) <= WIDTH - _MARGIN
        self.y += _ROW
        self.canvas.text(
            x + 5 if fits else x - 5, self.y - 5, text, "changed", "" if fits else "end"
        )

    def _findings(self) -> None:
        for index, finding in enumerate(bad(self.report)[:_MOST_FINDINGS], 1):
            if not finding.witnesses:
                continue
            self.y += _ROW
            middle = self.y - _ROW / 2
            self._lane_name(finding.id, middle + 4, "alarm" if failed(finding) else "")
            group = self.canvas.group(f"{finding.id}: {finding.evidence}")
            for since, until in violated(finding, self.report.observed_until):
                x = self.scale.x(since)
                length = max(self.scale.x(until) - x, 2)
                self.canvas.path(
                    "mark", f"M{number(x)} {number(middle)}h{number(length)}", parent=group
                )
            for x in self._marks(finding):
                self.canvas.badge(x, middle, str(index), alarm=failed(finding))

    def _guides(self, top: float) -> None:
        """Lead from each mark down through the lanes, behind the bars."""
        for finding in bad(self.report)[:_MOST_FINDINGS]:
            for x in self._marks(finding):
                self.canvas.line("mark guide", (x, top), (x, self.y), back=True)

    def _marks(self, finding: Finding) -> list[float]:
        """Return where the finding's witnesses began, those too close to each other once."""
        found: list[float] = []
        for since in sorted(witness.since for witness in finding.witnesses):
            x = self.scale.x(since)
            if not found or x - found[-1] > _LINE:
                found.append(x)
        return found

    def _lanes(self, by_node: dict[str, list[Stay]]) -> None:
        if not any(by_node.values()):
            self.y += 2 * _ROW
            x = (self.scale.left + self.scale.right) / 2
            self.canvas.text(x, self.y - 10, "No pod was seen.", "faint", "middle")
        for node, there in by_node.items():
            self.canvas.line("rule", (_MARGIN, self.y), (self.scale.right, self.y))
            self._lane_name(node or "no node", self.y + _ROW, "strong" if node else "strong alarm")
            self.y += max(self._bars(there), 1) * _POD + 6

    def _lane_name(self, name: str, y: float, kind: str) -> None:
        self.canvas.text(_MARGIN, y, fitted(name, _LEFT - _MARGIN - 8), kind)

    def _bars(self, there: list[Stay]) -> int:
        """Draw a lane's pods, each in the first row where there is room for it; return the number of rows."""
        taken: list[list[Spot]] = []
        for stay in there:
            x = round(self.scale.x(stay.since))
            end = max(round(self.scale.x(stay.until)), x + 2)
            label = fitted(f"{stay.pod.app} {stay.pod.hash}".strip(), 300)
            begin = min(x, WIDTH - _MARGIN - width_of(label))
            spot = begin - 4, max(end, begin + width_of(label)) + 4
            row = next((i for i, row in enumerate(taken) if not overlaps(spot, row)), len(taken))
            taken[row:] = taken[row:] or [[]]
            taken[row].append(spot)
            y = self.y + row * _POD
            self.canvas.text(begin, y + 14, label, "pod")
            self._bar(stay, y + 22.5)
        return len(taken)

    def _bar(self, stay: Stay, y: float) -> None:
        """Draw a pod's bar: one path for each look, to whole pixels, so that a restless pod stays small."""
        shapes: dict[Look, list[str]] = {}
        for piece in stay.pieces:
            x, end = round(self.scale.x(piece.since)), round(self.scale.x(piece.until))
            if piece.look.pending or len(stay.pieces) == 1:
                end = max(end, x + 2)
            if end > x:
                shapes.setdefault(piece.look, []).append(f"M{x} {number(y)}h{end - x}")
        group = self.canvas.group(hint(stay))
        for look, parts in shapes.items():
            kind = "pending" if look.pending else role(stay.pod)
            kind += "" if look.pending or look.ready else " soft"
            kind += " leaving" if look.terminating else ""
            self.canvas.path(f"bar {kind}", "".join(parts), parent=group)

    def _weight(self) -> None:
        """Draw the weight as steps, unless it never changed."""
        known = [(row.t, row.weight) for row in self.report.rows if row.weight is not None]
        if len({weight for _, weight in known}) < 2:  # noqa: PLR2004 - one value is no curve
            return
        height = 30
        self.canvas.line("rule", (_MARGIN, self.y), (self.scale.right, self.y))
        base = self.y + 8 + height
        self._lane_name("weight", self.y + _ROW, "strong")
        most = max(100, *(weight for _, weight in known))
        for value in (0, most):
            y = base - height * value / most
            self.canvas.text(_LEFT - 6, y + 4, f"{value} %", "faint", "end")
            self.canvas.line("rule", (_LEFT, y), (self.scale.right, y))
        shape = ""
        for t, weight in known:
            x, up = round(self.scale.x(t)), number(base - height * max(weight, 0) / most)
            step = f"H{x}V{up}" if shape else f"M{x} {up}"
            shape += "" if shape.endswith(step) else step
        self.canvas.path("weight", shape)
        self.y = base + 8

    def _axis(self, top: float) -> None:
        distance, ticks = self.scale.ticks()
        decimals = _decimals(distance)
        for tick in ticks:
            x = self.scale.x(tick)
            self.canvas.line("rule", (x, top), (x, self.y + 4), back=True)
            self.canvas.text(x, self.y + 16, f"{tick:.{decimals}f}", "faint", "middle")
        self.canvas.line("rule", (_MARGIN, self.y), (self.scale.right, self.y))
        self.canvas.text(_MARGIN, self.y + 16, "s after time zero", "faint")
        self.y += 24

    # ---- below the plot

    def _foot(self) -> None:
        findings = bad(self.report)
        for index, finding in enumerate(findings[:_MOST_FINDINGS], 1):
            self.y += 5
            expected = ", as expected" if finding.outcome is finding.expected else ""
            text = f"{finding.id}: {finding.outcome}{expected}. {finding.evidence}"
            self.canvas.badge(_MARGIN + 7, self.y + _LINE - 4, str(index), alarm=failed(finding))
            self._lines(text, _MARGIN + 22, "")
        if len(findings) > _MOST_FINDINGS:
            self.notes.append(
                f"{plural(len(findings) - _MOST_FINDINGS, 'finding')} more in report.json."
            )
        if self.report.gaps:
            self.notes.append(f"The recording has gaps: {'; '.join(self.report.gaps)}.")
        if self.report.truncated:
            self.notes.append("The recording breaks off.")
        for note in self.notes:
            self._lines(note, _MARGIN, "faint")

    def _lines(self, text: str, x: float, kind: str) -> None:
        for line in _wrapped(text, _WRAP, 3):
            self.y += _LINE
            self.canvas.text(x, self.y, line, kind)


def _decimals(distance: float) -> int:
    return len(f"{distance:.3f}".rstrip("0").partition(".")[2])


def _wrapped(text: str, width: int, most: int) -> list[str]:
    lines = textwrap.wrap(text, width, max_lines=most, placeholder=" …", break_on_hyphens=False)
    return lines or [""]
