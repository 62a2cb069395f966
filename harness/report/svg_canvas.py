"""Drawing for the picture of a drill: elements, text that fits, the time axis, and the colours for light and dark.

SVG 1.1 with a style sheet of plain classes: no variables, scripts, fonts or other resources, so that every viewer shows it.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Final, NamedTuple

from harness.report.text import ELLIPSIS, xml_clean

WIDTH: Final = 960
_SANS: Final = 0.6
_BOLD: Final = 0.68
"""Width of an average character, as a part of the font's size; rather too wide than too narrow."""
_SQUARES: Final = 0x2E80

_COLOURS: Final = {
    "paper": ("#ffffff", "#0d1117"),
    "ink": ("#1f2328", "#e6edf3"),
    "faint": ("#59636e", "#9198a1"),
    "rule": ("#d1d9e0", "#3d444d"),
    "band0": ("#f6f8fa", "#151b23"),
    "band1": ("#e9eef3", "#1d2630"),
    "good": ("#d7f2de", "#12331d"),
    "bad": ("#fbdedc", "#43191b"),
    "frozen": ("#d5eef6", "#0f3440"),
    "primary": ("#0a62c9", "#5aa9ff"),
    "target": ("#c2620a", "#f2a33c"),
    "other": ("#6e7781", "#9da7b3"),
    "pending": ("#d1242f", "#ff6b63"),
    "change": ("#7a3fc4", "#c297ff"),
}
"""Each for light and for dark."""
_RULES: Final = """
.paper{{fill:{paper}}}
text{{fill:{ink}}}
.faint{{fill:{faint}}}
.pod{{stroke:{paper}}}
.rule{{stroke:{rule}}}
.band0{{fill:{band0}}}
.band1{{fill:{band1}}}
.Succeeded{{fill:{good}}}
.Failed{{fill:{bad}}}
.Frozen{{fill:{frozen}}}
.leader,.weight{{stroke:{faint}}}
.primary{{stroke:{primary}}}
.target{{stroke:{target}}}
.other{{stroke:{other}}}
.pending,.mark{{stroke:{pending}}}
.number{{fill:{paper}}}
.alarm{{fill:{pending}}}
.change{{stroke:{change}}}
.changed{{fill:{change}}}
"""
_SHAPES: Final = """
text{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;font-size:11px}
.title{font-size:16px;font-weight:600}
.lead{font-size:12px}
.strong,.number{font-weight:600}
.number{font-size:9.5px}
.pod{paint-order:stroke;stroke-width:2.5;stroke-linejoin:round;stroke-opacity:.8}
path,line{fill:none;stroke-width:1}
.bar{stroke-width:9}
.soft{stroke-opacity:.38}
.leaving{stroke-dasharray:4 2.5}
.change{stroke-width:1.5}
.mark{stroke-width:3}
.guide{stroke-width:1;stroke-dasharray:1 3}
.weight{stroke-width:1.5}
"""


def css() -> str:
    """Return the style sheet: shapes, the light colours, and the dark ones for whoever prefers them."""
    light, dark = (
        _RULES.format(**{name: pair[i] for name, pair in _COLOURS.items()}) for i in (0, 1)
    )
    return f"{_SHAPES}{light.lstrip()}@media (prefers-color-scheme:dark){{{dark}}}\n"


