"""The primary's copies of ConfigMaps and Secrets: what they hold, whose they are, and what is never overwritten."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.controller.core import Write, configs, managed
from harness.controller.core.configs import Copies
from harness.controller.core.moments import seconds
from harness.controller.core.names import names_of
from harness.controller.core.ownership import owner_reference
from harness.controller.core.patches import difference
from harness.kube.fake_patches import merge_patch
from harness.tests.controller_sim import canary, deployment, merge
from harness.tests.test_controller_configs import config_map, env, secret, template, world

JSON = dict[str, Any]

CANARY = merge(canary(), {"metadata": {"uid": "u-web"}})
OTHER = merge(canary(), {"metadata": {"name": "api", "uid": "u-api"}})
TEMPLATE = template({"env": [env("configMap", "c"), env("secret", "s")]})
SOURCE = config_map("c", {"a": "1"}, binaryData={"b": "AA=="})


def run(*objects: JSON, owner: JSON = CANARY, source: JSON = TEMPLATE) -> Copies:
    held = world(*objects)
    before = copy.deepcopy(held)
    seen = configs.look(source, held)
    result = configs.copies(owner, names_of(owner, deployment()), seen, held)
    assert held == before
    return result


def carried_out(write: Write, *objects: JSON) -> JSON:
    """What the server holds after a write."""
    existing = next((obj for obj in objects if obj["metadata"]["name"] == write.name), None)
    done: JSON = write.body if write.verb == "create" else merge_patch(existing, write.body)
    held: JSON = merge(done, {"metadata": {"resourceVersion": "8"}})
    return held


def owned(obj: JSON, *owners: JSON) -> JSON:
    result: JSON = merge(obj, {"metadata": {"ownerReferences": list(owners)}})
    return result


MINE, THEIRS = owner_reference(CANARY), owner_reference(OTHER)
ALONGSIDE = THEIRS | {"controller": False}


def test_a_copy_has_content_and_owner_and_nothing_else() -> None:
    labelled = merge(
        SOURCE,
        {"metadata": {"labels": {"sync": "me"}, "annotations": {"a": "b"}}, "immutable": True},
    )
    tls = secret("s", "kubernetes.io/tls")
    first, second = run(labelled, tls).writes
    assert (first.verb, first.resource, first.name) == ("create", "configmaps", "c-primary")
    assert first.body == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c-primary", "namespace": "n", "ownerReferences": [MINE]},
        "data": {"a": "1"},
        "binaryData": {"b": "AA=="},
    }
    assert (second.resource, second.body["kind"], second.body["type"]) == (
        "secrets",
        "Secret",
        tls["type"],
    )
    assert second.body["data"] == tls["data"]


def test_what_is_right_is_not_written_again() -> None:
    objects = [SOURCE, secret("s")]
    copies = [carried_out(write) for write in run(*objects).writes]
    assert run(*objects, *copies) == Copies()


def test_only_what_differs_is_patched() -> None:
    held = owned(config_map("c-primary", {"a": "1", "old": "x"}), MINE)
    (write, _) = run(config_map("c", {"a": "2"}), secret("s"), held).writes
    assert write == Write(
        "patch", "configmaps", "c-primary", {"data": {"a": "2", "old": None}}, "7"
    )


def test_a_key_that_was_the_last_goes_too() -> None:
    held = owned(config_map("c-primary", {"a": "1"}), MINE)
    source = config_map("c", binaryData={"b": "AA=="})
    (write, _) = run(source, secret("s"), held).writes
    assert carried_out(write, held)["binaryData"] == {"b": "AA=="}
    assert "data" not in carried_out(write, held)


def test_what_is_not_tracked_is_not_copied() -> None:
    out = merge(SOURCE, {"metadata": {"annotations": {"flagger.app/config-tracking": "disabled"}}})
    assert run(out, secret("s", "kubernetes.io/dockercfg")) == Copies()


# -- immutable, and types ----------------------------------------------------------------------------------------------------


def test_an_immutable_copy_is_replaced_only_when_its_content_must_change() -> None:
    frozen = owned(config_map("c-primary", {"a": "1"}, immutable=True), MINE)
    frozen["metadata"]["labels"] = {"k": "v"}
    assert not [
        w
        for w in run(config_map("c", {"a": "1"}), secret("s"), frozen).writes
        if w.resource == "configmaps"
    ]
    gone, made, _ = run(config_map("c", {"a": "2"}), secret("s"), frozen).writes
    assert gone == Write("delete", "configmaps", "c-primary", {}, "7")
    assert (made.verb, made.body["data"], made.body["metadata"]["labels"]) == (
        "create",
        {"a": "2"},
        {"k": "v"},
    )
    assert "immutable" not in made.body


def test_an_immutable_copy_can_still_get_an_owner() -> None:
    frozen = owned(config_map("c-primary", {"a": "1"}, immutable=True), THEIRS)
    (write, _) = run(config_map("c", {"a": "1"}), secret("s"), frozen).writes
    assert (write.verb, write.body) == (
        "patch",
        {"metadata": {"ownerReferences": [MINE, ALONGSIDE]}},
    )


def test_a_secret_of_another_type_is_replaced() -> None:
    held = owned(secret("s-primary"), MINE)
    verbs = [
        w.verb
        for w in run(SOURCE, secret("s", "kubernetes.io/tls"), held).writes
        if w.resource == "secrets"
    ]
    assert verbs == ["delete", "create"]


# -- owners ------------------------------------------------------------------------------------------------------------------


def test_canaries_that_share_a_config_share_its_copy_and_never_take_turns() -> None:
    objects = [SOURCE, secret("s")]
    held = [owned(config_map("c-primary", {"a": "0"}), THEIRS), owned(secret("s-primary"), THEIRS)]
    writes = run(*objects, *held).writes
    held = [carried_out(write, *held) for write in writes]
    for obj in held:
        assert obj["metadata"]["ownerReferences"] == [MINE, ALONGSIDE]
    assert run(*objects, *held) == Copies()
    assert run(*objects, *held, owner=OTHER) == Copies()


def test_a_canary_that_was_made_again_takes_the_copies_of_its_former_self() -> None:
    former = MINE | {"uid": "u-before"}
    held = owned(config_map("c-primary", {"a": "1"}), former)
    (write, _) = run(config_map("c", {"a": "1"}), secret("s"), held).writes
    assert write.body == {"metadata": {"ownerReferences": [MINE]}}


def test_the_last_one_left_takes_control() -> None:
    held = owned(config_map("c-primary", {"a": "1"}), MINE | {"controller": False})
    (write, _) = run(config_map("c", {"a": "1"}), secret("s"), held).writes
    assert write.body == {"metadata": {"ownerReferences": [MINE]}}


@pytest.mark.parametrize(
    ("owners", "whose"),
    [
        ([], "belongs to no Canary"),
        ([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}], "belongs to no Canary"),
        ([MINE | {"kind": "Sync", "apiVersion": "x/v1", "uid": "2"}], "belongs to Sync 'web'"),
        (
            [
                {"apiVersion": "x/v1", "kind": "Sync", "name": "y", "uid": "2", "controller": True},
                THEIRS | {"controller": False},
            ],
            "belongs to Sync 'y'",
        ),
        ([MINE | {"apiVersion": "other.io/v1", "uid": "2"}], "belongs to Canary 'web'"),
    ],
)
def test_a_foreign_object_is_never_overwritten(owners: list[JSON], whose: str) -> None:
    held = owned(config_map("c-primary", {"mine": "x"}), *owners)
    result = run(SOURCE, secret("s"), held)
    assert result.writes == ()
    assert result.problem.startswith(
        f"ConfigMap 'c-primary' {whose} and holds something else than 'c'"
    )
    same = owned(SOURCE | {"metadata": {"name": "c-primary", "resourceVersion": "7"}}, *owners)
    assert [w.name for w in run(SOURCE, secret("s"), same).writes] == ["s-primary"]


# -- problems ----------------------------------------------------------------------------------------------------------------


def test_nothing_is_copied_while_a_mandatory_object_is_missing() -> None:
    result = run(SOURCE)
    assert (result.writes, result.problem.partition(":")[0]) == (
        (),
        "Secret 's' does not exist, and the pod template does not call it optional",
    )


@pytest.mark.parametrize(("length", "fits"), [(245, True), (246, False)])
def test_a_name_too_long_for_its_copy_is_said(length: int, *, fits: bool) -> None:
    name = "c" * length
    source = template({"env": [env("configMap", name)]})
    result = run(config_map(name, {"a": "1"}), source=source)
    assert bool(result.writes) is fits
    assert ("at most 245 are possible" in result.problem) is not fits


# -- statuses that somebody else wrote ---------------------------------------------------------------------------------------


def written(
    obj: JSON, time: str, field: str = "f:binaryData", made: str = "2024-01-01T00:00:00Z"
) -> JSON:
    entry = {"manager": "kubectl", "time": time, "fieldsV1": {field: {"f:key": {}}}}
    obj = merge(obj, {"metadata": {"creationTimestamp": made}})
    obj["metadata"]["managedFields"] = [entry]
    # As it comes out of the cache.
    obj["metadata"]["managedFields"] = managed.reduced(obj)
    return obj


SINCE = seconds("2025-01-01T00:00:10Z")
PLAIN = configs.checksum(config_map("c", {"a": "1"}))
ONLY_MAP = template({"env": [env("configMap", "c")]})


@pytest.mark.parametrize(
    ("obj", "stored", "moved"),
    [
        # Flagger's checksum leaves binaryData out, so it differs from ours although nothing happened.
        (written(SOURCE, "2025-01-01T00:00:09Z"), PLAIN, False),
        (written(SOURCE, "2025-01-01T00:00:10Z"), PLAIN, True),
        (written(SOURCE, "2025-01-01T00:00:11Z", "f:data"), "computed in another way", True),
        (written(SOURCE, "2025-01-01T00:00:11Z", "f:metadata"), PLAIN, False),
        (written(SOURCE, "2024-01-01T00:00:00Z", made="2025-01-01T00:00:12Z"), PLAIN, True),
        # An equal checksum absolves, whatever was written.
        (written(config_map("c", {"a": "1"}), "2025-01-01T00:00:11Z"), PLAIN, False),
        (SOURCE, PLAIN, False),
    ],
)
def test_another_controller_s_checksums_need_evidence(
    obj: JSON, stored: str, *, moved: bool
) -> None:
    held = world(obj)
    now = configs.look(ONLY_MAP, held)
    found = configs.moved_since({"configmap/c": stored}, now, held, SINCE)
    assert found == (("configmap/c",) if moved else ())
    assert configs.moved_since({"configmap/c": stored}, now, held, None) == ()


# -- patches -----------------------------------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


def bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items() if item is not None}
    return [bare(item) for item in value] if isinstance(value, list) else value


@given(OBJECTS, OBJECTS)
def test_a_patch_leads_to_what_is_wanted_and_is_empty_when_there_is_nothing_to_do(
    held: JSON, wanted: JSON
) -> None:
    patch = difference(held, wanted)
    assert bare(merge_patch(held, patch)) == bare(wanted)
    assert (patch == {}) is (bare(held) == bare(wanted))
    assert difference(merge_patch(held, patch), wanted) == {}
