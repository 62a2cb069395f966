"""Redaction: what is planted turns up nowhere, and what checks need stays."""

from __future__ import annotations

import base64
import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.run.redact import LAST_APPLIED, Redactor
from harness.run.secret_shapes import MARK, names_credential, scrub_shapes

if TYPE_CHECKING:
    from harness.model.timeline import JSON

SECRET = "pl4nted-S3cret/value+1"
TOKEN = "tok_9f8a77c2d1e0"
HOOK = "https://robot:hunter22@hooks.example.com/services/T0AB/B1CD/xyz987secret?sig=q1w2e3r4t5"
POD_SPEC: JSON = {
    "containers": [
        {
            "name": "web",
            "image": "registry.example/web@sha256:0123456789abcdef",
            "command": ["/bin/web", "--level=info", "--token-file=/run/token"],
            "args": ["--port", "8080"],
            "resources": {"requests": {"cpu": "1m"}},
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}},
            "volumeMounts": [{"name": "v", "mountPath": "/var/lib/data1"}],
        }
    ],
    "imagePullSecrets": [{"name": "pull-secret"}],
    "serviceAccountName": "web",
    "automountServiceAccountToken": False,
    "volumes": [
        {"name": "v", "secret": {"secretName": "web-tls"}},
        {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
    ],
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {"app": "web"}},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        }
    },
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
}


def deployment(container: JSON | None = None, **metadata: Any) -> JSON:
    spec = copy.deepcopy(POD_SPEC)
    spec["containers"][0].update(container or {})
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "ns", **metadata},
        "spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": spec}},
    }


def secret(value: str, key: str = "password") -> JSON:
    encoded = base64.b64encode(value.encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "ns"},
        "type": "Opaque",
        "data": {key: encoded},
    }


def clean(text: str, *values: str) -> None:
    for value in values:
        assert value not in text
        assert base64.b64encode(value.encode()).decode().rstrip("=") not in text


def test_of_a_secret_only_key_names_and_a_salted_digest_remain() -> None:
    redacted = Redactor("salt").object(secret(SECRET))
    assert redacted["metadata"] == {"name": "s", "namespace": "ns"}
    assert redacted["type"] == "Opaque"
    assert list(redacted["data"]) == ["password"]
    clean(json.dumps(redacted), SECRET)
    assert Redactor("salt").object(secret(SECRET)) == redacted
    assert Redactor("other").object(secret(SECRET)) != redacted


def test_secret_values_are_scrubbed_from_every_later_text_in_any_writing() -> None:
    redactor = Redactor("salt")
    redactor.object(secret(SECRET))
    encoded = base64.b64encode(SECRET.encode()).decode()
    text = f"plain {SECRET}, base64 {encoded}, url pl4nted-S3cret%2Fvalue%2B1"
    assert redactor.text(text) == f"plain {MARK}, base64 {MARK}, url {MARK}"


def test_multi_line_keys_and_registry_credentials_inside_a_secret_are_known_too() -> None:
    redactor = Redactor("salt")
    line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
    redactor.object(secret(f"-----BEGIN KEY-----\n{line}\n-----END KEY-----\n", "tls.key"))
    auth = base64.b64encode(b"robot:dockerPass77").decode()
    redactor.object(
        secret(json.dumps({"auths": {"r.example": {"auth": auth}}}), ".dockerconfigjson")
    )
    clean(redactor.text(f"{line} {auth} dockerPass77"), line, auth, "dockerPass77")


def test_config_map_values_become_digests() -> None:
    redactor = Redactor("salt")
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {"a.conf": SECRET},
    }
    redacted = redactor.object(obj)
    assert list(redacted["data"]) == ["a.conf"]
    clean(json.dumps(redacted), SECRET)