def number(value: float) -> str:
    """Return a length in pixels as text, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")


def width_of(text: str, size: float = 11, *, bold: bool = False) -> float:
    """Return about how wide a text is, in pixels."""
    part = _BOLD if bold else _SANS
    # A Chinese, Japanese or Korean character takes a square.
    return sum(size if ord(char) > _SQUARES else size * part for char in text)


def fitted(text: object, room: float, size: float = 11) -> str:
    """Return a text that is cut in its middle if it is too wide: names differ at either end."""
    plain = " ".join(xml_clean(text).split())
    if width_of(plain, size) <= room:
        return plain
    room -= width_of(ELLIPSIS, size)
    kept = min(len(plain), max(int(room / (size * _SANS)), 2))
    while kept > 2 and width_of(plain[:kept], size) > room:  # noqa: PLR2004 - one character on each side
        kept -= 1
    return f"{plain[: kept - kept // 2]}{ELLIPSIS}{plain[len(plain) - kept // 2 :]}"


class Scale(NamedTuple):
    """From seconds after time zero to pixels."""

    left: float
    right: float
    seconds: float

    def x(self, t: float) -> float:
        """Return where a moment is; what is outside of the picture is put at its edge."""
        part = min(max(t / self.seconds, 0.0), 1.0)
        return self.left + part * (self.right - self.left)

    def ticks(self, most: int = 12) -> tuple[float, list[float]]:
        """Return the distance of the ticks and the ticks: multiples of 1, 2 or 5 times a power of ten."""
        step = 10.0**-3
        while True:
            for factor in (1, 2, 5):
                if self.seconds / (step * factor) <= most:
                    distance = step * factor
                    count = int(self.seconds / distance + 1e-9)
                    return distance, [i * distance for i in range(count + 1)]
            step *= 10


class Canvas:
    """A picture in the making. What is drawn in `back` lies behind everything else."""

    def __init__(self, title: str, description: str) -> None:
        self.root = ET.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "version": "1.1",
                "role": "img",
                "aria-labelledby": "drill-title drill-desc",
            },
        )
        self._words(self.root, "title", title).set("id", "drill-title")
        self._words(self.root, "desc", description).set("id", "drill-desc")
        self._style = ET.SubElement(self.root, "style")
        self._style.text = css()
        self.back = ET.SubElement(self.root, "g")
        self.front = ET.SubElement(self.root, "g")

    def style(self, rules: str) -> None:
        """Add rules to the style sheet."""
        self._style.text = f"{self._style.text}{rules}"

    def text(self, x: float, y: float, text: object, kind: str = "", anchor: str = "") -> None:
        """Write a text whose baseline begins, or with an anchor is in the middle or ends, at a place."""
        fields = {"x": number(x), "y": number(y)}
        fields |= {"class": kind} if kind else {}
        fields |= {"text-anchor": anchor} if anchor else {}
        ET.SubElement(self.front, "text", fields).text = xml_clean(text)

    def line(
        self, kind: str, start: tuple[float, float], end: tuple[float, float], *, back: bool = False
    ) -> None:
        """Draw a straight line."""
        self._add("line", kind, back=back, x1=start[0], y1=start[1], x2=end[0], y2=end[1])

    def rect(
        self, kind: str, start: tuple[float, float], end: tuple[float, float], hint: str
    ) -> None:
        """Fill a rectangle between two corners, behind everything else; it says what it is when it is pointed at."""
        (x, y), width, height = start, end[0] - start[0], end[1] - start[1]
        rect = self._add("rect", kind, back=True, x=x, y=y, width=width, height=height)
        self._words(rect, "title", hint)

    def badge(self, x: float, y: float, label: str, *, alarm: bool) -> None:
        """Draw a number in a disc around a place."""
        kind = "alarm" if alarm else "faint"
        self._add("circle", kind, cx=x, cy=y, r=7)
        self.text(x, y + 3.4, label, "number", "middle")

    def path(self, kind: str, shape: str, parent: ET.Element | None = None) -> None:
        """Draw a path."""
        element = self.front if parent is None else parent
        ET.SubElement(element, "path", {"class": kind, "d": shape})

    def group(self, hint: str) -> ET.Element:
        """Begin a group that says what it is when it is pointed at."""
        group = ET.SubElement(self.front, "g")
        self._words(group, "title", hint)
        return group

    def done(self, height: float) -> str:
        """Return the picture's text."""
        size = {"width": str(WIDTH), "height": number(height)}
        self.root.attrib.update(size, viewBox=f"0 0 {WIDTH} {number(height)}")
        paper = ET.Element("rect", {"class": "paper", **size})
        self.back.insert(0, paper)
        ET.indent(self.root, space="")
        return ET.tostring(self.root, encoding="unicode", xml_declaration=False) + "\n"

    def _add(self, tag: str, kind: str, *, back: bool = False, **lengths: float) -> ET.Element:
        fields = {name: number(value) for name, value in lengths.items()}
        return ET.SubElement(self.back if back else self.front, tag, {"class": kind, **fields})

    def _words(self, parent: ET.Element, tag: str, text: str) -> ET.Element:
        element = ET.SubElement(parent, tag)
        element.text = xml_clean(text)
        return element
