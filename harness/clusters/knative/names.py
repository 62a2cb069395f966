"""Names that several parts of the add-on have to agree on."""

from __future__ import annotations

from typing import Final

HOST: Final = "127.0.0.1"
"""Loopback, on either side."""
NAMESPACE: Final = "knative-serving"
ACCOUNT: Final = "controller"
"""The service account of all three programs, as in Knative's own manifests."""
INGRESS_CLASS: Final = "rollout-drill.ingress.networking.knative.dev"
"""Of the ingresses that a kwok stage makes ready."""
CONCURRENCY: Final = "rollout-drill/concurrency"
"""Annotation of a Knative Service: how many requests are under way at any time, shared by its split of the traffic."""
REVISION: Final = "serving.knative.dev/revision"
"""Label of a revision's pods and endpoints: the revision's name."""