@pytest.mark.parametrize("kind", ["containers", "initContainers", "ephemeralContainers"])
def test_env_values_are_taken_out_of_every_container_wherever_a_template_is(kind: str) -> None:
    env = [
        {"name": "X", "value": TOKEN},
        {"name": "Y", "valueFrom": {"fieldRef": {"fieldPath": "a"}}},
    ]
    spec = {kind: [{"name": "c", "image": "i", "env": env}]}
    wrapped = {
        "kind": "ControllerRevision",
        "apiVersion": "apps/v1",
        "metadata": {"name": "r"},
        "data": {"spec": {"template": {"spec": spec}}},
    }
    redacted = Redactor("salt").object(wrapped)
    clean(json.dumps(redacted), TOKEN)
    container = redacted["data"]["spec"]["template"]["spec"][kind][0]
    assert container["env"] == [{"name": "X", "value": MARK}, env[1]]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", f"postgres://robot:{TOKEN}@db.example/web"),
        ("HEADER", f"Bearer {TOKEN}"),
        ("PASSWORD", TOKEN),
    ],
)
def test_the_secret_part_of_an_env_value_is_scrubbed_on_its_own(name: str, value: str) -> None:
    redactor = Redactor("salt")
    redactor.learn([deployment({"env": [{"name": name, "value": value}]})])
    clean(redactor.text(f"login with {TOKEN} failed"), TOKEN)


def test_last_applied_is_dropped_but_learned_from() -> None:
    redactor = Redactor("salt")
    applied = json.dumps(deployment({"env": [{"name": "X", "value": TOKEN}]}))
    redacted = redactor.object(
        deployment(annotations={LAST_APPLIED: applied, "note": f"see {TOKEN}"})
    )
    assert redacted["metadata"]["annotations"] == {"note": f"see {MARK}"}


def test_event_that_echoes_a_token_is_scrubbed() -> None:
    redactor = Redactor("salt")
    redactor.learn([deployment({"env": [{"name": "X", "value": TOKEN}]})])
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "message": f'exec "curl -H {TOKEN}" failed',
    }
    assert redactor.object(event)["message"] == f'exec "curl -H {MARK}" failed'


@pytest.mark.parametrize(
    "args",
    [
        [f"--token={TOKEN}"],
        ["--token", TOKEN],
        ["sh", "-c", f"run --db-password '{TOKEN}'"],
        ["sh", "-c", f"API_KEY={TOKEN} run"],
        ["curl", "-u", f"robot:{TOKEN}"],
        [f"postgres://user:{TOKEN}@db/x"],
        ["curl", "-H", f"Authorization: Bearer {TOKEN}"],
    ],
)
def test_credentials_in_arguments_are_redacted_and_remembered(args: list[str]) -> None:
    redactor = Redactor("salt")
    redacted = redactor.object(deployment({"args": args}))
    clean(json.dumps(redacted), TOKEN)
    clean(redactor.text(f"exited: {TOKEN}"), TOKEN)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("example.com/api-token", "abcdefgh"),
        ("note", "Bearer abcdef0123456789"),
        ("note", "https://u:p4ss@example.com/x"),
        ("note", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"),
    ],
)
def test_annotations_that_look_secret_are_redacted(key: str, value: str) -> None:
    redacted = Redactor("salt").object(deployment(annotations={key: value, "plain": "stays"}))
    annotations = redacted["metadata"]["annotations"]
    assert MARK in annotations[key]
    assert annotations["plain"] == "stays"
    for piece in ("abcdef", "p4ss", "c2ln"):
        assert piece not in annotations[key]


def canary() -> JSON:
    return {
        "apiVersion": "flagger.app/v1beta1",
        "kind": "Canary",
        "metadata": {"name": "web", "namespace": "ns"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metricsServer": "http://prom.example:9090",
            "analysis": {
                "interval": "1s",
                "webhooks": [
                    {
                        "name": "gate",
                        "type": "rollout",
                        "url": HOOK,
                        "metadata": {"cmd": f"hey {TOKEN}"},
                    }
                ],
                "alerts": [
                    {
                        "name": "a",
                        "severity": "info",
                        "address": HOOK,
                        "providerRef": {"name": "slack"},
                    }
                ],
            },
        },
        "status": {"phase": "Progressing", "conditions": [{"message": f"Post {HOOK}: EOF"}]},
    }


