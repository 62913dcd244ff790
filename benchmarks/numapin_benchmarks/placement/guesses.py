"""Random machines, policies and pods."""

import random
from collections.abc import Iterator
from math import ceil

from numapin_benchmarks.placement.workload import GIB, Json

_OPTIONS: tuple[Json, ...] = (
    {},
    {},
    {"fullPCPUsOnly": True},
    {"distributeCPUsAcrossNUMA": True},
    {"distributeCPUsAcrossNUMA": True, "fullPCPUsOnly": True},
    {"preferAlignCPUsByUncoreCache": True},
    {"preferAlignCPUsByUncoreCache": True, "fullPCPUsOnly": True},
    {"distributeCPUsAcrossCores": True},
    {"alignBySocket": True},
)
_RESOURCES = ("example.com/gpu", "example.com/nic")
_POLICIES = ("None", "BestEffort", "BestEffort", "Restricted", "SingleNUMANode")


def guess(seed: str) -> Json:
    """One scenario with its machine under `machine`; equal seeds give equal scenarios."""
    chance = random.Random(seed)
    machine = _machine(chance)
    policy = _policy(chance, machine)
    steps = list(_steps(chance, machine, has_memory="memory" in policy))
    return {
        "name": seed,
        "machine": machine,
        "policy": policy,
        "steps": steps,
        "devices": _devices(random.Random(f"{seed} devices"), machine, steps),
    }


def _machine(chance: random.Random) -> Json:
    """All cores have equally many threads: on hybrid machines the planners differ on purpose."""
    count = chance.choice((1, 1, 2, 2, 3, 4, 4, 6, 8))
    ids = sorted(chance.sample(range(60), count)) if chance.random() < 0.2 else list(range(count))
    threads, even = chance.choice((1, 2, 2, 4)), chance.choice((2, 3, 4, 6))
    cores = [
        node
        for node in range(count)
        for _ in range(chance.randint(1, 8) if chance.random() < 0.3 else even)
    ]
    if chance.random() < 0.3:
        chance.shuffle(cores)
    per_socket, caches = chance.choice((1, 1, 2, 4)), chance.choice((None, 1, 2))
    sockets_in_node, far = chance.choice((1, 1, 2)), chance.random() < 0.5
    rows = []
    for number, node in enumerate(cores):
        part = number % 2
        socket = node // per_socket if sockets_in_node == 1 else node * 2 + part
        cache = -1 if caches is None else node * 2 + part % caches
        first = number if far else number * threads
        for thread in range(threads):
            cpu = number + thread * len(cores) if far else first + thread
            rows.append([cpu, first, socket, cache, ids[node]])
    bare = [max(ids) + 1] if chance.random() < 0.15 else []
    return {"cpus": sorted(rows), "numaNodes": _numa_nodes(chance, ids + bare)}


def _numa_nodes(chance: random.Random, ids: list[int]) -> list[Json]:
    far = [[chance.choice((11, 12, 20, 31)) for _ in ids] for _ in ids]
    pages = {"2Mi": 64, "1Gi": 1} if chance.random() < 0.3 else {}
    return [
        {
            "id": node,
            "memoryBytes": chance.choice((2, 4, 8, 16)) * GIB,
            "hugepages": {size: chance.randint(0, most) for size, most in pages.items()},
            "distances": [10 if a == b else far[min(a, b)][max(a, b)] for b in range(len(ids))],
        }
        for a, node in enumerate(ids)
    ]


