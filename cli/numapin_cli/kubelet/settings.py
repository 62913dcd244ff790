"""A kubelet's configuration as a CpuPolicy that does the same.

Source: Kubernetes v1.36, kubelet/config/v1beta1 `KubeletConfiguration` and pkg/kubelet/cm.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any, Final

from pydantic import ValidationError

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.cpuset import CpuSet
from numapin_api.invalid import invalid_fields
from numapin_api.quantity import QuantityError, format_bytes, parse_quantity
from numapin_cli.inputs.manifests import section
from numapin_cli.inputs.policy_rules import refused_fields
from numapin_cli.subcommand import CommandError

_CPU_OPTIONS: Final = {
    "full-pcpus-only": ("options", "fullPCPUsOnly"),
    "distribute-cpus-across-numa": ("options", "distributeCPUsAcrossNUMA"),
    "align-by-socket": ("options", "alignBySocket"),
    "distribute-cpus-across-cores": ("options", "distributeCPUsAcrossCores"),
    "prefer-align-cpus-by-uncorecache": ("options", "preferAlignCPUsByUncoreCache"),
    "strict-cpu-reservation": ("reserved", "strict"),
}
_TOPOLOGY_OPTIONS: Final = {"prefer-closest-numa-nodes": ("topology", "preferClosestNUMANodes")}
_MOST_NUMA_NODES: Final = "max-allowable-numa-nodes"
_CPU_POLICIES: Final = {"none": "None", "static": "Static"}
_MEMORY_POLICIES: Final = {"None": "None", "Static": "Static"}
_TOPOLOGY_POLICIES: Final = {
    "none": "None",
    "best-effort": "BestEffort",
    "restricted": "Restricted",
    "single-numa-node": "SingleNUMANode",
}
_SCOPES: Final = {"container": "Container", "pod": "Pod"}
_QUOTA_GATE: Final = "DisableCPUQuotaWithExclusiveCPUs"
_GATES: Final = re.compile(
    "CPUManager|TopologyManager|MemoryManager|LevelResourceManagers|Exclusive"
)
_HUGEPAGES: Final = "hugepages-"
_EVICTION: Final = "100Mi"
"""The default of evictionHard for `memory.available`."""

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
"""Source: Go, strconv.ParseBool."""

_READ: Final = frozenset(
    {
        "apiVersion",
        "kind",
        "cpuManagerPolicy",
        "cpuManagerPolicyOptions",
        "cpuManagerReconcilePeriod",
        "evictionHard",
        "featureGates",
        "kubeReserved",
        "memoryManagerPolicy",
        "mergeDefaultEvictionSettings",
        "reservedMemory",
        "reservedSystemCPUs",
        "systemReserved",
        "topologyManagerPolicy",
        "topologyManagerPolicyOptions",
        "topologyManagerScope",
    }
)


@dataclass(frozen=True, slots=True)
class Translated:
    """The spec of a CpuPolicy, and a line for each setting that it does not carry."""

    spec: Mapping[str, Any]
    notes: tuple[str, ...]


def translate(configuration: Mapping[str, Any]) -> Translated:
    """The CpuPolicy that does what a kubelet of this configuration does.

    Raises:
        CommandError: a value cannot be used; no kubelet starts with it.
    """
    translation = _Translation(configuration)
    translation.run()
    spec = {key: value for key, value in translation.spec.items() if value not in ({}, [])}
    try:
        model = CpuPolicySpec.model_validate(spec, extra="forbid")
    except ValidationError as refused:
        first = invalid_fields(refused, within="spec")[0]
        raise CommandError(f"the configuration as a CpuPolicy: {first}") from refused
    for wrong in refused_fields(model):
        raise CommandError(f"the configuration as a CpuPolicy: {wrong}; no kubelet starts with it")
    return Translated(spec, tuple(translation.notes))


@dataclass
class _Translation:
    """Fills a spec, setting by setting."""

    given: Mapping[str, Any]
    spec: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def run(self) -> None:
        mode = self._choice("cpuManagerPolicy", _CPU_POLICIES, "none")
        self.spec = {"mode": mode, "reserved": {}, "options": {}, "topology": {}, "memory": {}}
        if mode == "None":
            self._note("cpuManagerPolicy", "none gives no container CPUs of its own: mode None")
        self._reserved()
        self._options("cpuManagerPolicyOptions", _CPU_OPTIONS)
        self._topology()
        self._memory()
        self._gates()
        self._without_counterpart()

    def _reserved(self) -> None:
        amounts = {key: self._amount(key, "cpu") for key in ("kubeReserved", "systemReserved")}
        cpus = str(self.given.get("reservedSystemCPUs") or "")
        if cpus:
            try:
                self.spec["reserved"]["cpus"] = str(CpuSet.parse(cpus))
            except ValueError as problem:
                raise CommandError(f"reservedSystemCPUs: {problem}") from problem
            for key in (key for key, amount in amounts.items() if amount):
                self._note(f"{key}.cpu", "has no effect beside reservedSystemCPUs")
        elif count := ceil(sum(amounts.values())):
            self.spec["reserved"]["count"] = count
        elif self.spec["mode"] == "Static":
            self._note(
                "reservedSystemCPUs",
                "and the CPUs of kubeReserved and systemReserved are missing, and no static kubelet"
                " starts without; the policy reserves what the Node keeps back, at least 1 CPU",
            )

    def _options(self, setting: str, known: Mapping[str, tuple[str, str]]) -> None:
        for name, value in section(self.given, setting).items():
            if name == _MOST_NUMA_NODES and setting == "topologyManagerPolicyOptions":
                self._most_numa_nodes(str(value))
            elif name not in known:
                self._note(f"{setting}.{name}", "has no counterpart")
            elif str(value) not in _TRUE | _FALSE:
                raise CommandError(f'{setting}.{name}: {value!r:.40} is not "true" or "false"')
            elif str(value) in _TRUE:
                part, option = known[name]
                self.spec[part][option] = True

    def _most_numa_nodes(self, value: str) -> None:
        setting = f"topologyManagerPolicyOptions.{_MOST_NUMA_NODES}"
        if not (value.isascii() and value.isdecimal()) or int(value[:9]) < 8:
            raise CommandError(f"{setting}: {value!r:.40} is no number from 8")
        self._note(setting, "is not needed: numapin places on any number of NUMA nodes")

    def _topology(self) -> None:
        policy = self._choice("topologyManagerPolicy", _TOPOLOGY_POLICIES, "none")
        scope = self._choice("topologyManagerScope", _SCOPES, "container")
        self._options("topologyManagerPolicyOptions", _TOPOLOGY_OPTIONS)
        if policy != "None":
            self.spec["topology"]["policy"] = policy
            self._note(
                "topologyManagerPolicy", "aligns devices too: keep it in the kubelet for them"
            )
        if scope != "Container":
            self.spec["topology"]["scope"] = scope

    def _memory(self) -> None:
        setting = str(self.given.get("memoryManagerPolicy") or "None")
        reserved = list(self._reserved_memory())
        if setting == "BestEffort":
            self._note("memoryManagerPolicy", "BestEffort has no counterpart (it is of Windows)")
            return
        if self._choice("memoryManagerPolicy", _MEMORY_POLICIES, "None") == "None":
            if reserved:
                self._note("reservedMemory", "has no effect without memoryManagerPolicy Static")
            return
        self.spec["memory"] = {"policy": "Static", "reserved": reserved}
        if self.spec["mode"] == "None":
            self._note("memoryManagerPolicy", "Static has no counterpart while mode is None")
        if reserved:
            self._compare_memory(reserved)
        else:
            del self.spec["memory"]["reserved"]
            self._note(
                "reservedMemory",
                "is missing, and no kubelet starts with memoryManagerPolicy Static without; the"
                " policy reserves what the Node keeps back",
            )

    def _reserved_memory(self) -> Iterator[dict[str, Any]]:
        by_node: dict[Any, dict[str, Any]] = {}
        listed = self.given.get("reservedMemory") or []
        for index, one in enumerate(listed if isinstance(listed, list) else [listed]):
            where = f"reservedMemory[{index}]"
            if not isinstance(one, Mapping):
                raise CommandError(f"{where}: must be an object with numaNode and limits")
            node = one.get("numaNode", 0)
            entry = by_node.setdefault(node, {"numaNode": node})
            for resource, amount in section(one, "limits").items():
                self._reserve(entry, where, str(resource), amount)
        yield from by_node.values()

    def _reserve(self, entry: dict[str, Any], where: str, resource: str, amount: object) -> None:
        """Add one amount to the reservation of a NUMA node."""
        _quantity(amount, f"{where}.limits.{resource}")
        pages = resource.removeprefix(_HUGEPAGES)
        if resource != "memory" and pages == resource:
            raise CommandError(f"{where}.limits.{resource}: is neither memory nor {_HUGEPAGES}SIZE")
        part = entry if resource == "memory" else entry.setdefault("hugepages", {})
        if pages in part:
            raise CommandError(f"{where}.limits.{resource}: is there twice for this NUMA node")
        part[pages] = str(amount)

    def _compare_memory(self, reserved: Iterable[Mapping[str, Any]]) -> None:
        """Note a sum with which the kubelet does not start."""
        evicts = section(self.given, "evictionHard")
        default = not evicts or self.given.get("mergeDefaultEvictionSettings") is True
        kept_free = str(evicts.get("memory.available", _EVICTION if default else "0"))
        if kept_free.endswith("%"):
            return
        wanted = _quantity(kept_free, "evictionHard.memory.available")
        wanted += self._amount("kubeReserved", "memory") + self._amount("systemReserved", "memory")
        there = sum(parse_quantity(one["memory"]) for one in reserved if "memory" in one)
        if there != wanted:
            self._note(
                "reservedMemory",
                f"is {format_bytes(int(there))}, and kubeReserved, systemReserved and evictionHard"
                f" keep back {format_bytes(int(wanted))}: no kubelet starts with it",
            )

    def _gates(self) -> None:
        for name, value in section(self.given, "featureGates").items():
            if name == _QUOTA_GATE and value is False:
                self.spec["cpuQuota"] = "Keep"
            elif name != _QUOTA_GATE and _GATES.search(str(name)):
                self._note(f"featureGates.{name}", "has no counterpart: numapin has no such gates")

    def _without_counterpart(self) -> None:
        if "cpuManagerReconcilePeriod" in self.given:
            self._note(
                "cpuManagerReconcilePeriod",
                "has no counterpart: see --resync-seconds of the enforcer",
            )
        kept = ("reservedSystemCPUs", "kubeReserved", "systemReserved", "evictionHard")
        if there := [key for key in kept if self.given.get(key)]:
            self._note(", ".join(there), "must stay in the kubelet too, for what is allocatable")
        if others := sorted(map(str, self.given.keys() - _READ)):
            self._note("left to the kubelet", ", ".join(others))

    def _choice(self, setting: str, known: Mapping[str, str], default: str) -> str:
        value = str(self.given.get(setting) or default)
        if value not in known:
            raise CommandError(f"{setting}: {value!r:.40} is none of {', '.join(known)}")
        return known[value]

    def _amount(self, setting: str, resource: str) -> Fraction:
        value = section(self.given, setting).get(resource)
        return Fraction(0) if value is None else _quantity(value, f"{setting}.{resource}")

    def _note(self, setting: str, text: str) -> None:
        self.notes.append(f"{setting}: {text}")


def _quantity(value: object, place: str) -> Fraction:
    try:
        return parse_quantity(value)
    except QuantityError as problem:
        raise CommandError(f"{place}: {problem}") from problem
