"""What the API server refuses in a CpuPolicy although its fields are valid. Does no I/O.

These are the CRD's CEL rules and the keys of its lists, for policies that no API server has seen.
"""

import re
from collections.abc import Iterator
from typing import Final

from numapin_api.cpupolicy import HUGEPAGE_SIZE, CpuPolicySpec
from numapin_api.duration import duration_nanoseconds
from numapin_api.invalid import InvalidField
from numapin_api.meta.cel_rules import LABEL_KEY, LABEL_VALUE
from numapin_api.meta.selectors import LabelSelector
from numapin_api.moves.model import MAX_NOTICE_SECONDS
from numapin_api.starts.model import MAX_START_TIMEOUT, MOST_MILLISECONDS

_EXCLUDING: Final = (
    ("fullPCPUsOnly", "distributeCPUsAcrossCores"),
    ("distributeCPUsAcrossNUMA", "distributeCPUsAcrossCores"),
    ("preferAlignCPUsByUncoreCache", "distributeCPUsAcrossCores"),
    ("preferAlignCPUsByUncoreCache", "distributeCPUsAcrossNUMA"),
)


def refused_fields(spec: CpuPolicySpec) -> Iterator[InvalidField]:
    """The fields that contradict others, or that no object can match."""
    if spec.reserved.cpus is not None and spec.reserved.count is not None:
        yield InvalidField("spec.reserved", "give cpus or count, not both")
    yield from _options(spec)
    yield from _memory(spec)
    yield from _labels(spec.node_selector, "spec.nodeSelector")
    yield from _selector(spec.nodes, "spec.nodes")
    if spec.nodes is not None and spec.node_selector:
        yield InvalidField("spec.nodes", "give nodes or nodeSelector, not both")
    if duration_nanoseconds(spec.dynamic.notice) > MAX_NOTICE_SECONDS * 10**9:
        yield InvalidField("spec.dynamic.notice", f"{spec.dynamic.notice} is too long: 0s to 60s")
    if not 0 < duration_nanoseconds(spec.start_timeout) <= MOST_MILLISECONDS * 10**6:
        problem = f"{spec.start_timeout}: give more than 0s, at most {MAX_START_TIMEOUT}"
        yield InvalidField("spec.startTimeout", problem)
    yield from _selector(spec.dynamic.pod_selector, "spec.dynamic.podSelector")
    yield from _selector(spec.pods.pod_selector, "spec.pods.podSelector")
    yield from _selector(spec.pods.namespace_selector, "spec.pods.namespaceSelector")
    if len(set(spec.pods.qos_classes)) < len(spec.pods.qos_classes):
        yield InvalidField("spec.pods.qosClasses", "names a class twice; name it once")


def _options(spec: CpuPolicySpec) -> Iterator[InvalidField]:
    options = spec.options.to_wire()
    for one, other in _EXCLUDING:
        if options[one] and options[other]:
            yield InvalidField(f"spec.options.{other}", f"excludes {one}; set only one")
    if options["alignBySocket"] and spec.topology.policy == "SingleNUMANode":
        problem = "conflicts with topology.policy SingleNUMANode; remove one"
        yield InvalidField("spec.options.alignBySocket", problem)


def _memory(spec: CpuPolicySpec) -> Iterator[InvalidField]:
    if spec.memory.policy == "Static" and spec.memory.nodes_without_cpus == "Spill":
        problem = "Spill conflicts with memory.policy Static: write Any or Never"
        yield InvalidField("spec.memory.nodesWithoutCPUs", problem)
    known: set[int] = set()
    for index, reserved in enumerate(spec.memory.reserved):
        field = f"spec.memory.reserved[{index}]"
        if reserved.numa_node in known:
            problem = f"NUMA node {reserved.numa_node} is there already; list it once"
            yield InvalidField(f"{field}.numaNode", problem)
        known.add(reserved.numa_node)
        for size in reserved.hugepages:
            if not re.fullmatch(HUGEPAGE_SIZE, size):
                problem = f"{size!r:.40} is not a page size such as 2Mi or 1Gi"
                yield InvalidField(f"{field}.hugepages", problem)


def _selector(selector: LabelSelector | None, field: str) -> Iterator[InvalidField]:
    if selector is None:
        return
    yield from _labels(selector.match_labels, f"{field}.matchLabels")
    for index, one in enumerate(selector.match_expressions):
        if (one.operator in {"In", "NotIn"}) != bool(one.values):
            yield InvalidField(
                f"{field}.matchExpressions[{index}].values",
                "In and NotIn need values, Exists and DoesNotExist take none",
            )


def _labels(labels: dict[str, str], field: str) -> Iterator[InvalidField]:
    for key, value in labels.items():
        if not re.fullmatch(LABEL_KEY, key):
            yield InvalidField(field, f"{key!r:.40} is not a label key such as example.com/pool")
        if not re.fullmatch(LABEL_VALUE, value):
            yield InvalidField(f"{field}[{key}]", f"{value!r:.40} is not a label value")
