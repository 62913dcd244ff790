"""An API server of many nodes, all alike, which makes each object when it is asked for.

    python -m numapin_benchmarks.fleet.server --nodes N --pods P

`P` pods run on each node, two of them with CPUs of their own. Prints its address and serves until
it is ended. It answers lists in chunks, with the field selectors that the commands use. A watch
delivers what is posted: `POST /report/NODE` makes the enforcer of a node report drift.
"""

import argparse
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from numapin_api.names import API_VERSION
from numapin_benchmarks.informer.pod_server import pod as any_pod

Json = dict[str, Any]

_CPUS: Final = 64
_OWN: Final = ("4-5,36-37", "6-7,38-39")
"""What the first pods of each node have: two cores each."""

_WHEN: Final = "2026-01-01T00:00:00Z"


def _name(number: int) -> str:
    return f"worker-{number:05}"


def _metadata(kind: str, number: int) -> Json:
    uid = f"{kind}-{number:05}"
    return {"name": _name(number), "uid": uid, "resourceVersion": "1", "generation": 1}


def node(number: int) -> Json:
    """A Node with as many images as the kubelet reports by default."""
    offered = {"memory": "263000000Ki", "pods": "250", "cpu": "64"}
    images = [
        {"names": [f"registry.example/team/service-{one}@sha256:{'0' * 64}"], "sizeBytes": 10**8}
        for one in range(50)
    ]
    labels = {"kubernetes.io/hostname": _name(number), "pool": f"pool-{number % 7}"}
    return {
        "metadata": _metadata("node", number) | {"labels": labels},
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {
            "capacity": offered,
            "allocatable": offered | {"cpu": "62"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": _WHEN}],
            "nodeInfo": {"operatingSystem": "linux"},
            "images": images,
        },
    }


def pod(number: int, of_node: int) -> Json:
    """A pod of a node as a real API server sends it; the first ones ask for whole CPUs."""
    made = any_pod(number, 1)
    made["metadata"]["name"] += f"-{of_node}"
    made["spec"]["nodeName"] = _name(number)
    made["metadata"]["uid"] = f"pod-{number:05}-{of_node}"
    is_whole = of_node < len(_OWN)
    amounts = {"cpu": "4" if is_whole else "100m", "memory": "1Gi"}
    for one in made["spec"]["containers"]:
        one["resources"] = {"limits": amounts, "requests": amounts}
    made["spec"]["containers"] = made["spec"]["containers"][:1]
    return made


def assignment(number: int, pods: int) -> Json:
    """A NodeAssignment with a line for each exclusive container."""
    lines = []
    for one, cpus in enumerate(_OWN[:pods]):
        metadata = pod(number, one)["metadata"]
        place = f"{metadata['namespace']}/{metadata['name']}"
        lines.append(f"{place} main cpus={cpus} since=1 uid={metadata['uid']}")
    shared = f"0-3,{8 if pods else 4}-35,{40 if pods else 36}-63"
    pools = {"reservedCPUs": "0,32", "sharedCPUs": shared}
    policy = {"name": "fast", "generation": 1, "since": 1, "uid": "policy"}
    spec = {"policy": policy, "mode": "Static", "cpuQuota": "Unlimited", "isolation": "Cpuset"}
    spec |= {"pools": pools, "assigned": lines}
    return {"metadata": _metadata("assignment", number), "spec": spec, "status": {}}


def report(number: int, drift: int = 0) -> Json:
    """A NodeReport by which all is in force, after so many changes of others."""
    seen = {"uid": f"assignment-{number:05}", "generation": 1}
    conditions = [
        {"type": kind, "status": status, "reason": reason, "message": "", "observedGeneration": 1}
        | {"lastTransitionTime": _WHEN}
        for kind, status, reason in (
            ("Ready", "True", "Enforced"),
            ("Stalled", "False", "NotStalled"),
        )
    ]
    status: Json = {"conditions": conditions, "observed": seen, "enforced": seen}
    status |= {"driftCount": drift} if drift else {}
    return {"metadata": _metadata("report", number), "status": status}


def topology(number: int) -> Json:
    """Two sockets of 16 cores with two threads each, a NUMA node each.

    The kernel keeps a little more or less memory for itself on each machine, so no two are equal.
    """
    halves = ("0-15,32-47", "16-31,48-63")
    memory = {"memoryBytes": (128 << 30) - 4096 * number, "hugepages": {}}
    numa_nodes = [
        {"id": one, "cpus": cpus, "distances": [10, 21][:: 1 if not one else -1]} | memory
        for one, cpus in enumerate(halves)
    ]
    units = [{"id": one, "cpus": cpus} for one, cpus in enumerate(halves)]
    cores = [f"{one},{one + _CPUS // 2}" for one in range(_CPUS // 2)]
    status = {"numaNodes": numa_nodes, "sockets": units, "uncoreCaches": units, "cores": cores}
    rest: Json = {"offline": "", "isolated": "", "pci": [], "warnings": []}
    return {"metadata": _metadata("topology", number), "status": status | rest}


def policy(_: int) -> Json:
    """The only policy."""
    metadata = {"name": "fast", "uid": "policy", "resourceVersion": "1", "generation": 1}
    ready = {"type": "Ready", "status": "True", "reason": "InForce", "lastTransitionTime": _WHEN}
    status = {"conditions": [ready | {"message": ""}], "observedGeneration": 1}
    spec = {"reserved": {"cpus": "0,32"}, "options": {"fullPCPUsOnly": True}}
    return {"metadata": metadata | {"creationTimestamp": _WHEN}, "spec": spec, "status": status}


def namespace(number: int) -> Json:
    """A namespace of pods."""
    metadata = {"name": f"team-{number}", "uid": f"team-{number}", "resourceVersion": "1"}
    return {"metadata": metadata | {"labels": {"team": str(number)}}}


class Served:
    """The objects of each resource: how many there are, and how one is made."""

    def __init__(self, nodes: int, pods: int) -> None:
        self.pods = pods
        self.version, self.changes = 1, list[Json]()
        self.changed = threading.Condition()
        self.resources: Mapping[str, tuple[int, Callable[[int], Json]]] = {
            "nodes": (nodes, node),
            "pods": (nodes * pods, lambda one: pod(*divmod(one, pods))),
            "nodeassignments": (nodes, lambda one: assignment(one, pods)),
            "nodereports": (nodes, report),
            "nodetopologies": (nodes, topology),
            "cpupolicies": (1, policy),
            "namespaces": (200, namespace),
        }

    def answer(self, path: str, query: Mapping[str, str], *, metadata_only: bool) -> Json | None:
        """A list, an object, or what the server says of itself; None if there is none of it."""
        *_, above, last = path.split("/")
        if last in {"version", "numapin.io"}:
            version = API_VERSION.partition("/")[2]
            return {"gitVersion": "v1.36.3", "versions": [{"version": version}]}
        if last in self.resources and "/namespaces/" in path:
            return {"metadata": {}, "items": []}  # nothing that a command asks for is in one
        if last in self.resources:
            found = self._list(query, *self.resources[last])
            kept = [{"metadata": one["metadata"]} for one in found["items"]]
            return found | {"items": kept} if metadata_only else found
        if above not in self.resources or not (number := re.search(r"\d+$", last)):
            return None
        return self.resources[above][1](int(number[0]))

    def drift(self, name: str) -> None:
        """Have a node report one more change of others, as an event of NodeReports."""
        with self.changed:
            self.version += 1
            body = report(int(name.rpartition("-")[2]), self.version - 1)
            body["metadata"]["resourceVersion"] = str(self.version)
            self.changes.append({"type": "MODIFIED", "object": body})
            self.changed.notify_all()

    def following(self, path: str, query: Mapping[str, str]) -> Iterator[Json]:
        """The events of a watch, until its time is over."""
        events = self.changes if path.endswith("/nodereports") else []
        sent = int(query.get("resourceVersion") or 1) - 1
        end = time.monotonic() + float(query.get("timeoutSeconds") or 300)
        while (left := end - time.monotonic()) > 0:
            with self.changed:
                if len(events) <= sent:
                    self.changed.wait(left)
                new = events[sent:]
            yield from new
            sent += len(new)

    def _list(self, query: Mapping[str, str], count: int, made: Callable[[int], Json]) -> Json:
        begin, end = self._selected(query.get("fieldSelector", ""), count)
        first = int(query.get("continue") or begin)
        last = min(end, first + int(query.get("limit") or count))
        metadata = {"resourceVersion": str(self.version)} | (
            {"continue": str(last)} if last < end else {}
        )
        return {"metadata": metadata, "items": [made(one) for one in range(first, last)]}

    def _selected(self, selector: str, count: int) -> tuple[int, int]:
        found = re.search(r"(spec\.nodeName|metadata\.name)=worker-(\d+)", selector)
        if found is None:
            return 0, count
        each = self.pods if found[1] == "spec.nodeName" else 1
        return int(found[2]) * each, (int(found[2]) + 1) * each


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"

    def __init__(self, served: Served, *of_server: Any) -> None:
        self._served = served
        super().__init__(*of_server)

    def do_GET(self) -> None:
        """Answer a request."""
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if query.get("watch"):
            self._watch(url.path, query)
            return
        metadata_only = "PartialObjectMetadata" in self.headers.get("Accept", "")
        found = self._served.answer(url.path, query, metadata_only=metadata_only)
        body = b"404 page not found\n" if found is None else json.dumps(found).encode()
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Carry out what is posted."""
        self._served.drift(self.path.rpartition("/")[2])
        self.send_response(204)
        self.end_headers()

    def _watch(self, path: str, query: Mapping[str, str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        with suppress(OSError):
            for event in self._served.following(path, query):
                self.wfile.write(json.dumps(event).encode() + b"\n")
                self.wfile.flush()
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=30)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    served = Served(options.nodes, options.pods)
    server = ThreadingHTTPServer(("127.0.0.1", options.port), partial(_Handler, served))
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
