"""Scenarios that are wrong, each in one way (and one in several), with every line that a user gets to read.

The files are in fixtures/broken-scenarios; lines are given without that folder.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from harness.controller.flags import names
from harness.data import data_path
from harness.scenario.lint import lint
from harness.scenario.loaded import load
from harness.scenario.problem import ScenarioError

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER = data_path("fixtures", "broken-scenarios")
_FLAGS = ", ".join(names())
"""What a scenario may set; said once, where the controller's flags are."""

BROKEN: dict[str, list[str]] = {
    "all-of-none.yaml": [
        "all-of-none.yaml:22: spec.steps[1].delete.target: there is no rollout object in the manifests",
    ],
    "answers-without-traffic.yaml": [
        "answers-without-traffic.yaml:11: spec.steps[0].until: looks at traffic, but there is no spec.traffic that could be judged",
        "answers-without-traffic.yaml:14: spec.checks[0].always: is never 'primry'; did you mean 'primary'? (allowed: primary, target, other)",
        "answers-without-traffic.yaml:14: spec.checks[0].always: looks at answers, but there is no spec.traffic that could be judged",
    ],
    "apply-undeclared-manifest.yaml": [
        "apply-undeclared-manifest.yaml:18: spec.steps[0].apply[0]: 'god.yaml' is no manifest of this scenario; did you mean 'good.yaml'? (allowed: good.yaml)",
    ],
    "at-unknown-step.yaml": [
        "at-unknown-step.yaml:25: spec.checks[0].always: 'initialize' is no step; did you mean 'initialise'? (allowed: initialise, change)",
        "at-unknown-step.yaml:27: spec.checks[1].always: an apex has no field 'uid'; did you mean 'uids'? (allowed: exists, name, ready, pods, uids, hashes)",
    ],
    "bad-name.yaml": [
        "bad-name.yaml:4: metadata.name: 'Broken_Name' must be lower case letters, digits and dashes",
    ],
    "binary.yaml": [
        "binary.yaml: is a binary file, not YAML",
    ],
    "calls-without-receiver.yaml": [
        "calls-without-receiver.yaml:11: spec.steps[0].until: looks at gates, but there is no spec.receiver that could be called",
        "calls-without-receiver.yaml:14: spec.checks[0].eventually: looks at calls, but there is no spec.receiver that could be called",
    ],
    "cel-list-as-object.yaml": [
        "cel-list-as-object.yaml:25: spec.checks[0].always: pods is a list and has no field 'ready'; write pods.exists(x, x.ready …) or pods.all(…)",
    ],
    "cel-not-boolean.yaml": [
        "cel-not-boolean.yaml:25: spec.checks[0].always: is an int, not true or false; compare it with something",
    ],
    "cel-rollouts-field.yaml": [
        "cel-rollouts-field.yaml:25: spec.checks[0].always: r has no field 'start'; did you mean 'starts'? (allowed: exists, name, phase, ended, weight, iterations, failed_checks, promoted, reason, message, conditions, labels, suspended, applied, tracked, starts, starts_after_change, began, queued_since, target_rolls, primary_rolls, tracking_writes, looks, writes, target_hash, target_revision, primary_hash, primary_revision)",
    ],
    "cel-syntax.yaml": [
        "cel-syntax.yaml:25: spec.checks[0].always: is not CEL: mismatched input end of the expression (column 17)",
    ],
    "cel-types.yaml": [
        "cel-types.yaml:25: spec.checks[0].always: >= cannot compare an int with a string",
    ],
    "cel-unknown-field.yaml": [
        "cel-unknown-field.yaml:25: spec.checks[0].always: primary has no field 'redy'; did you mean 'ready'? (allowed: exists, name, uid, desired, replicas, updated, ready, available, hash, images, node_selector, uids, generation, observed)",
    ],
    "cel-unknown-phase.yaml": [
        "cel-unknown-phase.yaml:19: spec.steps[0].until: is never 'Done' (allowed: Initializing, Initialized, Waiting, Progressing, WaitingPromotion, Promoting, Finalising, Succeeded, Failed, Frozen, Terminating, Terminated)",
    ],
    "cel-unknown-value.yaml": [
        "cel-unknown-value.yaml:25: spec.checks[0].always: there is no value 'replica'; did you mean 'replicas'? (allowed: replicas, interval)",
    ],
    "bad-node.yaml": [
        "bad-node.yaml:25: spec.steps[1].node.taints[0]: 'dedicated=batch:Never' is no taint (allowed: KEY=VALUE:NoSchedule, KEY=VALUE:PreferNoSchedule, KEY=VALUE:NoExecute)",
        "bad-node.yaml:27: spec.steps[2].node: says nothing to change (allowed: becomes, labels, taints)",
    ],
    "cel-unknown-variable.yaml": [
        "cel-unknown-variable.yaml:19: spec.steps[0].until: there is no 'rolout'; did you mean 'rollout'? (allowed: t, since_change, step, values, rollout, canary, rollouts, analyses, subject, primary, target, pods, workloads, services, nodes, apex, revisions, at, route, autoscalers, configs, calls, gates, queries, traffic, answers)",
    ],
    "check-of-two-kinds.yaml": [
        "check-of-two-kinds.yaml:26: spec.checks[0].never: a check says one thing, this one has always and never (allowed: eventually, always, never)",
    ],
    "check-says-nothing.yaml": [
        "check-says-nothing.yaml:24: spec.checks[0]: says nothing; give one of these (allowed: eventually, always, never)",
    ],
    "controller-flags.yaml": [
        f"controller-flags.yaml:16: spec.controller.worker: is no flag of the bundled controller that a scenario can set; did you mean 'workers'? (allowed: {_FLAGS})",
        "controller-flags.yaml:17: spec.controller.workers: '0' is not a whole number from 1 to 1000",
        "controller-flags.yaml:18: spec.controller.logLevel: needs a value, not true or false",
        "controller-flags.yaml:19: spec.controller.leaderElect: must be true or false",
        f"controller-flags.yaml:20: spec.controller.kubeconfig: is no flag of the bundled controller that a scenario can set (allowed: {_FLAGS})",
        "controller-flags.yaml:21: spec.controller.clusterName: must be one value, not a list (allowed: a text, a number, true, false, null)",
    ],
    "controller-of-nothing.yaml": [
        "controller-of-nothing.yaml:15: spec.controller: must not be empty",
    ],
    "controller-without-feature.yaml": [
        "controller-without-feature.yaml:17: spec.controller.maxConcurrentAnalyses: needs 'start-limit' in spec.requires, for other subjects are started without it",
    ],
    "cyclic-include.yaml": [
        "cycle-b.yaml.j2:3: includes itself: cycle-a.yaml.j2 -> cycle-b.yaml.j2 -> cycle-a.yaml.j2",
    ],
    "done-by-unknown-check.yaml": [
        "done-by-unknown-check.yaml:15: spec.doneWhen[0].by[0]: 'serve' is no check; did you mean 'served'? (allowed: served, steps-completed, ends-in, settled, recorded, one-controller, nothing-forbidden, nothing-left, verdict)",
    ],
    "duplicate-key.yaml": [
        "duplicate-key.yaml:15: spec.settle: is given twice (first in line 14)",
    ],
    "duration-negative.yaml": [
        "duration-negative.yaml:20: spec.steps[0].within: must not be negative (allowed: 500ms, 1s, 1m30s, 2m, 1h, …)",
    ],
    "duration-number.yaml": [
        "duration-number.yaml:20: spec.steps[0].within: has no unit; for seconds write 10s (allowed: 500ms, 1s, 1m30s, 2m, 1h, …)",
    ],
    "duration-shape.yaml": [
        "duration-shape.yaml:20: spec.steps[0].within: 'soon' is not a duration (allowed: 500ms, 1s, 1m30s, 2m, 1h, …)",
    ],
    "empty-variants.yaml": [
        "empty-variants.yaml:10: spec.variants: must not be empty",
    ],
    "empty.yaml": [
        "empty.yaml: is empty",
    ],
    "folder-without-scenario": [
        "folder-without-scenario: holds no scenario.yaml",
    ],
    "from-step-left-out.yaml": [
        "from-step-left-out.yaml:27: spec.checks[0].from: step 'change' is left out, since its when is false [only in two] (allowed: initialise, end)",
    ],
    "holds-itself.yaml": [
        "holds-itself.yaml:3: spec.values: *spec holds itself",
    ],
    "include-from-outside.yaml": [
        "outside.yaml.j2:1: is not allowed in a template: '../rbac.yaml' lies outside of the scenario's folder",
    ],
    "installed-is-stopped.yaml": [
        "installed-is-stopped.yaml:23: spec.steps[1].stop: the subject 'installed' is only observed, never started, stopped or upgraded",
    ],
    "leading-zero.yaml": [
        "leading-zero.yaml:8: spec.values.replicas: 02 has a leading zero, which versions of YAML read differently; quote it, or write 0o2",
    ],
    "list.yaml": [
        "list.yaml:1: must be a mapping with apiVersion, kind, metadata and spec, not a list",
    ],
    "long-name.yaml": [
        "long-name.yaml:4: metadata.name: is longer than 40 characters",
    ],
    "manifest-cluster-scoped.yaml": [
        "cluster.manifest:2: kind: ClusterRole is cluster-scoped and would outlive the drill's namespace; it is refused",
    ],
    "manifest-from-outside.yaml": [
        "manifest-from-outside.yaml:15: spec.manifests[0]: '../good.yaml' lies outside of the scenario's folder",
    ],
    "manifest-is-namespace.yaml": [
        "namespace.manifest:6: kind: a Namespace is refused; the drill makes its own and everything goes there",
    ],
    "manifest-missing.yaml": [
        "manifest-missing.yaml:15: spec.manifests[0]: 'nowhere.yaml' is no file beside the scenario",
    ],
    "manifest-not-yaml.yaml": [
        "not-yaml.manifest:3: is not YAML: while parsing a flow sequence expected ',' or ']', but got ':'",
    ],
    "manifest-object-twice.yaml": [
        "twice.manifest:7: metadata.name: ConfigMap 'web' is in this manifest twice (first in line 1)",
    ],
    "manifest-with-namespace.yaml": [
        "namespaced.manifest:5: metadata.namespace: 'production' is refused; leave it out, everything goes to the drill's own namespace",
    ],
    "manifest-without-name.yaml": [
        "nameless.manifest:3: metadata.name: is missing; a generated name cannot be referred to",
    ],
    "matrix-of-unknown-value.yaml": [
        "matrix-of-unknown-value.yaml:15: spec.matrix.size: is not declared in spec.values (allowed: replicas, interval)",
    ],
    "metric-of-no-kind.yaml": [
        "metric-of-no-kind.yaml:7: spec.metrics.errors: 'throttled' is no value of a metric (allowed: a number, 'NaN', absent, '5/s' (a counter that grows))",
        "metric-of-no-kind.yaml:13: spec.steps[1].metric.success: 'refused' is no value of a metric (allowed: a number, 'NaN', absent, '5/s' (a counter that grows), down, throttled)",
        "metric-of-no-kind.yaml:16: spec.checks[0].always: queries has no field 'pek'; did you mean 'peak'? (allowed: total, refused, passed, peak, counted, counted_peak)",
    ],
    "no-checks.yaml": [
        "no-checks.yaml:5: spec.checks: is missing",
    ],
    "no-such-file.yaml": [
        "no-such-file.yaml: there is no such file",
    ],
    "nodes-count-and-min.yaml": [
        "nodes-count-and-min.yaml:15: spec.nodes: give count or min, not both (allowed: count, min)",
    ],
    "replicas-per-eligible-without-replicas.yaml": [
        "replicas-per-eligible-without-replicas.yaml:7: spec.nodes.replicasPerEligible: needs a whole number 'replicas' in spec.values, which it replaces on a cluster that is not ours",
    ],
    "nodes-without-feature.yaml": [
        "nodes-without-feature.yaml:9: spec.nodes.labels: needs 'node-changes' in spec.requires, for the nodes of a cluster that is not ours are left as they are",
    ],
    "not-utf8.yaml": [
        "not-utf8.yaml:2: is not UTF-8; save the file in that encoding",
    ],
    "not-yaml.yaml": [
        "not-yaml.yaml:16: is not YAML: while parsing a flow sequence expected ',' or ']', but got ':'",
    ],
    "otherwise-error.yaml": [
        "otherwise-error.yaml:26: spec.checks[0].otherwise: cannot be 'error' (allowed: fail, unknown)",
    ],
    "outside-of-nothing.yaml": [
        "outside-of-nothing.yaml:8: spec.values.receiver: 'receiver' is the address of spec.receiver in templates; choose another name",
        "outside-of-nothing.yaml:13: spec.receiver.alerts.approve: 'approve' is a gate already; a step could not tell the two apart",
        "outside-of-nothing.yaml:20: spec.steps[1].gate.name: 'aprove' is no gate of spec.receiver; did you mean 'approve'? (allowed: approve)",
        "outside-of-nothing.yaml:22: spec.steps[2].metric.sucess: 'sucess' is no metric of spec.metrics; did you mean 'success'? (allowed: success)",
        "outside-of-nothing.yaml:24: spec.steps[3].applyAs: applies nothing and prunes nothing (allowed: manifests, target, prune)",
        "outside-of-nothing.yaml:26: spec.steps[4].applyAs.manifests[0]: 'gud.yaml' is no manifest of this scenario; did you mean 'good.yaml'? (allowed: good.yaml)",
        "outside-of-nothing.yaml:26: spec.steps[4].applyAs.target: applies manifests or one target, not both",
        "outside-of-nothing.yaml:26: spec.steps[4].applyAs.target: must be one object, and 'rollouts' are several (allowed: workload, rollout, Kind/name)",
        "outside-of-nothing.yaml:26: spec.steps[4].applyAs.prune[0]: 'web' names no object (allowed: Kind/name)",
        "outside-of-nothing.yaml:28: spec.steps[5].applyAs.merge: changes what is applied to target",
    ],
    "outside-shapes.yaml": [
        "outside-shapes.yaml:9: spec.receiver.gates.Approve: 'Approve' must be lower case letters, digits and dashes",
        "outside-shapes.yaml:10: spec.receiver.gates.smoke.answer: 'perhaps' is no answer (allowed: open, closed, hang, a status such as 503)",
        "outside-shapes.yaml:10: spec.receiver.gates.smoke.first[0]: must be a status from 200 to 599, not 99 (allowed: open, closed, hang, a status such as 503)",
        "outside-shapes.yaml:12: spec.metrics.success: 'high' is no value of a metric (allowed: a number, 'NaN', absent, '5/s' (a counter that grows))",
        'outside-shapes.yaml:13: spec.metrics["a{b}"]: \'a{b}\' is no metric (allowed: name, name{label="value"})',
        "outside-shapes.yaml:14: spec.metrics.down: 'down' is no value of a metric (allowed: a number, 'NaN', absent, '5/s' (a counter that grows))",
        "outside-shapes.yaml:20: spec.steps[1].gate: must be a mapping, not a text",
    ],
    "patch-of-two-kinds.yaml": [
        "patch-of-two-kinds.yaml:22: spec.steps[1].patch: needs one of template, merge and status (allowed: template, merge, status)",
    ],
    "queries-without-metrics.yaml": [
        "queries-without-metrics.yaml:13: spec.checks[0].always: looks at queries, but there is no spec.metrics that could be asked for",
    ],
    "receiver-of-nothing.yaml": [
        "receiver-of-nothing.yaml:7: spec.receiver: declares neither gates nor alerts, so that it answers nothing (allowed: gates, alerts)",
    ],
    "record-at-unknown-step.yaml": [
        "record-at-unknown-step.yaml:15: spec.record[0].at[0]: 'begin' is no step (allowed: initialise, change, end)",
    ],
    "reserved-check-id.yaml": [
        "reserved-check-id.yaml:24: spec.checks[0].id: 'settled' is the id of a built-in check; choose another one",
    ],
    "reserved-step-name.yaml": [
        "reserved-step-name.yaml:21: spec.steps[1].name: 'end' means a moment; choose another name",
    ],
    "several.yaml": [
        "several.yaml:3: metadata.name: 'Several' must be lower case letters, digits and dashes",
        "several.yaml:4: spec.question: is missing",
        "several.yaml:5: spec.manifests[0]: 'nowhere.yaml' is no file beside the scenario",
        "several.yaml:7: spec.steps[0].apply[0]: 'good.yaml' is no manifest of this scenario (allowed: nowhere.yaml, undeclared.yaml.j2)",
        "several.yaml:7: spec.steps[0].within: has nothing to limit; it belongs to until",
        "several.yaml:7: spec.steps[0].within: has no unit; for seconds write 3s (allowed: 500ms, 1s, 1m30s, 2m, 1h, …)",
        "several.yaml:8: spec.steps[1].name: another step has the name 'one'",
        "several.yaml:8: spec.steps[1].until: rollout has no field 'done' (allowed: exists, name, phase, ended, weight, iterations, failed_checks, promoted, reason, message, conditions)",
        "several.yaml:9: spec.checks: must not be empty",
        "undeclared.yaml.j2:6: value 'replica' is not declared",
    ],
    "step-does-nothing.yaml": [
        "step-does-nothing.yaml:21: spec.steps[1]: has neither a verb nor until, so it does nothing (allowed: apply, patch, delete, scale, stop, start, kill, upgrade, handback, gate, metric, applyAs, node, wait)",
        "step-does-nothing.yaml:22: spec.steps[1].change: this step changes nothing, it has no verb (allowed: apply, patch, delete, scale, stop, start, kill, upgrade, handback, gate, metric, applyAs, node, wait)",
    ],
    "strange-node.yaml": [
        "strange-node.yaml:13: spec.nodes.taints.node1: 'node1' names no node (allowed: node-1, node-2, …)",
        "strange-node.yaml:14: spec.nodes.taints.node-1[0]: 'dedicated=batch:Never' is no taint (allowed: KEY=VALUE:NoSchedule, KEY=VALUE:PreferNoSchedule, KEY=VALUE:NoExecute)",
    ],
    "subject-of-variant-unknown.yaml": [
        "subject-of-variant-unknown.yaml:11: spec.variants.one.subject: 'argo' names no subject (allowed: bundled, bundled@in-cluster, flagger@X.Y.Z, flagger@path:FILE, installed)",
    ],
    "tab.yaml": [
        "tab.yaml:8: is indented with a tab; YAML wants spaces",
    ],
    "template-gives-no-yaml.yaml": [
        "no-yaml.yaml.j2:4: is not YAML: mapping values are not allowed here [only in two]",
    ],
    "template-leaves-sandbox.yaml": [
        "sandbox.yaml.j2:4: is not allowed in a template: access to attribute '__class__' of 'str' object is unsafe.",
    ],
    "template-syntax.yaml": [
        "syntax.yaml.j2:5: is not a template: expected token 'name', got 'end of print statement'",
    ],
    "traffic-of-nobody.yaml": [
        "traffic-of-nobody.yaml:8: spec.traffic: needs pods that can be reached, which simulated ones cannot: add 'network' to spec.requires",
        "traffic-of-nobody.yaml:9: spec.traffic.after: 'initialize' is no step; did you mean 'initialise'? (allowed: initialise)",
        "traffic-of-nobody.yaml:10: spec.traffic.service: 'gate.istio' is of another namespace, so that its port has to be said in spec.traffic.port",
        "traffic-of-nobody.yaml:11: spec.traffic.rate: must be at most 200, not 900",
        "traffic-of-nobody.yaml:12: spec.traffic.path: 'hostname' is no path of a URL (allowed: /hostname, /)",
        "traffic-of-nobody.yaml:19: spec.checks[0].never: traffic has no field 'faild'; did you mean 'failed'? (allowed: sent, answered, failed, kinds, last_failure, shares, message)",
    ],
    "two-checks-of-an-id.yaml": [
        "two-checks-of-an-id.yaml:26: spec.checks[1].id: another check has the name 'served'",
    ],
    "two-documents.yaml": [
        "two-documents.yaml:27: holds several documents; a scenario is one",
    ],
    "two-steps-of-a-name.yaml": [
        "two-steps-of-a-name.yaml:21: spec.steps[1].name: another step has the name 'initialise'",
    ],
    "two-verbs.yaml": [
        "two-verbs.yaml:19: spec.steps[0].delete: a step does one thing, this one has apply and delete",
    ],
    "undeclared-value-in-scenario.yaml": [
        "undeclared-value-in-scenario.yaml:6: spec.question: value 'replicsa' is not declared; did you mean 'replicas'? (allowed: interval, replicas)",
    ],
    "undeclared-value-in-template.yaml": [
        "undeclared.yaml.j2:6: value 'replica' is not declared; did you mean 'replicas'? (allowed: interval, replicas)",
    ],
    "unknown-failing-check.yaml": [
        "unknown-failing-check.yaml:13: spec.variants.two.expect.fail[0]: 'serve' is no check; did you mean 'served'? (allowed: served, steps-completed, ends-in, settled, recorded, one-controller, nothing-forbidden, nothing-left)",
    ],
    "unknown-feature.yaml": [
        "unknown-feature.yaml:15: spec.requires[0]: 'blue-gren' is no known feature; did you mean 'blue-green'? (allowed: ab-testing, autoscaler, blue-green, change-fence, config-tracking, confirm-promotion, daemonset, deployment, freeze, knative-service, manual-rollback-aborts, match-label-keys, metrics, metrics-rate, mirroring, progress-deadline, provider-kubernetes, restart-on-new-revision, restore-adopt, restore-revert, session-affinity, skip-analysis, start-limit, sub-10s-interval, suspend, traffic-weights, webhooks, audit, kubernetes-upgrade, gateway-api, istio, keda, knative, simulated-routes, node-changes, network, simulated-pods, revision-images, real-pods, several-nodes)",
    ],
    "unknown-field.yaml": [
        "unknown-field.yaml:14: spec.setle: is not a known field; did you mean 'settle'? (allowed: question, setup, requires, subject, controller, kubernetes, nodes, values, variants, matrix, expect, settle, receiver, metrics, traffic, manifests, steps, record, checks, doneWhen)",
    ],
    "unknown-from.yaml": [
        "unknown-from.yaml:26: spec.checks[0].from: 'initialize' is no step; did you mean 'initialise'? (allowed: initialise, change, end)",
    ],
    "unknown-kubernetes.yaml": [
        "unknown-kubernetes.yaml:15: spec.kubernetes: '35' is no version of Kubernetes (allowed: vX.Y, vX.Y.Z)",
    ],
    "unknown-node.yaml": [
        "unknown-node.yaml:11: spec.nodes.labels.node-3: 'node-3' is no node of this scenario; did you mean 'node-2'? (allowed: node-1, node-2)",
        "unknown-node.yaml:25: spec.steps[1].node.name: 'node-3' is no node that is there at this step; did you mean 'node-2'? (allowed: node-1, node-2)",
        "unknown-node.yaml:27: spec.steps[2].node.name: 'node-2' is there already, so that it cannot join",
        "unknown-node.yaml:33: spec.steps[5].node.name: 'node-3' is no node that is there at this step; did you mean 'node-2'? (allowed: node-1, node-2)",
    ],
    "unknown-phase.yaml": [
        "unknown-phase.yaml:13: spec.variants.two.expect.phase: cannot be 'Done' (allowed: Initializing, Initialized, Waiting, Progressing, WaitingPromotion, Promoting, Finalising, Succeeded, Failed, Frozen, Terminating, Terminated, any)",
    ],
    "unknown-subject.yaml": [
        "unknown-subject.yaml:15: spec.subject: 'flager' names no subject (allowed: bundled, bundled@in-cluster, flagger@X.Y.Z, flagger@path:FILE, installed)",
    ],
    "unknown-target.yaml": [
        "unknown-target.yaml:22: spec.steps[1].patch.target: 'deployment' names no object (allowed: workload, rollout, Kind/name, workloads, rollouts)",
    ],
    "unknown-verb.yaml": [
        "unknown-verb.yaml:22: spec.steps[1].pacth: is not a known field; did you mean 'patch'? (allowed: name, when, apply, patch, delete, scale, stop, start, kill, upgrade, handback, gate, metric, applyAs, node, wait, until, within, change)",
    ],
    "unquoted-template.yaml": [
        "unquoted-template.yaml:14: spec.settle: a key must be a text; a template needs quotes, as in '{{ value }}'",
    ],
    "upgrade-of-nothing.yaml": [
        "upgrade-of-nothing.yaml:22: spec.steps[1].upgrade: says neither to what subject nor to what version (allowed: subject, kubernetes)",
    ],
    "upgrade-of-two-kinds.yaml": [
        "upgrade-of-two-kinds.yaml:22: spec.steps[1].upgrade.kubernetes: upgrades one thing, so give subject or kubernetes, not both (allowed: subject, kubernetes)",
    ],
    "upgrade-to-installed.yaml": [
        "upgrade-to-installed.yaml:22: spec.steps[1].upgrade.subject: 'installed' is never started by a drill, so nothing can be upgraded to it (allowed: bundled, bundled@in-cluster, flagger@X.Y.Z, flagger@path:FILE)",
    ],
    "upgrade-to-unknown-subject.yaml": [
        "upgrade-to-unknown-subject.yaml:22: spec.steps[1].upgrade.subject: 'flagger@latest' names no subject (allowed: bundled, bundled@in-cluster, flagger@X.Y.Z, flagger@path:FILE, installed)",
    ],
    "upgrade-to-unknown-version.yaml": [
        "upgrade-to-unknown-version.yaml:22: spec.steps[1].upgrade.kubernetes: 'newest' is no version of Kubernetes (allowed: vX.Y, vX.Y.Z)",
    ],
    "value-with-reserved-name.yaml": [
        "value-with-reserved-name.yaml:9: spec.values.drill: 'drill' means something else in templates; choose another name",
    ],
    "variant-of-unknown-value.yaml": [
        "variant-of-unknown-value.yaml:13: spec.variants.two.values.replica: is not declared in spec.values; did you mean 'replicas'? (allowed: replicas, interval)",
    ],
    "variant-of-wrong-type.yaml": [
        "variant-of-wrong-type.yaml:13: spec.variants.two.values.replicas: must be a whole number, as declared in spec.values, not a text",
    ],
    "variant-without-values.yaml": [
        "variant-without-values.yaml:13: spec.variants.two.replicas: is not a known field; a value belongs below values (allowed: description, values, subject, slow, expect)",
    ],
    "when-not-boolean.yaml": [
        "when-not-boolean.yaml:22: spec.steps[1].when: must be true or false, not a text",
    ],
    "where-chooses-none.yaml": [
        "where-chooses-none.yaml:22: spec.steps[1].scale.where: no rollout object has all of these labels",
    ],
    "where-of-one.yaml": [
        "where-of-one.yaml:22: spec.steps[1].patch.where: chooses among several, and 'workload' is one (allowed: rollouts, workloads)",
    ],
    "where-unknown-label.yaml": [
        "where-unknown-label.yaml:22: spec.steps[1].patch.where[\"drill/sell\"]: no rollout object has the label 'drill/sell'; did you mean 'drill/cell'? (allowed: drill/cell, drill/phase)",
    ],
    "where-unknown-value.yaml": [
        "where-unknown-value.yaml:22: spec.steps[1].patch.where[\"drill/cell\"]: no rollout object has 'c' as 'drill/cell' (allowed: a, b)",
    ],
    "window-backwards.yaml": [
        "window-backwards.yaml:27: spec.checks[0].until: 'initialise' comes before from: 'change'",
    ],
    "within-without-until.yaml": [
        "within-without-until.yaml:19: spec.steps[0].within: has nothing to limit; it belongs to until",
    ],
    "wrong-kind.yaml": [
        "wrong-kind.yaml:2: kind: cannot be 'Scenery' (allowed: Scenario)",
    ],
    "wrong-type.yaml": [
        "wrong-type.yaml:6: spec.question: must be a text, not a list",
    ],
    "wrong-version.yaml": [
        "wrong-version.yaml:1: apiVersion: cannot be 'drill/v2' (allowed: drill/v1)",
    ],
}


def _lines(error: ScenarioError) -> list[str]:
    prefix = f"{os.path.relpath(_FOLDER)}/"
    return [line.removeprefix(prefix) for line in str(error).splitlines()]


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_scenario_is_refused_with_file_line_field_and_what_is_allowed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(_FOLDER.parent)
    with pytest.raises(ScenarioError) as caught:
        load(_FOLDER / name)
    assert _lines(caught.value) == BROKEN[name]


@pytest.mark.parametrize("name", BROKEN)
def test_lint_says_the_same_as_loading(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(_FOLDER.parent)
    assert _lines(ScenarioError(lint(_FOLDER / name))) == BROKEN[name]


def test_every_broken_scenario_has_its_expected_lines() -> None:
    files = {path.name for path in _FOLDER.glob("*.yaml")} - {"good.yaml"}
    assert files <= set(BROKEN)


def test_a_file_in_the_current_directory_is_named_without_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("kind: Scenario\n")
    with pytest.raises(ScenarioError) as caught:
        load("mine.yaml")
    assert str(caught.value).splitlines()[0] == "mine.yaml:1: apiVersion: is missing"
