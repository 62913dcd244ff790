"""What tests read of numapin's pods in a lab, and what they do to them."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from numapin_api.cpuset import CpuSet
from numapin_api.names import NAMESPACE
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.errors import LabError
from numapin_lab.installed.running import InstalledLab

SAMPLE_SECONDS = 0.05
_T = TypeVar("_T")


def component(member: Mapping[str, Any]) -> str:
    return str(member["metadata"]["labels"]["app.kubernetes.io/component"])


def manifest(member: Mapping[str, Any]) -> dict[str, Any]:
    (container,) = member["spec"]["containers"]
    return dict(container)


def status_of(pid: int) -> dict[str, str]:
    """Source: proc_pid_status(5)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def in_namespace(pid: int, kind: str) -> str:
    return str(Path(f"/proc/{pid}/ns/{kind}").readlink())


def reserved(lab: InstalledLab) -> CpuSet | None:
    """The reserved CPUs that the operator has decided."""
    assignment = lab.assignment()
    pools = assignment.spec.pools if assignment else None
    return pools.reserved if pools else None


def names(lab: InstalledLab, component: str) -> set[str]:
    """The names of the pods that are not being deleted."""
    return {one["metadata"]["name"] for one in staying(lab, component)}


def staying(lab: InstalledLab, component: str) -> list[dict[str, Any]]:
    """The pods that are not being deleted."""
    return [one for one in lab.pods_of(component) if "deletionTimestamp" not in one["metadata"]]


def evict(lab: InstalledLab, name: str) -> None:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": NAMESPACE},
    }
    lab.cluster.api.request("POST", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction", body)


def is_ready(member: Mapping[str, Any]) -> bool:
    """Whether the kubelet calls the pod ready."""
    conditions = member["status"].get("conditions", ())
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)


@contextmanager
def sampled(read: Callable[[], _T]) -> Iterator[list[_T]]:
    """Call `read` again and again in a thread meanwhile; an error of it is raised at the end."""
    samples: list[_T] = []
    errors: list[OSError | LabError | AnswerError] = []
    over = threading.Event()

    def run() -> None:
        try:
            while not over.is_set():
                samples.append(read())
                over.wait(SAMPLE_SECONDS)
        except (OSError, LabError, AnswerError) as error:  # raised below, in the thread of the test
            errors.append(error)

    thread = threading.Thread(target=run, name="samples")
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()
    if errors:
        raise errors[0]
