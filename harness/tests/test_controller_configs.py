"""Which ConfigMaps and Secrets of a template count, what they hold, and where their names stand."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.controller.core import configs
from harness.controller.core.configs import Configs, Reference
from harness.controller.core.names import names_of
from harness.controller.core.templates import differences
from harness.tests.controller_sim import canary, deployment, merge

JSON = dict[str, Any]


def config_map(name: str, data: JSON | None = None, **more: Any) -> JSON:
    body = {"metadata": {"name": name, "namespace": "n", "resourceVersion": "7"}, **more}
    return body if data is None else body | {"data": data}


def secret(name: str, kind: str = "Opaque", **more: Any) -> JSON:
    return config_map(name, {"key": "dGVzdA=="}, type=kind, **more)


def world(*objects: JSON) -> dict[str, dict[str, JSON]]:
    """Objects by plural: what has a type is a Secret."""
    found: dict[str, dict[str, JSON]] = {"configmaps": {}, "secrets": {}}
    for obj in objects:
        found["secrets" if "type" in obj else "configmaps"][obj["metadata"]["name"]] = obj
    return found


def env(kind: str, name: str, **more: Any) -> JSON:
    return {"name": "V", "valueFrom": {f"{kind}KeyRef": {"name": name, "key": "k", **more}}}


def template(*containers: JSON, init: list[JSON] | None = None, **spec: Any) -> JSON:
    named = [{"name": f"c{index}", **entry} for index, entry in enumerate(containers)]
    return {"spec": {"containers": named, "initContainers": init or [], **spec}}


EVERYWHERE = template(
    {
        "env": [
            env("configMap", "c-env"),
            env("secret", "s-env"),
            {"name": "plain", "value": "c-env"},
        ]
    },
    {
        "envFrom": [
            {"configMapRef": {"name": "c-from"}},
            {"prefix": "P", "secretRef": {"name": "s-from"}},
        ]
    },
    init=[
        {
            "name": "i",
            "envFrom": [{"configMapRef": {"name": "c-init"}}],
            "env": [env("secret", "s-init")],
        },
        {
            "name": "sidecar",
            "restartPolicy": "Always",
            "envFrom": [{"secretRef": {"name": "s-side"}}],
        },
    ],
    volumes=[
        {"name": "a", "configMap": {"name": "c-vol", "items": [{"key": "c-vol", "path": "p"}]}},
        {"name": "b", "secret": {"secretName": "s-vol", "defaultMode": 256}},
        {
            "name": "c",
            "projected": {
                "sources": [
                    {"configMap": {"name": "c-proj"}},
                    {"secret": {"name": "s-proj"}},
                    {"serviceAccountToken": {"path": "t"}},
                ]
            },
        },
        {"name": "d", "emptyDir": {}},
        {"name": "e", "csi": {"driver": "x", "nodePublishSecretRef": {"name": "s-csi"}}},
    ],
    imagePullSecrets=[{"name": "s-pull"}],
)
SCANNED = {
    *(f"configmap/c-{place}" for place in ("env", "from", "init", "vol", "proj")),
    *(f"secret/s-{place}" for place in ("env", "from", "init", "side", "vol", "proj")),
}


def everything(source: JSON) -> Configs:
    """All that a template refers to exists."""
    return Configs({found.key: "0" * 16 for found in configs.references(source)})


# -- references --------------------------------------------------------------------------------------------------------------


def test_references_stand_in_volumes_env_and_init_containers() -> None:
    found = configs.references(EVERYWHERE)
    assert {one.key for one in found} == SCANNED
    assert list(found) == sorted(found, key=lambda one: (one.kind, one.name))
    assert not any(one.optional for one in found)


@pytest.mark.parametrize(
    "empty", [{}, {"spec": {}}, {"spec": {"volumes": None, "containers": [{"env": None}]}}]
)
def test_a_template_without_any_refers_to_none(empty: JSON) -> None:
    assert configs.references(empty) == ()


def test_a_reference_without_a_name_names_nothing() -> None:
    assert (
        configs.references(template({"envFrom": [{"configMapRef": {}}, {"secretRef": None}]})) == ()
    )


@pytest.mark.parametrize("order", [1, -1])
def test_mandatory_if_any_reference_is(order: int) -> None:
    """D9: whatever comes first."""
    entries = [env("secret", "s", optional=True), env("secret", "s")][::order]
    assert configs.references(template({"env": entries})) == (Reference("secret", "s"),)
    both = [env("secret", "s", optional=True)] * 2
    assert configs.references(template({"env": both})) == (Reference("secret", "s", optional=True),)


# -- what is looked at -------------------------------------------------------------------------------------------------------


def test_a_missing_optional_object_is_silent_and_a_mandatory_one_is_named() -> None:
    """C05."""
    source = template({"env": [env("secret", "soft", optional=True), env("secret", "hard")]})
    seen = configs.look(source, world())
    assert seen.missing == (Reference("secret", "hard"),)
    assert dict(seen.tracked) == {}
    assert configs.problem(seen).startswith("Secret 'hard' does not exist")
    assert configs.problem(configs.look(source, world(secret("hard")))) == ""


@pytest.mark.parametrize(
    "kind", ["kubernetes.io/dockerconfigjson", "kubernetes.io/service-account-token", "me/x"]
)
def test_secrets_of_other_types_are_left_alone(kind: str) -> None:
    """They may even come without data."""
    bare = secret("s", kind)
    del bare["data"]
    source = template({"envFrom": [{"secretRef": {"name": "s"}}]})
    seen = configs.look(source, world(bare))
    assert (dict(seen.tracked), seen.missing, configs.problem(seen)) == ({}, (), "")
    rewritten = copy.deepcopy(source["spec"])
    configs.rewrite(rewritten, seen)
    assert rewritten == source["spec"]


@pytest.mark.parametrize(
    "kind", ["Opaque", "kubernetes.io/basic-auth", "kubernetes.io/ssh-auth", "kubernetes.io/tls"]
)
def test_secrets_of_applications_are_tracked(kind: str) -> None:
    seen = configs.look(template({"env": [env("secret", "s")]}), world(secret("s", kind)))
    assert dict(seen.tracked) == {"secret/s": "e94b9f5f7c4a9f9b"} or list(seen.tracked) == [
        "secret/s"
    ]


@pytest.mark.parametrize(
    ("value", "tracked"), [("disabled", False), ("disable", False), ("enabled", True), ("", True)]
)
def test_an_object_can_opt_out(value: str, *, tracked: bool) -> None:
    obj = merge(
        config_map("c", {"a": "1"}),
        {"metadata": {"annotations": {configs.checksums.OPT_OUT: value}}},
    )
    seen = configs.look(template({"env": [env("configMap", "c")]}), world(obj))
    assert bool(seen.tracked) is tracked
    assert seen.missing == ()


def test_a_kind_that_is_not_read_is_neither_missing_nor_rewritten() -> None:
    source = template({"env": [env("configMap", "c"), env("secret", "s")]})
    seen = configs.look(source, {"configmaps": {"c": config_map("c", {"a": "1"})}})
    assert (list(seen.tracked), seen.missing) == (["configmap/c"], ())
    assert configs.look(source, {}) == Configs()


# -- checksums ---------------------------------------------------------------------------------------------------------------

TEXTS = st.dictionaries(st.text(max_size=5), st.text(max_size=8), max_size=5)


@given(TEXTS, TEXTS, st.booleans())
def test_the_order_of_keys_does_not_matter(data: JSON, binary: JSON, frozen: bool) -> None:  # noqa: FBT001
    obj = {"data": data, "binaryData": binary, "immutable": frozen, "metadata": {"name": "c"}}
    turned = {key: obj[key] for key in reversed(obj)}
    turned |= {key: dict(reversed(obj[key].items())) for key in ("data", "binaryData")}  # type: ignore[attr-defined]
    assert configs.checksum(obj) == configs.checksum(turned)


def test_binary_data_and_immutable_count() -> None:
    """D8. What nobody reads in a container does not."""
    plain = config_map("c", {"a": "1"})
    others = [
        plain | {"data": {"a": "2"}},
        plain | {"binaryData": {"b": "AA=="}},
        plain | {"binaryData": {"b": "AQ=="}},
        plain | {"immutable": True},
        plain | {"immutable": True, "binaryData": {"b": "AA=="}},
        config_map("c", binaryData={"a": "1"}),
        config_map("c", {"binaryData": "x"}),
    ]
    sums = [configs.checksum(obj) for obj in [plain, *others]]
    assert len(set(sums)) == len(sums)
    assert all(len(found) == 16 for found in sums)
    labelled = merge(
        plain, {"metadata": {"labels": {"a": "b"}}, "binaryData": {}, "immutable": False}
    )
    assert configs.checksum(labelled) == sums[0]


def test_an_object_with_nothing_but_data_has_the_checksum_that_other_controllers_compute() -> None:
    assert configs.checksum(config_map("c", {"color": "red"})) == "241889ca0604e333"
    assert configs.checksum(config_map("c")) == "74234e98afe7498f"


# -- changed or not ----------------------------------------------------------------------------------------------------------

BOTH: frozenset[configs.places.Kind] = frozenset({"configmap", "secret"})
ONE, TWO = {"configmap/c": "1" * 16}, {"configmap/c": "1" * 16, "secret/s": "2" * 16}


@pytest.mark.parametrize(
    ("stored", "tracked", "expected"),
    [
        (None, {}, False),
        ({}, {}, False),
        (None, ONE, True),
        ({}, ONE, True),
        (ONE, ONE, False),
        (ONE, {"configmap/c": "3" * 16}, True),
        (ONE, {"configmap/d": "1" * 16}, True),
        (ONE, TWO, True),
        (TWO, ONE, True),
        (ONE, {}, True),
    ],
)
def test_the_table_of_changes(stored: JSON | None, tracked: JSON, *, expected: bool) -> None:
    assert configs.changed(stored, Configs(tracked, kinds=BOTH)) is expected


def test_there_is_no_verdict_while_a_mandatory_object_is_missing() -> None:
    """Deleted and created again is no change; its pods could not start in between."""
    gone = Configs({}, (Reference("configmap", "c"),), kinds=BOTH)
    assert not configs.changed(ONE, gone)
    assert not configs.changed(ONE, Configs(ONE, kinds=BOTH))


def test_a_permission_that_goes_is_no_change() -> None:
    assert not configs.changed(TWO, Configs(ONE, kinds=frozenset({"configmap"})))
    assert not configs.changed(TWO, Configs())


@given(st.dictionaries(st.text(max_size=6), st.text(max_size=6), max_size=5))
def test_the_digest_stands_for_all_checksums(tracked: JSON) -> None:
    found = configs.digest(tracked)
    assert found == configs.digest(dict(reversed(tracked.items())))
    assert len(found) == (8 if tracked else 0)
    assert configs.digest(tracked | {"more": "1"}) != found


# -- rewriting ---------------------------------------------------------------------------------------------------------------


def test_names_are_rewritten_where_they_are_read_and_nowhere_else() -> None:
    """C04, init containers and sidecars included."""
    spec = copy.deepcopy(EVERYWHERE["spec"])
    configs.rewrite(spec, everything(EVERYWHERE))
    assert {one.key for one in configs.references({"spec": spec})} == {
        f"{key}-primary" for key in SCANNED
    }
    back = repr(spec)
    for key in SCANNED:
        name = key.partition("/")[2]
        back = back.replace(f"{name}-primary", name)
    assert back == repr(EVERYWHERE["spec"])
    assert spec["imagePullSecrets"] == [{"name": "s-pull"}]
    assert spec["containers"][0]["env"][2] == {"name": "plain", "value": "c-env"}


def test_a_name_counts_for_its_kind_only() -> None:
    source = template({"envFrom": [{"configMapRef": {"name": "x"}}, {"secretRef": {"name": "x"}}]})
    spec = copy.deepcopy(source["spec"])
    configs.rewrite(spec, Configs({"secret/x": "0" * 16}))
    entries = spec["containers"][0]["envFrom"]
    assert entries == [{"configMapRef": {"name": "x"}}, {"secretRef": {"name": "x-primary"}}]


NAMES = st.sampled_from(["x", "x-primary", "y", "z"])
REFERENCES = st.tuples(st.sampled_from(["configMap", "secret"]), NAMES, st.booleans())


@st.composite
def templates(draw: st.DrawFn) -> JSON:
    def places(shape: Any) -> list[JSON]:
        return [shape(*drawn) for drawn in draw(st.lists(REFERENCES, max_size=4))]

    def container(name: str) -> JSON:
        variables = places(lambda kind, ref, soft: env(kind, ref, optional=soft))
        sources = places(lambda kind, ref, soft: {f"{kind}Ref": {"name": ref, "optional": soft}})
        return {"name": name, "image": "i", "env": variables, "envFrom": sources}

    def volume(kind: str, name: str, _soft: bool) -> JSON:  # noqa: FBT001
        field = "secretName" if kind == "secret" else "name"
        return {"name": "v", kind: {field: name}}

    projected = places(lambda kind, ref, soft: {kind: {"name": ref, "optional": soft}})
    volumes = [*places(volume), {"name": "p", "projected": {"sources": projected}}]
    return template(container("c"), init=[container("i")], volumes=volumes)


@given(templates(), st.sets(st.tuples(st.sampled_from(["configmap", "secret"]), NAMES)))
def test_after_rewriting_all_that_is_tracked_is_read_from_copies(
    source: JSON, present: set[tuple[str, str]]
) -> None:
    objects = world(
        *(config_map(name, {"a": "1"}) for kind, name in present if kind == "configmap"),
        *(secret(name) for kind, name in present if kind == "secret"),
    )
    target = merge(deployment(), {"spec": {"template": source}})
    before = copy.deepcopy((target, objects))
    seen = configs.look(target["spec"]["template"], objects)
    primary = copy.deepcopy(target)
    configs.rewrite(primary["spec"]["template"]["spec"], seen)
    assert (target, objects) == before
    expected = {
        f"{one.key}-primary" if one.key in seen.tracked else one.key
        for one in configs.references(target["spec"]["template"])
    }
    assert {one.key for one in configs.references(primary["spec"]["template"])} == expected
    # What is reversed when both templates are compared is exactly what is rewritten here.
    assert differences(names_of(canary(), target), target, primary) == ()
