"""The files of a machine whose kubelet has the static policy."""

import json
from pathlib import Path
from typing import Any

from numapin_api.cpuset import CpuSet
from support.values.operator import pod_body

MACHINE = {
    "cpus": [[cpu, cpu // 2 * 2, 0, -1, 0] for cpu in range(8)],
    "numaNodes": [{"id": 0, "memoryBytes": 8 << 30}],
}


POLICY = """\
apiVersion: numapin.io/v1beta1
kind: CpuPolicy
metadata: {name: web}
spec: {reserved: {cpus: "0-1"}%s}
"""


GIVEN = {"uid-a": {"main": "4-5"}, "uid-b": {"main": "2-3"}}


def state(shared: str | None = None, **entries: dict[str, str]) -> str:
    """The CPU manager's state; all CPUs that it gives to no container are shared."""
    pods = {uid.replace("_", "-"): one for uid, one in entries.items()} or GIVEN
    given = CpuSet.union(CpuSet.parse(cpus) for one in pods.values() for cpus in one.values())
    shared = str(CpuSet(range(8)) - given) if shared is None else shared
    content = {"policyName": "static", "defaultCpuSet": shared, "entries": pods, "checksum": 1}
    return json.dumps(content)


def write(folder: Path, policy: str = "", pods: list[Any] | None = None) -> None:
    listed = [pod_body("a"), pod_body("b")] if pods is None else pods
    (folder / "policy.yaml").write_text(POLICY % policy)
    (folder / "pods.json").write_text(json.dumps({"kind": "List", "items": listed}))
    (folder / "machine.json").write_text(json.dumps(MACHINE))
