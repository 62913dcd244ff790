"""What a node does whose enforcer and kubelet lie."""

import copy
import random
from typing import Any, Final

from numapin_campaigns.hostile.operations import Cast, Operation, author
from numapin_client.resources import NODE_ASSIGNMENTS, NODES, Json, Key

LISTS = ["0-3", "0-65535", "5", "0,2,4,6", "8191", "0-8191", "0-1023", "3-1", "0-0", "7-9", "0-63"]
NUMBERS = (0, 1, 2, 7, 10, 63, 255, 1023, 1024, 8191, 65535, 70000, 2**31 - 1, 10**13, -1)
KEYS = ("2Mi", "1Gi", "2X", "0Ki", "", "9999Ti", "2M", "x" * 70)
WORDS = ("Enforced", "", "no spaces allowed", "X" * 1024, "Stalled", "lower")
TIME = "2026-01-01T00:00:00Z"


def _report(what: str, node: str, status: Json) -> list[Operation]:
    key = Key(node)
    return [Operation(what, "patch", NODE_ASSIGNMENTS, key, {"status": status}, "status")]


def machine(rng: random.Random, cast: Cast) -> Json:
    """A captured machine, or a small one."""
    if rng.random() < 0.6:
        found: Json = copy.deepcopy(rng.choice(cast.topologies))
        return found
    cpus = rng.choice((1, 2, 8, 30))
    return {"numaNodes": [{"id": 0, "cpus": f"0-{cpus - 1}", "memoryBytes": 8 << 30}]}


def flapping(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """Another machine than before, at each report."""
    node = rng.choice(cast.evil)
    status = {"observedGeneration": rng.choice((1, number, 2)), "topology": machine(rng, cast)}
    return _report("flapping topology", node, status)


def bent(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """A machine in which something was replaced by nonsense, at any depth."""
    node, topology = rng.choice(cast.evil), machine(rng, cast)
    for _ in range(rng.choice((1, 1, 2, 5))):
        _bend(rng, topology)
    return _report("bent topology", node, {"topology": topology})


def _bend(rng: random.Random, topology: Json) -> None:
    part = rng.choice(("numaNodes", "sockets", "uncoreCaches", "cores", "offline", "pci"))
    listed = topology.setdefault(part, "" if part == "offline" else [])
    if part in ("offline", "cores"):
        topology[part] = rng.choice(LISTS) if part == "offline" else [rng.choice(LISTS)] * 3
    elif part == "pci":
        listed.append({"numaNode": rng.choice(NUMBERS), "devices": ["0000:00:00.0/0200"] * 5})
    elif rng.random() < 0.2:
        topology[part] = [{"id": one, "cpus": rng.choice(LISTS)} for one in range(200)]
    elif listed:
        one = rng.choice(listed)
        field = rng.choice(("id", "cpus", "memoryBytes", "distances", "hugepages"))
        one[field] = _value(rng, field)
    else:
        listed.append({"id": rng.choice(NUMBERS), "cpus": rng.choice(LISTS)})


def _value(rng: random.Random, field: str) -> Any:
    if field == "cpus":
        return rng.choice(LISTS)
    if field == "distances":
        return [rng.choice(NUMBERS) for _ in range(rng.choice((0, 1, 2, 3, 300)))]
    if field == "hugepages":
        return {rng.choice(KEYS): rng.choice(NUMBERS)}
    return rng.choice(NUMBERS)


def claims(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """Containers and pods that run, so it says: its own, others', thousands."""
    node = rng.choice(cast.evil)
    uids = [*cast.victims, *cast.pods.values(), *(f"uid-{one}" for one in range(50))]
    count = rng.choice((0, 1, 5, 500, 2048, 3000))
    running = [rng.choice(uids) for _ in range(count)] if rng.random() < 0.5 else []
    running = running or [f"{number}-{one}" for one in range(count)]
    containers = [
        {"podUID": rng.choice(uids), "container": "c0", "cpus": rng.choice(LISTS[:5])}
        for _ in range(rng.choice((0, 3, 1024)))
    ]
    generation = rng.choice((0, 1, number, 2**31, 2**62))
    status = {"running": running, "containers": containers, "observedGeneration": generation}
    return _report("false claims", node, status)


def complaints(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """Conditions that are long, odd, contradictory or missing."""
    node = rng.choice(cast.evil)
    conditions = [
        {
            "type": kind,
            "status": rng.choice(("True", "False", "Unknown")),
            "reason": rng.choice(WORDS),
            "message": rng.choice(("", "m", "m" * 32768, "é\u202e\n" * 3000, "x" * 30000)),
            "observedGeneration": rng.choice((0, 1, number, 2**31)),
            "lastTransitionTime": TIME,
        }
        for kind in ("Ready", "Reconciling", "Stalled", "Odd", "Odder")
        if rng.random() < 0.7
    ]
    return _report("odd conditions", node, {"conditions": conditions})


def heavy(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """As large as etcd takes it, twice in a row, so that each is a change."""
    node = rng.choice(cast.evil)
    pci = [{"numaNode": 0, "devices": [f"0000:{one:04x}:00.0/0200" for one in range(20000)]}]
    warnings = ["w" * 1000 for _ in range(rng.choice((10, 900)))]
    topology = machine(rng, cast) | {"warnings": warnings}
    if rng.random() < 0.5:
        topology["pci"] = pci
    body = {"topology": topology, "driftCount": number}
    again = body | {"driftCount": number + 1}
    return _report("heavy status", node, body) + _report("heavy status", node, again)


def emptied(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """Fields that were there are gone."""
    names = ("topology", "conditions", "running", "containers", "pools", "observedGeneration")
    gone = dict.fromkeys(rng.sample(names, rng.randint(1, 6)))
    return _report("emptied status", rng.choice(cast.evil), gone)


def node_object(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """Its Node: odd capacity, other labels, heartbeats in a burst."""
    key = Key(rng.choice(cast.evil))
    amount = rng.choice(("0", "1", "8", "1000m", "1e30", "9223372036854775807", "0.5", "1n"))
    capacity = {"capacity": {"cpu": amount, "memory": "1Ei"}, "allocatable": {"cpu": "1e9"}}
    ready = {"type": "Ready", "status": rng.choice(("True", "False", "Unknown"))}
    beats = [
        {"conditions": [ready | {"lastHeartbeatTime": f"2026-01-01T00:00:{one:02d}Z"}]}
        for one in range(10)
    ]
    role = rng.choice(("evil", "tenant", "odd", None, "v" * 63))
    labels = {"metadata": {"labels": {"role": role, "x": "y" * rng.choice((1, 63))}}}
    if rng.random() < 0.4:
        return [Operation("labels of a node", "patch", NODES, key, labels)]
    statuses = beats if rng.random() < 0.5 else [capacity]
    return [
        Operation("status of a node", "patch", NODES, key, {"status": one}, "status")
        for one in statuses
    ]


def reborn(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """Its Node is deleted and registered again under the same name."""
    name = rng.choice(cast.evil)
    gone = Operation("node deleted", "delete", NODES, Key(name))
    body = {"metadata": {"name": name, "labels": {"role": "evil"}}}
    return [gone, Operation("node registered", "create", NODES, Key(name), body)]


LIAR: Final = author(
    (5, flapping), (8, bent), (4, claims), (4, complaints), (2, heavy), (3, emptied),
    (4, node_object), (1, reborn),
)  # fmt: skip
