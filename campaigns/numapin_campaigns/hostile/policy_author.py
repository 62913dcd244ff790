"""What an administrator does who errs: policies that are absurd, contradict or change all the time.

No policy of this author governs the control nodes: theirs has a higher priority.
"""

import random
from typing import Final

from numapin_campaigns.hostile.operations import Cast, Operation, author
from numapin_client.resources import CPU_POLICIES, NAMESPACES, Json, Key

POLICIES = 12
"""How many exist at most."""

SELECTORS: list[Json] = [
    {},
    {"role": "tenant"},
    {"role": "evil"},
    {"role": "odd"},
    {"role": "nothing"},
    {f"example.com/l{one}": "v" for one in range(63)},
]
RESERVED: list[Json] = [
    *({"count": count} for count in (1, 2, 4, 63, 64, 65535)),
    *({"cpus": cpus} for cpus in ("0", "0-1", "5", "0-63", "0-1000", "8191", "1,3,5")),
    {"count": 2, "strict": True},
    {},
]
EXPRESSIONS: list[Json] = [
    {"key": "n", "operator": "Exists"},
    {"key": "n", "operator": "NotIn", "values": ["1", "2", "3"]},
    {"key": "n", "operator": "In", "values": ["4", "5"]},
    {"key": "n", "operator": "DoesNotExist"},
]


def random_spec(rng: random.Random) -> Json:
    """The spec of a policy; the API server refuses some of them."""
    options = (
        *("fullPCPUsOnly", "distributeCPUsAcrossNUMA", "alignBySocket"),
        *("distributeCPUsAcrossCores", "preferAlignCPUsByUncoreCache"),
    )
    topology = {
        "policy": rng.choice(("None", "BestEffort", "Restricted", "SingleNUMANode")),
        "scope": rng.choice(("Container", "Pod")),
        "preferClosestNUMANodes": rng.random() < 0.3,
        "maxAllowableNUMANodes": rng.choice((8, 16, 64)),
    }
    spec: Json = {
        "nodeSelector": rng.choice(SELECTORS),
        "priority": rng.randint(-100, 100),
        "mode": rng.choice(("Static", "Static", "Static", "None", "Dynamic")),
        "reserved": rng.choice(RESERVED),
        "options": {name: True for name in options if rng.random() < 0.12},
        "topology": topology,
        "cpuQuota": rng.choice(("Unlimited", "Keep")),
        "isolation": rng.choice(("Cpuset", "Partition", "IsolatedPartition")),
        "onUnsatisfiable": rng.choice(("Share", "Share", "Evict")),
    }
    if rng.random() < 0.5:
        spec["memory"] = _memory(rng)
    if rng.random() < 0.4:
        spec["pods"] = _pods(rng)
    return spec


def _memory(rng: random.Random) -> Json:
    sizes = ("0", "1Gi", "1Ei", "1", "9223372036854775807")
    reserved: list[Json] = [
        {"numaNode": node, "memory": rng.choice(sizes)}
        for node in rng.sample((0, 1, 2, 1023), rng.choice((0, 1, 3)))
    ]
    if reserved and rng.random() < 0.3:
        reserved[0]["hugepages"] = {rng.choice(("2Mi", "1Gi", "2X")): rng.choice(sizes)}
    policy = rng.choice(("None", "Static", "Preferred", "SingleNUMA"))
    return {"policy": policy, "reserved": reserved}


def _pods(rng: random.Random) -> Json:
    chosen: Json = {}
    if rng.random() < 0.7:
        chosen["podSelector"] = {"matchExpressions": rng.sample(EXPRESSIONS, rng.randint(1, 3))}
    if rng.random() < 0.5:
        chosen["namespaceSelector"] = {"matchExpressions": [rng.choice(EXPRESSIONS)]}
    if rng.random() < 0.5:
        chosen["qosClasses"] = rng.choice((["Guaranteed"], ["Guaranteed", "Burstable"]))
    return chosen


def create(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """A new policy."""
    if len(cast.policies) >= POLICIES:
        return delete(rng, number, cast)
    name = f"odd-{number}"
    body = {"metadata": {"name": name}, "spec": random_spec(rng)}
    return [Operation("create policy", "create", CPU_POLICIES, Key(name), body)]


def edit(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """One policy changes once, or ten times in a row."""
    if not cast.policies:
        return []
    key = Key(rng.choice(sorted(cast.policies)))
    times = rng.choice((1, 1, 1, 10))
    return [
        Operation("edit policy", "replace", CPU_POLICIES, key, {"spec": random_spec(rng)})
        for _ in range(times)
    ]


def delete(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """A policy goes."""
    if not cast.policies:
        return []
    key = Key(rng.choice(sorted(cast.policies)))
    return [Operation("delete policy", "delete", CPU_POLICIES, key)]


def namespace(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
    """The labels of the tenant's namespace change, and with them what policies select."""
    labels = {"n": rng.choice(("1", "4", "9", None))}
    body = {"metadata": {"labels": labels}}
    return [Operation("label namespace", "patch", NAMESPACES, Key("hostile"), body)]


POLICY_AUTHOR: Final = author((4, create), (6, edit), (3, delete), (3, namespace))
