"""What looks like a credential: by the name it goes under, or by its own shape.

Pure functions over strings. They err towards redacting where a name says so, and towards leaving
alone where only a shape could (hashes and checksums look random, too, and reports need them).
"""

from __future__ import annotations

import functools
import re
from typing import Final
from urllib.parse import unquote, urlsplit

MARK: Final = "[redacted]"
"""What stands where something was taken out."""

_CREDENTIAL: Final = re.compile(
    r"token|passw(or)?d|passphrase|\bpwd\b|_pwd|secret|credential|api[-_.]?key|access[-_.]?key"
    r"|private[-_.]?key|signing[-_.]?key|encryption[-_.]?key|auth[-_.]?key|bearer|authorization"
    r"|connection[-_.]?string|webhook[-_.]?url|\bdsn\b|_dsn",
    re.IGNORECASE,
)
_ABOUT: Final = re.compile(
    r"(file|path|dir|name|names|namespace|ref|refs|key[-_.]?ref|mount|type|ttl|expiry|expiration"
    r"|expires|timeout|interval|refresh|enabled|disabled|length|size|count|version|issuer|audience"
    r"|audiences|checksum|hash)$",
    re.IGNORECASE,
)
_TRIVIAL: Final = re.compile(r"|true|false|yes|no|none|null|\d{1,5}|\[redacted\]", re.IGNORECASE)
_WORDS: Final = re.compile(r"[A-Za-z]+([-_./ :][A-Za-z]+)*")
_LOWER_WORDS: Final = re.compile(r"[a-z]+([-.][a-z]+)*")

_FLAG: Final = re.compile(
    r"(?P<name>(?<![\w])-{0,2}[A-Za-z][\w.-]*)(?P<mid>\s*=\s*[\"']?)(?P<value>[^\s\"'&;,]+)"
)
_FLAG_SPACE: Final = re.compile(
    r"(?P<name>(?<![\w-])--?[A-Za-z][\w.-]*)(?P<mid>\s+[\"']?)(?P<value>[^\s\"'-][^\s\"']*)"
)
_PAIR: Final = re.compile(
    r"(?P<name>\b[A-Za-z][\w.-]*)(?P<mid>[\"']?\s*:\s*[\"']?)(?P<value>[^\s\"',;}]+)"
)
_SCHEME: Final = re.compile(
    r"(?i)\b(bearer|basic)\s+(?P<value>(?=\S*[\d._/+=-]|\S{20})[A-Za-z0-9._~+/=-]{8,})"
)
_USERINFO: Final = re.compile(r"://[^\s/@:\"']*:(?P<value>[^\s/@\"']+)@")
_SHAPES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (_SCHEME, r"\1 " + MARK),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}(\.[\w-]*)?"), MARK),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)"), MARK),
    (re.compile(r"\b(gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|npm_\w{20,})"), MARK),
    (re.compile(r"\b(xox[abeoprs]-[\w-]{8,}|xapp-[\w-]{8,}|sk-[\w-]{16,}|AIza[\w-]{30,})"), MARK),
    (re.compile(r"\b(AKIA|ASIA)[A-Z0-9]{16}\b"), MARK),
    (re.compile(r"(?i)(hooks\.slack\.com/(services|workflows)|/api/webhooks|webhook\.office\.com)/[^\s\"']+"), r"\1/" + MARK),
    # Userinfo of a URL: the host after it stays readable.
    (re.compile(r"(?<=://)(?!\[redacted\]@)[^\s/@\"']+@"), MARK + "@"),
    (re.compile(r"(?<![\w-])(-u\s+|--user[ =])[^\s:\"']+:[^\s\"']+"), r"\1" + MARK),
)  # fmt: skip
_LONG: Final = 8


def names_credential(name: str) -> bool:
    """Return whether what goes under `name` (a flag, key or variable) is a credential itself.

    `--token` is, `--token-file` and `secretName` only say where one is.
    """
    return bool(_CREDENTIAL.search(name)) and not _ABOUT.search(name)


def trivial(value: str) -> bool:
    """Return whether `value` can be no secret: empty, a truth value, a small number."""
    return bool(_TRIVIAL.fullmatch(value.strip()))


def ordinary(value: str) -> bool:
    """Return whether `value` consists of words or is a path, so that it may stand anywhere."""
    return bool(_WORDS.fullmatch(value)) or value.startswith("/") or value.isdecimal()


def lower_words(value: str) -> bool:
    """Return whether `value` could be an object's name made of words."""
    return bool(_LOWER_WORDS.fullmatch(value))


@functools.lru_cache(maxsize=4096)
def scrub_shapes(text: str) -> str:
    """Return `text` without what has the shape of a credential, known or not."""
    for pattern, replacement in _SHAPES:
        text = pattern.sub(replacement, text)
    if not _CREDENTIAL.search(text):
        return text
    text = _FLAG.sub(_named, text)
    text = _FLAG_SPACE.sub(_named, text)
    return _PAIR.sub(_named_and_mixed, text)


def shape_values(text: str) -> list[str]:
    """Return what `scrub_shapes` would take out of `text` by a name or a scheme before it."""
    found = [value["value"] for value in _SCHEME.finditer(text)]
    found += [value["value"] for value in _USERINFO.finditer(text)]
    if _CREDENTIAL.search(text):
        found += [
            value["value"]
            for pattern in (_FLAG, _FLAG_SPACE)
            for value in pattern.finditer(text)
            if names_credential(value["name"]) and not trivial(value["value"])
        ]
    return found


def url_secrets(url: str) -> list[str]:
    """Return what of an address must not be shown: all of it, its userinfo, path and query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return [url]
    found = [url, url.rstrip("/")]
    found += [parts.username or "", parts.password or ""]
    found += [unquote(parts.username or ""), unquote(parts.password or "")]
    path = parts.path.strip("/")
    found += [piece for piece in (path, *path.split("/")) if len(piece) >= _LONG and mixed(piece)]
    found += [pair.partition("=")[2] for pair in parts.query.split("&")]
    return [value for value in found if len(value) >= _LONG]


def mixed(value: str) -> bool:
    """Return whether `value` mixes letters and digits, or cases, as generated tokens do."""
    digit = any(c.isdigit() for c in value)
    letter = any(c.isalpha() for c in value)
    inner = any(c.isupper() for c in value[1:]) and any(c.islower() for c in value)
    return (digit and letter) or inner


def _named(found: re.Match[str]) -> str:
    if not names_credential(found["name"]) or trivial(found["value"]):
        return found[0]
    return f"{found['name']}{found['mid']}{MARK}"


def _named_and_mixed(found: re.Match[str]) -> str:
    # "token: unauthorized" is a message, "token: 9f8a77c2" is a token.
    if len(found["value"]) < _LONG or not mixed(found["value"]):
        return found[0]
    return _named(found)
