"""What is posted to each type of AlertProvider (spec canary-api 7).

Written here and not left to a notification library on purpose. An AlertProvider's `address` is the complete URL of an incoming webhook, on
any host: self-hosted chats that speak Slack's format, gateways, receivers in tests. Apprise, the maintained one, builds its URLs itself, from
tokens and for the vendors' own hosts only; it also takes a thread per message, which nothing can cancel. What remains is five small JSON bodies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.controller.core.alerts import Fact

JSON = dict[str, Any]

DEFAULT_USERNAME: Final = "flagger"
DEFAULT_CHANNEL: Final = "general"
"""Defaults of the API, kept: channels and filters of existing installations know them."""
_SLACK_COLOURS: Final = {"info": "good", "warn": "warning", "error": "danger"}
_COLOURS: Final = {"info": 0x2EB67D, "warn": 0xE0A100, "error": 0xD92D20}
_CARD_COLOURS: Final = {"info": "Good", "warn": "Warning", "error": "Attention"}


@dataclass(frozen=True, slots=True)
class Message:
    """An alert, ready to be told."""

    name: str
    """The Canary."""
    namespace: str
    severity: str
    """info, warn or error."""
    text: str
    facts: Sequence[Fact] = ()
    username: str = DEFAULT_USERNAME
    channel: str = DEFAULT_CHANNEL

    @property
    def title(self) -> str:
        """Which Canary."""
        return f"{self.name}.{self.namespace}"


def slack(message: Message, _address: str = "") -> JSON:
    """Return an incoming webhook's body, with one attachment; Rocket.Chat takes the same."""
    fields = [{"title": title, "value": value, "short": False} for title, value in message.facts]
    return {
        "channel": message.channel,
        "username": message.username,
        "attachments": [
            {
                "color": _SLACK_COLOURS[message.severity],
                "author_name": message.title,
                "fallback": f"{message.title}: {message.text}",
                "text": message.text,
                "mrkdwn_in": ["text"],
                "fields": fields,
            }
        ],
    }


def msteams(message: Message, _address: str = "") -> JSON:
    """Return a message with an adaptive card: what workflows take, and the older connectors took too."""
    text = {"type": "TextBlock", "wrap": True}
    title = {**text, "text": message.title, "weight": "Bolder"}
    body: list[JSON] = [
        {**title, "color": _CARD_COLOURS[message.severity]},
        {**text, "text": message.text},
    ]
    if message.facts:
        facts = [{"title": title, "value": value} for title, value in message.facts]
        body.append({"type": "FactSet", "facts": facts})
    card = {"type": "AdaptiveCard", "version": "1.4", "body": body}
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}


def discord(message: Message, address: str = "") -> JSON:
    """Return a webhook's body with one embed; an address that ends in `/slack` is Discord's own reader of Slack's format."""
    if urlsplit(address).path.rstrip("/").endswith("/slack"):
        return slack(message)
    fields = [{"name": title, "value": value, "inline": False} for title, value in message.facts]
    embed = {
        "title": message.title,
        "description": message.text,
        "color": _COLOURS[message.severity],
        "fields": fields,
    }
    # Nobody named in a message of ours is to be pinged.
    return {
        "username": message.username,
        "embeds": [embed],
        "allowed_mentions": {"parse": []},
    }


def gchat(message: Message, _address: str = "") -> JSON:
    """Return a Google Chat message: a card, and the text for notifications."""
    widgets: list[JSON] = [{"textParagraph": {"text": message.text}}]
    widgets += [
        {"decoratedText": {"topLabel": title, "text": value}} for title, value in message.facts
    ]
    header = {"title": message.title, "subtitle": message.severity}
    card = {"header": header, "sections": [{"widgets": widgets}]}
    text = f"{message.severity}: {message.title}: {message.text}"
    return {"text": text, "cardsV2": [{"cardId": "canary", "card": card}]}


def generic(message: Message, _address: str = "") -> JSON:
    """Return the alert as plain data, for receivers of one's own. Not in Flagger's API."""
    return {
        "severity": message.severity,
        "name": message.name,
        "namespace": message.namespace,
        "message": message.text,
        "facts": dict(message.facts),
    }


PAYLOADS: Final[Mapping[str, Callable[[Message, str], JSON]]] = {
    "slack": slack,
    "msteams": msteams,
    "discord": discord,
    "rocket": slack,
    "gchat": gchat,
    "generic": generic,
}
"""By `spec.type` of an AlertProvider; each takes the message and the address."""
