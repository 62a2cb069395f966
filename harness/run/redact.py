"""Redaction: nothing secret gets into a recording, a report or a log.

Two steps. What is known to hold secrets is taken out by its place (Secret data, env values, webhook
addresses, …), and every value taken out there is remembered; then those values, and whatever has
the shape of a credential, are scrubbed out of every other string: an event's message, a controller's
log, an error. What checks and recorded terms need stays as it is: names, images, resources, probes,
affinity.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from harness.run.secret_shapes import (
    MARK,
    lower_words,
    mixed,
    names_credential,
    ordinary,
    scrub_shapes,
    shape_values,
    trivial,
    url_secrets,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.model.timeline import JSON

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_LABELS: Final = frozenset({"labels", "matchLabels", "nodeSelector", "selector"})
_ADDRESSES: Final = frozenset({"url", "address", "metricsserver", "webhookurl", "proxy"})
"""Keys, in lower case, under which custom resources keep addresses."""
_KEPT: Final = frozenset(
    {
        *("apiVersion", "kind", "name", "namespace", "uid", "generateName", "hostname", "path"),
        *("image", "mountPath", "subPath", "nodeName", "serviceAccountName", "schedulerName"),
        *("claimName", "secretName", "topologyKey", "key", "operator"),
    }
)
"""Keys whose values checks and reports need: an env value that is equal to one is no secret."""
_IDENTITY: Final = frozenset({"uid", "resourceVersion"})
"""Never scrubbed: a secret that happens to be the same number would break the bookkeeping."""
_BUILT_IN: Final = re.compile(r"(v\d+\w*|(apps|batch|autoscaling|policy|[\w.-]+\.k8s\.io)/.+)")
_DIGEST: Final = re.compile(r"\[sha256:[0-9a-f]{12}\]")
_SECRET_LENGTH: Final = 6
_OTHER_LENGTH: Final = 8
_LINE_LENGTH: Final = 20
_PIECE: Final = 1024
_LONGEST: Final = 64 * _PIECE
_WORDS: Final = 50
_CACHED: Final = 20_000


class Redactor:
    """Takes secrets out, and remembers them. One per drill.

    `salt` makes its digests its own, and must not be published: whoever knows it can try values
    against a digest. Without one it is random, so that digests compare within a drill only.

    Everything it returns is a copy, and redacting twice changes nothing more.
    """

    def __init__(self, salt: str = "") -> None:
        self._salt = salt.encode() or secrets.token_bytes(32)
        self._certain: set[str] = set()
        self._likely: set[str] = set()
        self._kept: set[str] = set()
        self._loose: list[str] = []
        self._bounded: re.Pattern[str] | None = None
        self._outdated = False
        self._free: list[str] = []
        """Values that are scrubbed for as long as they stand in nothing that is kept."""
        self._cache: dict[str, str] = {}

    def learn(self, manifests: Iterable[JSON]) -> None:
        """Remember the secrets of manifests, before anything is written about them."""
        for manifest in manifests:
            self._walk(manifest, built_in=_built_in(manifest))

    def learn_value(self, value: str) -> None:
        """Remember one secret, e.g. a token that the harness itself was given."""
        self._remember(value, certain=True)

    def object(self, obj: JSON) -> JSON:
        """Return a redacted copy of an object of the API."""
        result: JSON = self.json(obj)
        return result

    def json(self, value: Any) -> Any:
        """Return a redacted copy of any JSON, with the objects and pod templates inside it."""
        built_in = isinstance(value, dict) and _built_in(value)
        return self._scrub(self._walk(value, built_in=built_in))

    def text(self, text: str) -> str:
        """Return `text` without any remembered value and any credential's shape."""
        if self._outdated:
            self._compile()
        if (known := self._cache.get(text)) is not None:
            return known
        result = text
        for value in self._loose:
            if value in result:
                result = result.replace(value, MARK)
        if self._bounded is not None:
            result = self._bounded.sub(MARK, result)
        result = scrub_shapes(result)
        # Objects come again and again with nearly the same strings in them.
        if len(self._cache) >= _CACHED:
            self._cache.clear()
        self._cache[text] = result
        return result

    # ---- by place

    def _walk(self, value: Any, *, built_in: bool) -> Any:
        if isinstance(value, list):
            return [self._walk(item, built_in=built_in) for item in value]
        if not isinstance(value, dict):
            return value
        if isinstance(value.get("kind"), str) and isinstance(value.get("metadata"), dict):
            built_in = _built_in(value)
            if value["kind"] in ("Secret", "ConfigMap"):
                value = self._data(value)
            if value["kind"] == "Event":
                # Who wrote it is in `source`; this one adds the name of the machine that the scheduler runs on.
                value = {key: item for key, item in value.items() if key != "reportingInstance"}
        return {key: self._entry(key, item, built_in=built_in) for key, item in value.items()}

    def _entry(self, key: str, item: Any, *, built_in: bool) -> Any:
        """Return what stands under `key`, redacted by what the key means."""
        if isinstance(item, str):
            return self._string(key, item, built_in=built_in)
        if isinstance(item, dict):
            return self._map(key, item, built_in=built_in)
        if isinstance(item, list):
            return self._list(key, item, built_in=built_in)
        return item

    def _map(self, key: str, item: JSON, *, built_in: bool) -> Any:
        if key == "annotations":
            return self._labels(item, keep=False)
        if key in _LABELS and all(isinstance(value, str) for value in item.values()):
            return self._labels(item, keep=True)
        if key == "metadata" and "managedFields" in item:
            item = {**item, "managedFields": _managers(item["managedFields"])}
        return self._walk(item, built_in=built_in)

    def _list(self, key: str, item: list[Any], *, built_in: bool) -> Any:
        if key in _CONTAINERS:
            return [self._container(row, built_in=built_in) for row in item]
        if key in {"command", "args"}:
            return self._arguments(item)
        if key == "webhooks" and not built_in:
            item = [self._webhook(row) for row in item]
        elif key in {"httpHeaders", "headers"}:
            item = [self._header(row) for row in item]
        return self._walk(item, built_in=built_in)

    def _string(self, key: str, item: str, *, built_in: bool) -> str:
        if not built_in and key.lower() in _ADDRESSES:
            return self._address(item)
        # In built-in types such keys hold names; those that hold values are treated by their place.
        if not built_in and names_credential(key) and not trivial(item):
            return self._taken(item, certain=True)
        if key in _KEPT:
            self._keep(item)
        return item

    def _data(self, obj: JSON) -> JSON:
        """Return a Secret or ConfigMap with digests for values."""
        result = dict(obj)
        secret = obj["kind"] == "Secret"
        for field in ("data", "stringData", "binaryData"):
            values = obj.get(field)
            if isinstance(values, dict):
                encoded = field == "binaryData" or (secret and field == "data")
                result[field] = {
                    key: self._digest(str(value), encoded=encoded, secret=secret)
                    for key, value in values.items()
                }
        return result

    def _digest(self, value: str, *, encoded: bool, secret: bool) -> str:
        if _DIGEST.fullmatch(value):
            return value
        plain = _decoded(value) if encoded else value
        if secret:
            for text in (value, plain or ""):
                self._remember(text, certain=True)
                self._remember_inside(text)
        digest = hmac.new(self._salt, (value if plain is None else plain).encode(), hashlib.sha256)
        return f"[sha256:{digest.hexdigest()[:12]}]"

    def _container(self, container: Any, *, built_in: bool) -> Any:
        if not isinstance(container, dict):
            return container
        result = dict(container)
        if isinstance(container.get("env"), list):
            result["env"] = [self._variable(row) for row in container["env"]]
        return self._walk(result, built_in=built_in)

    def _variable(self, row: Any) -> Any:
        if not isinstance(row, dict) or not row.get("value"):
            return row
        value, name = str(row["value"]), str(row.get("name", ""))
        if "://" in value and (names_credential(name) or "@" in value):
            self._address(value)
        for word in value.split()[:_WORDS]:
            if len(word) < len(value) and mixed(word):
                self._remember(word, certain=names_credential(name))
        return {**row, "value": self._taken(value, certain=names_credential(name))}

    def _header(self, row: Any) -> Any:
        if isinstance(row, dict) and names_credential(str(row.get("name", ""))):
            return {**row, "value": self._taken(str(row.get("value", "")), certain=True)}
        return row

    def _arguments(self, arguments: list[Any]) -> list[Any]:
        result: list[Any] = []
        named = pair = False
        for argument in arguments:
            text = argument
            if isinstance(text, str):
                if pair and ":" in text:
                    self._remember(text.partition(":")[2], certain=True)
                    text = self._taken(text, certain=True)
                if named and not text.startswith("-") and not trivial(text):
                    text = self._taken(text, certain=True)
                for value in shape_values(text):
                    self._remember(value, certain=True)
                pair = argument in {"-u", "--user"}
                named = argument.startswith("-") and "=" not in argument
                named = named and " " not in argument and names_credential(argument)
            result.append(text)
        return result

    def _labels(self, labels: JSON, *, keep: bool) -> JSON:
        result: JSON = {}
        for key, value in labels.items():
            text = str(value)
            if key == LAST_APPLIED:
                self._learn_document(text)
                continue
            if names_credential(key) and not trivial(text):
                text = self._taken(text, certain=True)
            elif keep:
                self._keep(text)
            result[key] = text
        return result

    def _webhook(self, webhook: Any) -> Any:
        if not isinstance(webhook, dict):
            return webhook
        result = dict(webhook)
        if isinstance(webhook.get("metadata"), dict):
            result["metadata"] = {
                key: self._taken(str(value), certain=names_credential(key))
                for key, value in webhook["metadata"].items()
            }
        return result

    def _address(self, url: str) -> str:
        if url and url != MARK:
            for value in url_secrets(url):
                self._remember(value, certain=True)
        return MARK if url else url

    # ---- remembering

    def _taken(self, value: str, *, certain: bool) -> str:
        self._remember(value, certain=certain)
        return MARK

    def _remember(self, value: str, *, certain: bool) -> None:
        value = value.strip()
        if value in MARK or MARK in value or _DIGEST.search(value):
            return
        if len(value) > 4 * _PIECE:
            for start in range(0, min(len(value), _LONGEST), _PIECE):
                self._remember(value[start : start + _PIECE], certain=certain)
            return
        known = self._certain if certain else self._likely
        # A word is no secret that could be told apart from the same word elsewhere.
        if len(value) < (_SECRET_LENGTH if certain else _OTHER_LENGTH) or trivial(value):
            return
        if (not certain and ordinary(value)) or value in known:
            return
        known.add(value)
        self._outdated = True

    def _remember_inside(self, text: str) -> None:
        """Remember the parts of a Secret's value that turn up on their own."""
        for line in text.splitlines():
            if len(line.strip()) >= _LINE_LENGTH:
                self._remember(line, certain=True)
        if "://" in text and len(text.split()) == 1:
            self._address(text)
        if text[:1] in "{[" and text:
            self._remember_document(_parsed(text))

    def _remember_document(self, value: Any, key: str = "") -> None:
        """Remember credentials inside a JSON document, e.g. those for an image registry."""
        if isinstance(value, dict):
            for name, item in value.items():
                self._remember_document(item, name)
        elif isinstance(value, list):
            for item in value:
                self._remember_document(item, key)
        elif isinstance(value, str) and (key == "auth" or names_credential(key)):
            self._remember(value, certain=True)
            if key == "auth":
                self._remember((_decoded(value) or "").partition(":")[2], certain=True)

    def _learn_document(self, text: str) -> None:
        document = _parsed(text)
        if isinstance(document, dict):
            self.learn([document])

    def _keep(self, value: str) -> None:
        if value not in self._kept:
            self._kept.add(value)
            # Every object brings names of its own; hardly ever does one of them matter.
            if any(free in value for free in self._free):
                self._outdated = True

    # ---- everywhere else

    def _scrub(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._scrub(item) for item in value]
        if isinstance(value, dict):
            return {k: v if k in _IDENTITY else self._scrub(v) for k, v in value.items()}
        return value

    def _compile(self) -> None:
        self._outdated = False
        loose: set[str] = set()
        for value in self._certain:
            if not lower_words(value):
                loose |= _forms(value)
        words_only = {value for value in self._certain if lower_words(value)}
        bounded = {value for value in words_only if not self._stands_in_kept(value)}
        likely = {value for value in self._likely if not self._stands_in_kept(value)}
        self._free = [*bounded, *likely]
        loose |= likely
        self._loose = sorted(loose, key=len, reverse=True)
        words = "|".join(map(re.escape, sorted(bounded, key=len, reverse=True)))
        self._bounded = re.compile(rf"(?<![\w-])(?:{words})(?![\w-])") if words else None
        self._cache.clear()

    def _stands_in_kept(self, value: str) -> bool:
        return any(value in kept for kept in self._kept)


def _forms(value: str) -> set[str]:
    """Return the ways in which a value may be written: plain, base64, escaped."""
    raw = value.encode()
    forms = {
        base64.b64encode(raw).decode(),
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(value, safe=""),
        value,
    }
    return {form for form in forms if len(form) >= _SECRET_LENGTH}


def _decoded(value: str) -> str | None:
    """Return base64 decoded; bytes that are no text keep their values as characters."""
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _built_in(obj: JSON) -> bool:
    return bool(_BUILT_IN.fullmatch(str(obj.get("apiVersion", ""))))


def _managers(fields: Any) -> list[JSON]:
    kept = ("manager", "operation", "subresource", "time")
    return [{key: row[key] for key in kept if key in row} for row in fields or ()]
