"""Templates: sandboxed, strict, native for scalars, traced back to their lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.scenario.template import TemplateFault, render_file, render_scalar

if TYPE_CHECKING:
    from pathlib import Path

_VALUES: dict[str, Any] = {"n": 2, "on": True, "none": None, "text": "1.10", "items": [1, 2]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ n }}", 2),
        ("{{ on }}", True),
        ("{{- text -}}", "1.10"),
        ("{{ items }}", [1, 2]),
        ("{{ n + 1 }}", 3),
        ("{{ '}}' }}", "}}"),
        ("{{ n }}s", "2s"),
        ("{{ n }}{{ n }}", "22"),
        ("{% if on %}7{% endif %}", "7"),
    ],
)
def test_a_scalar_of_one_expression_keeps_its_type_and_others_are_text(
    text: str, value: Any
) -> None:
    rendered = render_scalar(text, _VALUES)
    assert rendered == value
    assert type(rendered) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ m }}", "value 'm' is not declared"),
        ("{{ m }} x", "value 'm' is not declared"),
        ("{{ tex }}", "value 'tex' is not declared; did you mean 'text'?"),
        ("{{ n.foo }}", "has no attribute 'foo'"),
        ("{{ n", "is not a template"),
        ("{{ 1 / 0 }}", "cannot be rendered: division by zero"),
        ("{{ text.__class__ }}", "is not allowed in a template"),
        ("{{ items.append(1) }}", "is not allowed in a template"),
        ("{{ 'x' * 1000000 }}", "is not allowed in a template"),
        ("{{ n ** 1000000 }}", "is not allowed in a template"),
        ("{% include 'x' %}", "cannot be rendered"),
    ],
)
def test_a_scalar_that_cannot_be_rendered_says_why(text: str, message: str) -> None:
    with pytest.raises(TemplateFault) as caught:
        render_scalar(text, _VALUES)
    assert message in str(caught.value)


def test_lines_are_traced_back_through_includes_loops_and_conditions(tmp_path: Path) -> None:
    (tmp_path / "a.j2").write_text(
        'one: 1\n{% if on %}\ntwo: {{ n }}\n{% endif %}\n{% include "b.j2" %}\n'
        "{% for i in items %}\nlist{{ i }}: {{ i }}\n{% endfor %}\nlast: 1\n"
    )
    (tmp_path / "b.j2").write_text("{# a comment #}\nthree: 3\n")
    rendered = render_file(tmp_path, "a.j2", _VALUES)
    lines = dict(zip(rendered.text.splitlines(), rendered.origins, strict=False))
    assert lines["one: 1"] == ("a.j2", 1)
    assert lines["two: 2"] == ("a.j2", 3)
    assert lines["three: 3"] == ("b.j2", 2)
    assert lines["list2: 2"] == ("a.j2", 7)
    assert lines["last: 1"] == ("a.j2", 9)


def test_a_fault_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "a.j2").write_text('x\n{% include "b.j2" %}\n')
    (tmp_path / "b.j2").write_text("\n\n{{ missing }}\n")
    with pytest.raises(TemplateFault) as caught:
        render_file(tmp_path, "a.j2", _VALUES)
    assert (caught.value.file, caught.value.line) == ("b.j2", 3)


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "link"])
def test_nothing_is_included_from_outside_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("planted")
    folder = tmp_path / "scenario"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "a.j2").write_text(f'{{% include "{name}" %}}')
    with pytest.raises(TemplateFault, match="outside"):
        render_file(folder, "a.j2", {})


def test_an_include_by_a_computed_name_that_never_ends_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.j2").write_text('{% set name = "a.j2" %}{% include name %}')
    with pytest.raises(TemplateFault, match="includes itself"):
        render_file(tmp_path, "a.j2", {})