def _policy(chance: random.Random, machine: Json) -> Json:
    cpus = [row[0] for row in machine["cpus"]]
    few = chance.randint(1, max(1, len(cpus) // 6))
    reserved: Json = {"count": few}
    if chance.random() < 0.5:
        reserved = {"cpus": ",".join(map(str, sorted(chance.sample(cpus, few))))}
    topology = {
        "policy": chance.choice(_POLICIES),
        "scope": chance.choice(("Container", "Pod")),
        "preferClosestNUMANodes": chance.random() < 0.4,
    }
    policy = {
        "reserved": reserved | {"strict": chance.random() < 0.25},
        "options": chance.choice(_OPTIONS),
        "topology": topology,
    }
    if chance.random() < 0.6:
        first = machine["numaNodes"][0]["id"]
        policy["memory"] = {
            "policy": "Static",
            "reserved": [{"numaNode": first, "memory": "256Mi"}],
        }
    return policy


def _steps(chance: random.Random, machine: Json, *, has_memory: bool) -> Iterator[Json]:
    present: list[str] = []
    with_pods = chance.random() < 0.3
    for number in range(chance.randint(6, 16)):
        if present and chance.random() < 0.3:
            yield {"remove": present.pop(chance.randrange(len(present)))}
            continue
        uid = f"u{number}"
        present.append(uid)
        spec = _spec(chance, machine, has_memory=has_memory)
        if with_pods and chance.random() < 0.5:
            _give_budget(chance, spec)
        metadata = {"name": uid, "namespace": "default", "uid": uid}
        yield {"add": {"metadata": metadata, "spec": spec}}


def _spec(chance: random.Random, machine: Json, *, has_memory: bool) -> Json:
    most = max(1, len(machine["cpus"]) // chance.choice((1, 2, 4, 8)))
    pages = [size for size in machine["numaNodes"][0]["hugepages"] if has_memory]

    def container(name: str) -> Json:
        cpu = str(chance.randint(1, most))
        if chance.random() < 0.12:
            cpu = chance.choice(("250m", "500m", "1500m"))
        sizes = (64, 256, 1024, 3072, 5120, 9216) if has_memory else (64, 256)
        amounts = {"cpu": cpu, "memory": f"{chance.choice(sizes)}Mi"}
        for size in pages:
            if chance.random() < 0.3:
                amounts[f"hugepages-{size}"] = {"2Mi": "32Mi", "1Gi": "1Gi"}[size]
        limits = amounts | ({"cpu": "999"} if chance.random() < 0.04 else {})
        return {"name": name, "resources": {"requests": amounts, "limits": limits}}

    init = [container(f"i{i}") for i in range(chance.choice((0, 0, 0, 1, 1, 2)))]
    for each in init:
        if chance.random() < 0.4:
            each["restartPolicy"] = "Always"
    apps = [container(f"c{i}") for i in range(chance.choice((1, 1, 2, 3)))]
    return {"initContainers": init, "containers": apps}


def _give_budget(chance: random.Random, spec: Json) -> None:
    """Give a pod pod-level resources, about as large as its containers need."""
    cpus, mib = 0.0, 0
    for each in spec["initContainers"] + spec["containers"]:
        asked = each["resources"]["requests"]
        for size in [name for name in asked if name.startswith("hugepages")]:
            del asked[size], each["resources"]["limits"][size]
        cpus += int(asked["cpu"][:-1]) / 1000 if asked["cpu"][-1] == "m" else int(asked["cpu"])
        mib += int(asked["memory"][:-2])
        if chance.random() < 0.15:
            each["resources"] = {}
    whole = str(ceil(cpus) + chance.choice((0, 0, 1, 2)))
    if chance.random() < 0.1:
        whole = f"{int(whole) * 1000 + 500}m"
    budget = {"cpu": whole, "memory": f"{mib + chance.choice((0, 0, 256))}Mi"}
    spec["resources"] = {"requests": budget, "limits": budget}


def _devices(chance: random.Random, machine: Json, steps: list[Json]) -> Json:
    """Devices of up to two resources, which containers of `steps` request from then on.

    Pods with pod-level resources request none: in pod scope the kubelet gives these devices when
    their containers start, and not when it admits them.
    """
    ids = [one["id"] for one in machine["numaNodes"]]
    found = {}
    for resource in _RESOURCES[: chance.choice((0, 0, 0, 1, 1, 2))]:
        count = chance.randint(1, 8)
        sizes = [chance.choice((0, 1, 1, 1, 1, min(2, len(ids)))) for _ in range(count)]
        found[resource] = [
            {"id": f"d{number}", "numaNodes": sorted(chance.sample(ids, size))}
            | ({"healthy": False} if chance.random() < 0.1 else {})
            for number, size in enumerate(sizes)
        ]
    pods = [step["add"]["spec"] for step in steps if "add" in step]
    for spec in [one for one in pods if "resources" not in one]:
        for each in spec["initContainers"] + spec["containers"]:
            for resource in found:
                if chance.random() < 0.4:
                    wanted = {resource: str(chance.randint(1, 3))}
                    each["resources"] = {
                        kind: amounts | wanted for kind, amounts in each["resources"].items()
                    }
    return found
