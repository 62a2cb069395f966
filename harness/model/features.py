"""The features that a scenario may require, and who has to have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature."""

    of: Literal["subject", "cluster"]
    doc: str


FEATURES: Final[dict[str, Feature]] = {
    "ab-testing": Feature("subject", "Routes by header or cookie during the analysis."),
    "autoscaler": Feature("subject", "Pauses and resumes the target's autoscaler."),
    "blue-green": Feature("subject", "Analyses by iterations, then switches."),
    "change-fence": Feature(
        "subject", "Tells a change of the target from a change of how it computes its own hash."
    ),
    "config-tracking": Feature(
        "subject",
        "Takes a change of a ConfigMap or Secret that the target uses for a new revision.",
    ),
    "confirm-promotion": Feature("subject", "Waits for a webhook before it promotes."),
    "daemonset": Feature("subject", "Takes DaemonSets as targets."),
    "deployment": Feature("subject", "Takes Deployments as targets."),
    "freeze": Feature(
        "subject",
        "Keeps a failed revision in place, its pods and its routes, for a person to look at.",
    ),
    "knative-service": Feature("subject", "Takes Knative Services as targets."),
    "manual-rollback-aborts": Feature(
        "subject", "Ends a running analysis when the target goes back to the promoted revision."
    ),
    "match-label-keys": Feature(
        "subject", "Keeps matchLabelKeys of affinity and spread terms on the primary."
    ),
    "metrics": Feature("subject", "Decides by queries to a metrics server."),
    "metrics-rate": Feature(
        "subject",
        "Bounds how often a metrics server is queried, and takes its refusal for no verdict.",
    ),
    "mirroring": Feature("subject", "Sends a copy of the traffic to the new revision."),
    "progress-deadline": Feature("subject", "Fails a rollout that makes no progress in time."),
    "provider-kubernetes": Feature("subject", "Works with plain Services only."),
    "restart-on-new-revision": Feature(
        "subject", "Starts over when the template changes during an analysis."
    ),
    "restore-adopt": Feature(
        "subject",
        "Keeps the promoted ReplicaSet and, after a failure, makes a target that adopts it with its running pods.",
    ),
    "restore-revert": Feature(
        "subject", "Writes the promoted template back into the target after a failure."
    ),
    "session-affinity": Feature("subject", "Keeps users on the revision that they have seen."),
    "skip-analysis": Feature("subject", "Promotes at once when told to."),
    "start-limit": Feature(
        "subject", "Lets only so many analyses run at the same time; the others wait in line."
    ),
    "sub-10s-interval": Feature("subject", "Honours analysis intervals shorter than ten seconds."),
    "suspend": Feature("subject", "Does nothing while suspended."),
    "traffic-weights": Feature("subject", "Moves the traffic in steps of weight."),
    "webhooks": Feature("subject", "Calls webhooks around and during the analysis."),
    "audit": Feature("cluster", "Tells which requests the controller under test makes."),
    "kubernetes-upgrade": Feature(
        "cluster", "Its control plane can be replaced by another version's, its data kept."
    ),
    "gateway-api": Feature(
        "cluster", "Has HTTPRoutes and Gateways (add-on: an embedded cluster gets them)."
    ),
    "istio": Feature(
        "cluster",
        "Has Istio's VirtualServices and DestinationRules (add-on: an embedded cluster gets them).",
    ),
    "keda": Feature("cluster", "Has KEDA's ScaledObjects (add-on: an embedded cluster gets them)."),
    "knative": Feature(
        "cluster",
        "Has Knative Serving (add-on: an embedded cluster gets its real controllers beside simulated pods; the annotation "
        "`rollout-drill/concurrency` of a Knative Service says how many requests are under way at any time, none unless given; its label `rollout-drill/route: never` "
        "leaves its ingress without an answer).",
    ),
    "simulated-routes": Feature(
        "cluster",
        "Every parent accepts a route, at each generation; the label `rollout-drill/route: refused` or `never` asks for another answer, "
        "or none. No traffic is routed. (Comes with gateway-api on an embedded cluster.)",
    ),
    "node-changes": Feature(
        "cluster",
        "Its nodes are simulated and ours: a scenario may label and taint them, and let nodes join and leave.",
    ),
    "network": Feature(
        "cluster",
        "Pods can be reached over the network, which a probe of `traffic` needs; simulated ones cannot.",
    ),
    "simulated-pods": Feature(
        "cluster",
        "Pods obey the label `rollout-drill/pod`. A scenario whose manifests or steps give it another value than `start` requires this by "
        "itself; manifests can ask by `drill.simulated`, and have real pods do the same by their arguments.",
    ),
    "revision-images": Feature(
        "cluster",
        "Runs the images of `registry.example` by which scenarios tell revisions: mere names on simulated nodes, ours on kind and k3s. A "
        "scenario whose manifests or steps name one requires this by itself.",
    ),
    "real-pods": Feature("cluster", "Containers really run."),
    "several-nodes": Feature("cluster", "Has more than one schedulable node."),
}
"""Feature -> who must have it and what it means."""

OF_FLAGS: Final[dict[str, str]] = {
    "maxConcurrentAnalyses": "start-limit",
    "maxConcurrentAnalysesPerNamespace": "start-limit",
    "metricsRate": "metrics-rate",
    "metricsBurst": "metrics-rate",
    "noVerdictTimeout": "metrics-rate",
}
"""Name in a scenario's `controller` -> the feature that the flag is for. A scenario that sets the flag has to require it."""