def test_webhook_and_alert_addresses_of_a_rollout_object_are_redacted() -> None:
    redactor = Redactor("salt")
    redacted = redactor.object(canary())
    text = json.dumps(redacted)
    clean(text, HOOK, "hunter22", "xyz987secret", "q1w2e3r4t5", TOKEN, "prom.example")
    hook = redacted["spec"]["analysis"]["webhooks"][0]
    assert (hook["name"], hook["type"], hook["url"]) == ("gate", "rollout", MARK)
    assert hook["metadata"] == {"cmd": MARK}
    assert redacted["spec"]["targetRef"] == canary()["spec"]["targetRef"]
    assert redacted["status"]["conditions"][0]["message"] == f"Post {MARK}: EOF"
    clean(
        redactor.text("GET /services/T0AB/B1CD/xyz987secret by robot:hunter22"),
        "hunter22",
        "xyz987secret",
    )


def test_alert_providers_and_metric_templates_lose_their_addresses() -> None:
    for kind, spec in (
        ("AlertProvider", {"type": "slack", "address": HOOK, "secretRef": {"name": "s"}}),
        ("MetricTemplate", {"provider": {"type": "prometheus", "address": HOOK}, "query": "up"}),
    ):
        obj = {
            "apiVersion": "flagger.app/v1beta1",
            "kind": kind,
            "metadata": {"name": "x"},
            "spec": spec,
        }
        redacted = Redactor("salt").object(obj)
        clean(json.dumps(redacted), HOOK, "hunter22")
        assert json.dumps(redacted).count(MARK) == 1


def test_managed_fields_keep_who_and_when() -> None:
    fields = [
        {
            "manager": "m",
            "operation": "Apply",
            "time": "t",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:x": {TOKEN: {}}},
        }
    ]
    redacted = Redactor("salt").object(deployment(managedFields=fields))
    assert redacted["metadata"]["managedFields"] == [
        {"manager": "m", "operation": "Apply", "time": "t"}
    ]


def test_what_checks_need_is_left_even_if_an_env_value_is_the_same() -> None:
    redactor = Redactor("salt")
    image = POD_SPEC["containers"][0]["image"]
    env = [
        {"name": "IMAGE", "value": image},
        {"name": "DATA", "value": "/var/lib/data1"},
        {"name": "MODE", "value": "production"},
    ]
    redacted = redactor.object(deployment({"env": env}))
    expected = deployment({"env": [{**row, "value": MARK} for row in env]})
    assert redacted == expected
    assert redactor.text("mode production") == "mode production"


def test_a_secret_that_is_an_ordinary_word_spares_names_and_parts_of_words() -> None:
    redactor = Redactor("salt")
    redactor.learn([secret("postgres"), secret("readonly"), deployment({"name": "postgres"})])
    assert redactor.text("postgres is up") == "postgres is up"
    assert redactor.text("readonlyfs readonly") == f"readonlyfs {MARK}"


def test_generated_checksums_and_hashes_are_no_credentials() -> None:
    obj = deployment(
        labels={"pod-template-hash": "76646bf46d"},
        annotations={"checksum/config": "0a1b" * 16, "deployment.kubernetes.io/revision": "2"},
    )
    assert Redactor("salt").object(obj) == obj


@pytest.mark.parametrize(
    "text",
    [
        'secret "web-token" not found',
        "couldn't get current server API group list: token: unauthorized",
        "--token-file=/run/token --secret-name web",
        'MountVolume.SetUp failed for volume "token" : references non-existent secret key: tls',
        "Basic requirements are met",
    ],
)
def test_ordinary_messages_are_left_alone(text: str) -> None:
    assert scrub_shapes(text) == text


def test_names_that_hold_credentials_are_told_from_names_that_point_at_them() -> None:
    assert names_credential("--token")
    assert names_credential("DB_PASSWORD")
    assert not names_credential("--token-file")
    assert not names_credential("secretName")


