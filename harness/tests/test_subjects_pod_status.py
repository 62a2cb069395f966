"""What a pod's status says about its container, and which of it is hopeless."""

from __future__ import annotations

from typing import Any

import pytest

from harness.subjects import pod_status


def pod(state: dict[str, Any] | None = None, restarts: int = 0, **more: Any) -> dict[str, Any]:
    row = {"state": state, "restartCount": restarts, **more}
    return {
        "metadata": {"name": "c-1", "uid": "u"},
        "spec": {"containers": [{"name": "controller", "image": "registry.example/c:1"}]},
        "status": {"phase": "Pending", "containerStatuses": [row] if state is not None else []},
    }


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


def test_an_image_that_cannot_be_pulled_is_named() -> None:
    text = "pod c-1: ImagePullBackOff of image 'registry.example/c:1': Back-off pulling image"
    assert pod_status.trouble(pod(waiting("ImagePullBackOff", "Back-off  pulling\nimage"))) == text


@pytest.mark.parametrize("reason", ["ErrImagePull", "ContainerCreating", "CrashLoopBackOff"])
def test_what_may_pass_is_no_trouble_but_is_told(reason: str) -> None:
    one = pod(waiting(reason))
    assert pod_status.trouble(one) == ""
    assert reason in pod_status.standing(one)


def test_standing_in_words() -> None:
    assert pod_status.standing(pod()) == "pod c-1: Pending"
    assert pod_status.standing(pod({"running": {}})) == "pod c-1 runs, not ready yet"
    assert pod_status.standing(pod({"running": {}}, ready=True)) == "pod c-1 runs"
    ended = pod({"terminated": {"exitCode": 137, "reason": "OOMKilled"}})
    assert (
        pod_status.standing(ended)
        == "pod c-1: its container ended with exit status 137 (OOMKilled)"
    )
    unplaced = pod()
    why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2"}
    unplaced["status"]["conditions"] = [why]
    assert pod_status.standing(unplaced) == "pod c-1: Unschedulable: 0/2"


def test_each_end_of_a_container_is_told_by_its_number() -> None:
    last = {"terminated": {"exitCode": 1, "reason": "Error"}}
    assert pod_status.ends(pod({"running": {}})) == {}
    assert pod_status.ends(pod(last)) == {0: "exit status 1"}
    again = pod({"running": {}}, restarts=3, lastState=last)
    assert pod_status.ends(again) == {2: "exit status 1"}


def test_there_is_a_log_once_it_has_begun() -> None:
    assert not pod_status.has_begun(pod())
    assert not pod_status.has_begun(pod(waiting("ContainerCreating")))
    assert pod_status.has_begun(pod({"running": {}}))
    assert pod_status.has_begun(pod(waiting("CrashLoopBackOff"), restarts=1))


def test_a_deployment_says_why_no_pod_could_be_made() -> None:
    bad = {"type": "ReplicaFailure", "status": "True", "message": 'pods "x" is forbidden: quota'}
    assert pod_status.refused({"status": {"conditions": [bad]}}) == 'pods "x" is forbidden: quota'
    assert pod_status.refused({"status": {"conditions": [{**bad, "status": "False"}]}}) == ""
    assert pod_status.refused({}) == ""
