"""What the controller can be told when it is started: one table of flags, for `python -m harness.controller` and `drill controller run` alike.

Names and defaults are Flagger's where it has the same flag (spec canary-api 10).
"""

from __future__ import annotations

import argparse
import os
import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import urlsplit

from harness.controller.core.moments import duration
from harness.controller.core.names import GROUP
from harness.controller.core.policy import NO_VERDICT_TIMEOUT, SELECTOR_LABELS, Policy
from harness.controller.shell.lease import LEASE_NAME
from harness.controller.shell.log import LEVELS
from harness.kube import in_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

EVENT_WEBHOOK: Final = "EVENT_WEBHOOK_URL"
MOST_WORKERS: Final = 1000
MOST_ANALYSES: Final = 100_000
LAST_PORT: Final = 65535
LEAST_RATE: Final = 0.001
MOST_RATE: Final = 10_000.0
MOST_BURST: Final = 10_000


class OptionsError(Exception):
    """A flag has a value that it cannot have, or one is missing; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Options:
    """Everything that can be chosen. What is not about a process of its own is for the engine."""

    namespace: str
    """The one namespace whose Canaries are driven."""
    api_group: str = GROUP
    """API group of the Canaries that are driven, and of the MetricTemplates and AlertProviders that they refer to."""
    workers: int = 32
    """Canaries that may write at the same time."""
    metrics_server: str = "http://prometheus:9090"
    """Prometheus for the built-in metrics."""
    metrics_rate: float | None = None
    """Queries a second that each metrics provider gets at most; None: as many as there are."""
    metrics_burst: int = 1
    """Of them, how many may go at once after a rest."""
    no_verdict_timeout: float = NO_VERDICT_TIMEOUT
    """Seconds for which a metrics provider may answer 429 or not in time without an interruption before that counts as failed checks."""
    event_webhook: str = field(default="", repr=False)
    """Where every event is posted as well. Such addresses often hold a token, so it is never shown."""
    cluster_name: str = ""
    """Names the cluster in alerts."""
    selector_labels: tuple[str, ...] = SELECTOR_LABELS
    """Keys of the label that tells a target's pods apart, in order of preference."""
    include_label_prefix: tuple[str, ...] = ()
    """Prefixes of the target's labels and annotations that primary objects get too; `*` is all."""
    config_tracking: bool = True
    """Whether ConfigMaps and Secrets are tracked and copied."""
    cross_namespace_refs: bool = True
    """Whether a Canary may name MetricTemplates and AlertProviders of other namespaces."""
    max_concurrent_analyses: int | None = None
    """How many Canaries may be under analysis at a time; None: any number."""
    max_concurrent_analyses_per_namespace: int | None = None
    """The same for each namespace; as this controller drives one, the smaller of the two holds."""

    kubeconfig: Path | None = None
    """None: the service account of the pod."""
    context: str | None = None
    leader_elect: bool = False
    lease_name: str = LEASE_NAME
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    """Port of /metrics, /healthz and /readyz; None: none is opened."""
    log_level: str = "info"
    log: Path | None = None
    """File for the log; None: standard error."""

    @property
    def policy(self) -> Policy:
        """What of it the decisions depend on."""
        return Policy(
            self.selector_labels,
            self.include_label_prefix,
            self.cross_namespace_refs,
            self.no_verdict_timeout,
            self.max_concurrent_analyses,
            self.max_concurrent_analyses_per_namespace,
        )


def parse(
    arguments: Sequence[str],
    *,
    prog: str,
    environment: Mapping[str, str] = os.environ,
    folder: Path = in_cluster.FOLDER,
) -> Options:
    """Return the options that a command line gives.

    Without --kubeconfig the pod's service account (mounted at `folder`) is used. Raises OptionsError, and SystemExit after --help.
    """
    given = vars(_parser(prog).parse_args(list(arguments)))
    if not given.get("event_webhook"):
        given["event_webhook"] = _from_environment(environment)
    if given.get("kubeconfig") is None:
        if given.get("context") is not None:
            msg = "--context names a context of a kubeconfig file: give --kubeconfig FILE too"
            raise OptionsError(msg)
        if not in_cluster.in_cluster(environment):
            msg = f"--kubeconfig FILE is needed outside of a cluster ({in_cluster.HOST} is not set)"
            raise OptionsError(msg)
        given["namespace"] = given.get("namespace") or in_cluster.own_namespace(folder)
    if not given.get("namespace"):
        msg = "--namespace NAME is needed: the one namespace whose Canaries are driven"
        raise OptionsError(msg)
    return Options(**given)


