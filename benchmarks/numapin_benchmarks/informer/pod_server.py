"""A server of pods for benchmarks: lists in chunks, and watches; all answers are precomputed.

    python -m numapin_benchmarks.pod_server --pods N --events N

Prints its port on 127.0.0.1 and serves until killed. Every watch gets all events, as fast as the
client reads them.
"""

import argparse
import asyncio
import json
import random
from typing import Any

CHUNK = 500
BATCH = 100
NODES = 5000


def pod(number: int, version: int) -> dict[str, Any]:
    """A pod as a real API server sends it: two containers, managed fields, full status."""
    container = {
        "name": "main",
        "image": f"registry.example/team/service:{version}",
        "resources": {
            "limits": {"cpu": "2", "memory": "4Gi"},
            "requests": {"cpu": "2", "memory": "4Gi"},
        },
        "env": [{"name": f"SETTING_{n}", "value": f"value of setting {n}"} for n in range(12)],
        "volumeMounts": [
            {"name": f"volume-{n}", "mountPath": f"/mnt/{n}", "readOnly": True} for n in range(4)
        ],
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }
    fields: dict[str, dict[str, Any]] = {
        f'k:{{"name":"SETTING_{n}"}}': {".": {}, "f:name": {}, "f:value": {}} for n in range(12)
    }
    return {
        "metadata": {
            "name": f"service-{number // 10}-{number}",
            "generateName": f"service-{number // 10}-",
            "namespace": f"team-{number % 200}",
            "uid": f"{number:08x}-aaaa-bbbb-cccc-{number:012x}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": f"service-{number // 10}", "pod-template-hash": "5d4f8c7b9"},
            "managedFields": [
                {"manager": manager, "operation": "Update", "fieldsV1": {"f:env": fields}}
                for manager in ("kube-controller-manager", "kubelet")
            ],
        },
        "spec": {
            "nodeName": f"node-{number % NODES}",
            "containers": [container, container | {"name": "sidecar"}],
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
        },
        "status": {
            "phase": "Running",
            "qosClass": "Guaranteed",
            "podIP": "10.0.0.1",
            "conditions": [
                {"type": name, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
                for name in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [
                {
                    "name": name,
                    "ready": True,
                    "restartCount": 0,
                    "image": "registry.example/team/service",
                    "imageID": "sha256:" + "0" * 64,
                    "containerID": f"containerd://{number:064x}",
                    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                }
                for name in ("main", "sidecar")
            ],
        },
    }


class Server:
    """Serves lists and watches of pods, and nothing else, from one template."""

    def __init__(self, pods: int, events: int) -> None:
        self._pods, self._events = pods, events
        # Precomputed, so that the client is measured and not this process.
        self._chunks = [self._chunk(start) for start in range(0, pods, CHUNK)]
        self._lines = self._changes()

    def _chunk(self, start: int) -> bytes:
        items = [pod(number, number + 1) for number in range(start, min(self._pods, start + CHUNK))]
        metadata = {"resourceVersion": str(self._pods)}
        if start + CHUNK < self._pods:
            metadata["continue"] = str(start + CHUNK)
        body = {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}
        return json.dumps(body, separators=(",", ":")).encode()

    def _changes(self) -> list[bytes]:
        chosen = random.Random(1)
        lines = []
        for count in range(self._events):
            body = pod(chosen.randrange(self._pods), self._pods + count + 1)
            body |= {"kind": "Pod", "apiVersion": "v1"}
            event = {"type": "MODIFIED", "object": body}
            lines.append(json.dumps(event, separators=(",", ":")).encode() + b"\n")
        return [b"".join(lines[at : at + BATCH]) for at in range(0, len(lines), BATCH)]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests on one connection until the client hangs up."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                target = head.split(b" ", 2)[1].decode()
                if "watch=" in target:
                    await self._watch(reader, writer)
                else:
                    at = target.partition("continue=")[2].partition("&")[0]
                    self._answer(writer, self._chunks[int(at or 0) // CHUNK])
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, writer: asyncio.StreamWriter, body: bytes) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        writer.write(head.encode() + b"\r\n\r\n")
        writer.write(body)

    async def _watch(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
        writer.write(b"Transfer-Encoding: chunked\r\n\r\n")
        for batch in self._lines:
            writer.write(f"{len(batch):x}\r\n".encode() + batch + b"\r\n")
            await writer.drain()
        await reader.read()


async def run_server(pods: int, events: int) -> None:
    """Serve until killed; prints the port first."""
    server = await asyncio.start_server(Server(pods, events).serve, "127.0.0.1", 0, limit=2**20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve pods for benchmarks.")
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--events", type=int, required=True)
    given = parser.parse_args()
    asyncio.run(run_server(given.pods, given.events))