def test_a_report_or_scenario_is_redacted_deeply() -> None:
    redactor = Redactor("salt")
    redactor.learn([canary()])
    report = {
        "steps": [{"detail": f"Post {HOOK}"}],
        "merge": {"spec": {"containers": [{"env": [{"name": "A", "value": TOKEN}]}]}},
    }
    clean(json.dumps(redactor.json(report)), HOOK, TOKEN)


values = st.text(min_size=1, max_size=30)
words = st.from_regex(r"[a-z]{3,12}(-[a-z0-9]{2,5})?", fullmatch=True)
containers = st.fixed_dictionaries(
    {
        "name": words,
        "image": st.builds("registry.example/{}:{}".format, words, words),
        "args": st.lists(st.builds("--{}={}".format, words, words), max_size=3),
        "resources": st.dictionaries(words, st.dictionaries(words, words, max_size=2), max_size=2),
        "env": st.lists(st.fixed_dictionaries({"name": words, "value": values}), max_size=3),
        "readinessProbe": st.fixed_dictionaries(
            {"httpGet": st.fixed_dictionaries({"path": words})}
        ),
    }
)


@settings(max_examples=40, deadline=None)
@given(st.lists(containers, min_size=1, max_size=3), st.dictionaries(words, words, max_size=3))
def test_redaction_changes_nothing_but_env_and_is_idempotent(
    rows: list[JSON], labels: dict[str, str]
) -> None:
    rows = [
        {**row, "env": [v for v in row["env"] if not names_credential(v["name"])]} for row in rows
    ]
    for row in rows:
        row["args"] = [a for a in row["args"] if not names_credential(a)]
    labels = {k: v for k, v in labels.items() if not names_credential(k)}
    obj = deployment()
    obj["spec"]["template"]["spec"]["containers"] = rows
    obj["spec"]["template"]["metadata"]["labels"] = labels
    redactor = Redactor("salt")
    before = copy.deepcopy(obj)
    once = redactor.object(obj)
    assert obj == before
    assert redactor.object(once) == once
    expected = copy.deepcopy(obj)
    for row in expected["spec"]["template"]["spec"]["containers"]:
        for variable in row["env"]:
            variable["value"] = MARK
    assert once == expected


@settings(max_examples=40, deadline=None)
@given(values, st.text(max_size=20), st.text(max_size=20))
def test_no_text_that_contains_a_distinctive_secret_survives(
    value: str, left: str, right: str
) -> None:
    redactor = Redactor("salt")
    planted = f"Zq9{value}!7x"
    redactor.object(secret(planted))
    assert planted not in redactor.text(left + planted + right)


def test_the_machine_that_the_scheduler_runs_on_is_not_named() -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1"},
        "reportingComponent": "default-scheduler",
        "reportingInstance": "default-scheduler-my-laptop",
        "source": {"component": "default-scheduler"},
    }
    redacted = Redactor().object(event)
    assert "my-laptop" not in json.dumps(redacted)
    assert redacted["source"] == {"component": "default-scheduler"}


def test_names_of_new_objects_cost_nothing_unless_a_secret_stands_in_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    redactor = Redactor("salt")
    compiled: list[int] = []
    real = Redactor._compile

    def counting(self: Redactor) -> None:
        compiled.append(1)
        real(self)

    monkeypatch.setattr(Redactor, "_compile", counting)
    env = [{"name": "GREETING", "value": "x7-greeting"}]
    redactor.learn([{"kind": "Pod", "metadata": {}, "spec": {"containers": [{"env": env}]}}])
    assert redactor.text("says x7-greeting") == "says [redacted]"
    for number in range(100):
        redactor.object({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"web-{number}"}})
        redactor.text(f"web-{number} started")
    assert len(compiled) == 1
    # A name that holds the value shows that it is none.
    redactor.object({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod-x7-greeting"}})
    assert redactor.text("says x7-greeting") == "says x7-greeting"
    assert len(compiled) == 2