def flags() -> dict[str, bool]:
    """Return the long names of all flags, without the dashes before them, and whether they are switches, which take no value."""
    return {names[-1].removeprefix("--"): "action" in settings for names, settings in _FLAGS}


def _from_environment(environment: Mapping[str, str]) -> str:
    url = environment.get(EVENT_WEBHOOK, "")
    try:
        return _url(url) if url else ""
    except argparse.ArgumentTypeError as error:
        msg = f"environment variable {EVENT_WEBHOOK}: {error}"
        raise OptionsError(msg) from error


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise OptionsError(message.removeprefix("argument "))


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=prog,
        description="Run the bundled progressive delivery controller for Canary (flagger.app/v1beta1) until SIGTERM or SIGINT.",
        epilog="Outside of a cluster --kubeconfig is needed. In a pod its service account is used, and its namespace unless --namespace is given.",
        allow_abbrev=False,
        # What is not given is not set, so that each default stands once, in Options.
        argument_default=argparse.SUPPRESS,
    )
    defaults = {each.name: each.default for each in fields(Options) if each.name != "namespace"}
    for names, settings in _FLAGS:
        name = names[-1].removeprefix("--").replace("-", "_")
        shown = defaults.get(str(settings.get("dest", name)))
        text = str(settings["help"])
        if isinstance(shown, tuple):
            shown = ",".join(shown)
        if isinstance(shown, float):
            shown = f"{shown:g}s"
        # 0 is a number to show; False and nothing are not.
        if shown not in (None, "", True, False):
            text = f"{text} Default: {shown}."
        parser.add_argument(*names, **{**settings, "help": text})
    return parser


def _number(first: int, last: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not first <= int(text) <= last:
            msg = f"{text!r} is not a whole number from {first} to {last}"
            raise argparse.ArgumentTypeError(msg)
        return int(text)

    return number


def _decimal(least: float, most: float) -> Callable[[str], float]:
    def decimal(text: str) -> float:
        if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) or not least <= float(text) <= most:
            msg = f"{text!r} is not a number from {least:g} to {most:g}, such as 5 or 0.5"
            raise argparse.ArgumentTypeError(msg)
        return float(text)

    return decimal


def _duration(text: str) -> float:
    found = 0.0 if text == "0" else duration(text)
    if found is None:
        msg = f"{text!r} is not a duration such as 30s, 5m or 1h30m, or 0"
        raise argparse.ArgumentTypeError(msg)
    return found


def _matching(pattern: str, longest: int, what: str) -> Callable[[str], str]:
    def matching(text: str) -> str:
        if len(text) > longest or not re.fullmatch(pattern, text):
            msg = f"{text!r} is not {what}"
            raise argparse.ArgumentTypeError(msg)
        return text

    return matching


def _url(text: str) -> str:
    # The value is not repeated: addresses of webhooks are secrets.
    try:
        url = urlsplit(text)
        good = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        good = False
    if not good:
        msg = "the value is not a URL such as http://prometheus.monitoring:9090"
        raise argparse.ArgumentTypeError(msg)
    return text.rstrip("/")


def _list(each: Callable[[str], str]) -> Callable[[str], tuple[str, ...]]:
    def several(text: str) -> tuple[str, ...]:
        return tuple(each(part.strip()) for part in text.split(",") if part.strip())

    return several


def _some(each: Callable[[str], str], what: str) -> Callable[[str], tuple[str, ...]]:
    def several(text: str) -> tuple[str, ...]:
        found = _list(each)(text)
        if not found:
            msg = f"at least one {what} is needed"
            raise argparse.ArgumentTypeError(msg)
        return found

    return several


_PART: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAMESPACE: Final = _matching(
    _PART, 63, "the name of a namespace (lower-case letters, digits and '-')"
)
_OBJECT: Final = _matching(
    rf"{_PART}(\.{_PART})*", 253, "the name of an object (lower-case letters, digits, '-' and '.')"
)
_KEY: Final = _matching(
    rf"({_PART}(\.{_PART})*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?",
    317,
    "the key of a label, such as app.kubernetes.io/name",
)
_GROUP: Final = _matching(
    rf"{_PART}(\.{_PART})+", 253, "an API group (a domain, such as flagger.app)"
)
_PREFIX: Final = _matching(
    r"\*|[A-Za-z0-9][-A-Za-z0-9_./]*",
    317,
    "a prefix of label keys, such as app.kubernetes.io/, or *",
)
_HOST: Final = _matching(
    r"[A-Za-z0-9:.][-A-Za-z0-9:.%]*", 253, "an address or a host name, such as 127.0.0.1 or 0.0.0.0"
)

