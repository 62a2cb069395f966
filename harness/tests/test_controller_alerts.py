"""Alerts: who wants which, what each type of provider is told, and the CRDs of providers and templates."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from harness.controller.core import alerts
from harness.controller.core.alert_payloads import PAYLOADS, Message
from harness.controller.core.decision import Alert
from harness.data import data_path
from harness.tests.outside_server import canary

JSON = dict[str, Any]
WARN = Alert("warn", "Failed checks", facts=True)


def entry(name: str, severity: str | None = None, **reference: str) -> JSON:
    found: JSON = {"name": name, "providerRef": {"name": name, **reference}}
    return found if severity is None else found | {"severity": severity}


# -- who is told -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("severity", "names"),
    [
        ("info", ["all", "none", "empty"]),
        ("warn", ["all", "warn", "none", "empty"]),
        ("error", ["all", "warn", "error", "none", "empty"]),
    ],
)
def test_an_entry_gets_its_severity_and_all_above_and_without_one_everything(
    severity: str, names: list[str]
) -> None:
    given = canary(
        alerts=[
            entry("all", "info"),
            entry("warn", "warn"),
            entry("error", "error"),
            entry("none"),
            entry("empty", ""),
        ]
    )
    assert [one.name for one in alerts.recipients(given, severity)] == names
    assert alerts.recipients(canary(), severity) == ()


def test_a_provider_is_beside_the_canary_unless_it_says_otherwise() -> None:
    given = canary(alerts=[entry("a"), entry("b", namespace="shared")])
    assert [one.namespace for one in alerts.recipients(given, "info")] == ["n", "shared"]
    assert alerts.problem(given) == ""
    message = alerts.problem(given, cross_namespace=False)
    assert "spec.analysis.alerts[1] (b): providerRef.namespace: 'shared'" in message


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "a"}, "[0] (a): providerRef.name is missing"),
        (entry("a", "fatal"), "[0] (a): severity: 'fatal' is unknown; allowed: info, warn, error"),
    ],
)
def test_an_entry_that_cannot_work_is_named(given: JSON, said: str) -> None:
    assert alerts.problem(canary(alerts=[given])).endswith(said)


# -- what is told ------------------------------------------------------------------------------------------------------------


def test_facts_are_listed_when_asked_for_and_the_cluster_when_it_has_a_name() -> None:
    assert alerts.facts(canary(), Alert("info", "x")) == ()
    assert alerts.facts(canary(), Alert("info", "x"), "eu-1") == (("Cluster", "eu-1"),)
    assert alerts.facts(canary(), WARN, "eu-1") == (
        ("Cluster", "eu-1"),
        ("Target", "Deployment/web.n"),
        ("Failed checks threshold", "2"),
        ("Progress deadline", "600s"),
        ("Traffic routing", "Blue/Green"),
    )


@pytest.mark.parametrize(
    ("provider", "analysis", "said"),
    [
        ("kubernetes", {"iterations": 0, "stepWeight": 10}, "Blue/Green"),
        ("istio", {}, "Blue/Green"),
        ("istio", {"match": [{}]}, "A/B testing"),
        ("istio", {"iterations": 0, "stepWeight": 10, "maxWeight": 50.0}, "Weight, step 10, at"),
        ("istio", {"iterations": 0, "stepWeights": [1, 10]}, "Weight, steps 1, 10"),
    ],
)
def test_routing_is_told_in_words(provider: str, analysis: JSON, said: str) -> None:
    given = canary(**analysis)
    given["spec"]["provider"] = provider
    assert alerts.routing(given).startswith(said)


MESSAGE = Message(
    "web", "n", "error", "Rolled back", (("Target", "Deployment/web.n"),), "bot", "ops"
)


@pytest.mark.parametrize("kind", ["slack", "rocket"])
def test_slack_and_rocket_get_an_attachment(kind: str) -> None:
    body = PAYLOADS[kind](MESSAGE, "https://chat.test/hook")
    assert (body["channel"], body["username"]) == ("ops", "bot")
    (attachment,) = body["attachments"]
    assert attachment["color"] == "danger"
    assert (attachment["author_name"], attachment["text"]) == ("web.n", "Rolled back")
    field = {"title": "Target", "value": "Deployment/web.n", "short": False}
    assert attachment["fields"] == [field]


def test_teams_gets_an_adaptive_card() -> None:
    body = PAYLOADS["msteams"](MESSAGE, "")
    (attachment,) = body["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    title, text, facts = attachment["content"]["body"]
    assert (title["text"], title["color"], text["text"]) == ("web.n", "Attention", "Rolled back")
    assert facts["facts"] == [{"title": "Target", "value": "Deployment/web.n"}]


def test_discord_gets_an_embed_that_pings_nobody_or_slack_s_format_where_it_asks_for_it() -> None:
    body = PAYLOADS["discord"](MESSAGE, "https://discord.test/api/webhooks/1/x")
    (embed,) = body["embeds"]
    assert (embed["title"], embed["description"]) == ("web.n", "Rolled back")
    assert body["allowed_mentions"] == {"parse": []}
    assert "attachments" in PAYLOADS["discord"](MESSAGE, "https://discord.test/1/x/slack?a=b")


def test_google_chat_gets_a_card_and_others_plain_data() -> None:
    (card,) = PAYLOADS["gchat"](MESSAGE, "")["cardsV2"]
    assert card["card"]["header"] == {"title": "web.n", "subtitle": "error"}
    (section,) = card["card"]["sections"]
    assert section["widgets"][1]["decoratedText"]["text"] == "Deployment/web.n"
    assert PAYLOADS["generic"](MESSAGE, "") == {
        "severity": "error",
        "name": "web",
        "namespace": "n",
        "message": "Rolled back",
        "facts": {"Target": "Deployment/web.n"},
    }


# -- the CRDs ----------------------------------------------------------------------------------------------------------------


def crd(plural: str) -> JSON:
    with data_path("fixtures", "crds", f"{plural}.yaml").open(encoding="utf-8") as file:
        document: JSON = YAML(typ="safe", pure=True).load(file)
    return document


def accepts(plural: str, spec: JSON) -> bool:
    (version,) = crd(plural)["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    return bool(jsonschema.Draft7Validator(schema).is_valid({"spec": spec}))


@pytest.mark.parametrize(
    ("plural", "spec", "valid"),
    [
        ("alertproviders", {"type": "slack", "address": "http://a"}, True),
        ("alertproviders", {"type": "gchat", "secretRef": {"name": "s"}}, True),
        ("alertproviders", {"type": "generic", "address": "http://a", "proxy": "http://p"}, True),
        ("alertproviders", {"type": "pager", "address": "http://a"}, False),
        ("alertproviders", {"type": "slack"}, False),
        ("alertproviders", {"type": "slack", "secretRef": {}}, False),
        ("metrictemplates", {"provider": {"type": "prometheus"}, "query": "up"}, True),
        ("metrictemplates", {"provider": {"type": "keptn", "region": "r"}, "query": "up"}, True),
        ("metrictemplates", {"provider": {"type": "carbon"}, "query": "up"}, False),
        ("metrictemplates", {"provider": {"type": "prometheus"}}, False),
        ("metrictemplates", {"query": "up"}, False),
    ],
)
def test_the_schemas_know_the_api(plural: str, spec: JSON, *, valid: bool) -> None:
    assert accepts(plural, spec) is valid


def test_every_type_that_the_schema_allows_can_be_told() -> None:
    (version,) = crd("alertproviders")["spec"]["versions"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert set(properties["type"]["enum"]) == set(PAYLOADS)