_FLAGS: Final[tuple[tuple[tuple[str, ...], dict[str, Any]], ...]] = (
    (
        ("--kubeconfig",),
        {"type": Path, "metavar": "FILE", "help": "File with the credentials."},
    ),
    (
        ("--context",),
        {"metavar": "NAME", "help": "Context in it; may be left out when it has only one."},
    ),
    (
        ("-n", "--namespace"),
        {
            "type": _NAMESPACE,
            "metavar": "NAME",
            "help": "The one namespace whose Canaries are driven.",
        },
    ),
    (
        ("--api-group",),
        {
            "type": _GROUP,
            "metavar": "GROUP",
            "help": "API group of the Canaries, MetricTemplates and AlertProviders that are driven and read; another one than Flagger's beside a Flagger, so that the two never drive the same Canary.",
        },
    ),
    (
        ("--workers",),
        {
            "type": _number(1, MOST_WORKERS),
            "metavar": "N",
            "help": "Canaries that may write at the same time.",
        },
    ),
    (
        ("--metrics-port",),
        {
            "type": _number(0, LAST_PORT),
            "metavar": "PORT",
            "help": "Port of /metrics, /healthz and /readyz; 0 takes a free one, which the log names. None is opened unless given.",
        },
    ),
    (
        ("--metrics-host",),
        {
            "type": _HOST,
            "metavar": "ADDRESS",
            "help": "Address to listen on for them; 0.0.0.0 is every one.",
        },
    ),
    (
        ("--leader-elect",),
        {
            "action": argparse.BooleanOptionalAction,
            "help": "Work only while holding a Lease in the namespace, so that several processes can stand by for each other.",
        },
    ),
    (("--lease-name",), {"type": _OBJECT, "metavar": "NAME", "help": "Name of that Lease."}),
    (
        ("--metrics-server",),
        {"type": _url, "metavar": "URL", "help": "Prometheus for the built-in metrics."},
    ),
    (
        ("--metrics-rate",),
        {
            "type": _decimal(LEAST_RATE, MOST_RATE),
            "metavar": "N",
            "help": "Queries a second that each metrics provider (scheme, host and port) gets at most; the others wait for their turn. Unlimited unless given.",
        },
    ),
    (
        ("--metrics-burst",),
        {
            "type": _number(1, MOST_BURST),
            "metavar": "N",
            "help": "With --metrics-rate: queries that may go at once after a rest.",
        },
    ),
    (
        ("--no-verdict-timeout",),
        {
            "type": _duration,
            "metavar": "TIME",
            "help": "How long a metrics provider may answer 429 or not in time, without an interruption, before that counts as failed checks; 0: from the first on.",
        },
    ),
    (
        ("--event-webhook",),
        {
            "type": _url,
            "metavar": "URL",
            "help": f"Where every event is posted as well; also from the environment, {EVENT_WEBHOOK}, where nobody reads it in a list of processes.",
        },
    ),
    (("--cluster-name",), {"metavar": "TEXT", "help": "Names the cluster in alerts."}),
    (
        ("--selector-labels",),
        {
            "type": _some(_KEY, "key of a label"),
            "metavar": "KEY,…",
            "help": "Keys of the label that tells a target's pods apart, in order of preference.",
        },
    ),
    (
        ("--include-label-prefix",),
        {
            "type": _list(_PREFIX),
            "metavar": "PREFIX,…",
            "help": "Labels and annotations of the target that primary objects get too; * is all. None unless given.",
        },
    ),
    (
        ("--config-tracking",),
        {
            "action": argparse.BooleanOptionalAction,
            "help": "Track ConfigMaps and Secrets, and give the primary copies of its own. On unless told otherwise.",
        },
    ),
    (
        ("--no-cross-namespace-refs",),
        {
            "action": "store_false",
            "dest": "cross_namespace_refs",
            "help": "Refuse MetricTemplates and AlertProviders of other namespaces.",
        },
    ),
    (
        ("--max-concurrent-analyses",),
        {
            "type": _number(1, MOST_ANALYSES),
            "metavar": "N",
            "help": "Canaries that may be under analysis at a time; the others wait in a line. Any number unless given.",
        },
    ),
    (
        ("--max-concurrent-analyses-per-namespace",),
        {
            "type": _number(1, MOST_ANALYSES),
            "metavar": "N",
            "help": "The same for each namespace; as one namespace is driven, the smaller of the two holds.",
        },
    ),
    (
        ("--log-level",),
        {
            "choices": LEVELS,
            "metavar": "LEVEL",
            "help": f"Least level logged: {', '.join(LEVELS)}.",
        },
    ),
    (
        ("--log",),
        {
            "type": Path,
            "metavar": "FILE",
            "help": "File for the log (JSON lines), which is appended to; standard error unless given.",
        },
    ),
)
