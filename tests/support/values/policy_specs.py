"""Specs of policies that the API server accepts, and those that it refuses with its message."""

from typing import Any

LONG = ",".join(str(cpu) for cpu in range(0, 448, 2))

GOOD_POLICIES: dict[str, dict[str, Any]] = {
    "nothing said": {},
    "a partition": {"isolation": "Partition"},
    "an isolated partition": {"isolation": "IsolatedPartition"},
    "reserved by list": {"reserved": {"cpus": "0-1,32-33"}},
    "reserved by a long list": {"reserved": {"cpus": LONG}},
    "reserved by count": {"reserved": {"count": 2, "strict": True}},
    "reserved count beside a null list": {"reserved": {"cpus": None, "count": 2}},
    "neither list nor count": {"reserved": {"strict": True}},
    "packing options": {
        "options": {
            "fullPCPUsOnly": True,
            "preferAlignCPUsByUncoreCache": True,
            "alignBySocket": True,
        }
    },
    "distributing over NUMA nodes": {
        "options": {"fullPCPUsOnly": True, "distributeCPUsAcrossNUMA": True}
    },
    "distributing over cores": {
        "options": {"distributeCPUsAcrossCores": True, "fullPCPUsOnly": False}
    },
    "align by socket, restricted": {
        "options": {"alignBySocket": True},
        "topology": {"policy": "Restricted"},
    },
    "single NUMA node": {
        "topology": {"policy": "SingleNUMANode", "scope": "Pod"},
        "memory": {
            "policy": "Static",
            "reserved": [
                {"numaNode": 0, "memory": "1Gi", "hugepages": {"2Mi": "64Mi", "1Gi": 0}},
                {"numaNode": 1, "memory": 1073741824},
            ],
        },
    },
    "labels": {
        "nodeSelector": {"node-role.kubernetes.io/worker": "", "pool": "fast_1.x"},
        "pods": {
            "namespaceSelector": {"matchLabels": {"example.com/team": "trading"}},
            "podSelector": {
                "matchExpressions": [
                    {"key": "app", "operator": "In", "values": ["a", "b"]},
                    {"key": "app", "operator": "Exists"},
                ]
            },
            "qosClasses": ["Guaranteed", "Burstable"],
        },
    },
    "durations of several parts": {
        "releaseDelay": "1h30m",
        "mode": "Dynamic",
        "dynamic": {"notice": "0.25s", "movePause": "1m30.5s"},
    },
    "durations of the smallest and the largest units": {
        "releaseDelay": "9999h",
        "dynamic": {"notice": "250ms", "movePause": "1us2ns"},
    },
    "a start that waits as long as it may": {"startGate": "Wait", "startTimeout": "1500ms"},
    "durations as short as they can be": {"releaseDelay": "0", "dynamic": {"notice": "0h"}},
    "every node but the control plane": {
        "nodes": {
            "matchExpressions": [
                {"key": "node-role.kubernetes.io/control-plane", "operator": "DoesNotExist"}
            ]
        }
    },
    "nodes by label and expression": {
        "nodeSelector": {},
        "nodes": {
            "matchLabels": {"pool": "fast"},
            "matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a", "b"]}],
        },
    },
    "memory without CPUs last": {"memory": {"policy": "Preferred", "nodesWithoutCPUs": "Spill"}},
    "memory without CPUs never": {"memory": {"policy": "Static", "nodesWithoutCPUs": "Never"}},
    "pods that may say where": {"placement": {"podRequests": True}},
    "a setting of kubelets that has no effect": {"topology": {"maxAllowableNUMANodes": 16}},
    "the highest priority": {"priority": 2147483647},
    "confined namespaces": {"pods": {"confinedNamespaces": ["kube-system", "monitoring"]}},
    "processes of no pod keep off": {"system": {"processes": "KeepOff"}},
    "moves, the longest notice": {
        "mode": "Dynamic",
        "dynamic": {
            "notice": "1m",
            "movePause": "1h",
            "maxMovesPerMinute": 60,
            "podSelector": {"matchLabels": {"example.com/movable": "true"}},
        },
    },
}

BAD_POLICIES: dict[str, tuple[dict[str, Any], str]] = {
    "reserved twice": ({"reserved": {"cpus": "0", "count": 1}}, "give cpus or count, not both"),
    "reserved no list": ({"reserved": {"cpus": "zero"}}, "not a list of CPUs: write it like"),
    "reserved with spaces": ({"reserved": {"cpus": "0 1"}}, "not a list of CPUs: write it like"),
    "reserved backwards": ({"reserved": {"cpus": "1,5-3"}}, "a range runs backwards"),
    "reserved empty": ({"reserved": {"cpus": ""}}, "at least 1 chars"),
    "reserved none": ({"reserved": {"count": 0}}, "greater than or equal to 1"),
    "whole cores, spread": (
        {"options": {"fullPCPUsOnly": True, "distributeCPUsAcrossCores": True}},
        "fullPCPUsOnly and distributeCPUsAcrossCores are mutually exclusive",
    ),
    "spread over cores and NUMA nodes": (
        {"options": {"distributeCPUsAcrossNUMA": True, "distributeCPUsAcrossCores": True}},
        "distributeCPUsAcrossNUMA and distributeCPUsAcrossCores are mutually exclusive",
    ),
    "by cache, spread over cores": (
        {"options": {"preferAlignCPUsByUncoreCache": True, "distributeCPUsAcrossCores": True}},
        "preferAlignCPUsByUncoreCache and distributeCPUsAcrossCores are mutually exclusive",
    ),
    "by cache, spread over NUMA nodes": (
        {"options": {"preferAlignCPUsByUncoreCache": True, "distributeCPUsAcrossNUMA": True}},
        "preferAlignCPUsByUncoreCache and distributeCPUsAcrossNUMA are mutually exclusive",
    ),
    "by socket on a single NUMA node": (
        {"options": {"alignBySocket": True}, "topology": {"policy": "SingleNUMANode"}},
        "alignBySocket conflicts with topology.policy SingleNUMANode",
    ),
    "too few NUMA nodes allowed": (
        {"topology": {"maxAllowableNUMANodes": 7}},
        "greater than or equal to 8",
    ),
    "an unknown topology policy": (
        {"topology": {"policy": "single-numa-node"}},
        'supported values: "None", "BestEffort", "Restricted", "SingleNUMANode"',
    ),
    "an unknown mode": ({"mode": "static"}, 'supported values: "Static", "None", "Dynamic"'),
    "an unknown field": ({"reservedCPUs": "0"}, 'unknown field "spec.reservedCPUs"'),
    "memory of one node twice": (
        {"memory": {"reserved": [{"numaNode": 0}, {"numaNode": 0}]}},
        "spec.memory.reserved[1]: Duplicate value",
    ),
    "memory no quantity": (
        {"memory": {"reserved": [{"numaNode": 0, "memory": "1 GB"}]}},
        "spec.memory.reserved[0].memory",
    ),
    "memory below nothing": (
        {"memory": {"reserved": [{"numaNode": 0, "memory": -1}]}},
        "greater than or equal to 0",
    ),
    "huge pages of no size": (
        {"memory": {"reserved": [{"numaNode": 0, "hugepages": {"2MB": 1}}]}},
        "each key is a page size such as 2Mi or 1Gi",
    ),
    "no label key": ({"nodeSelector": {"a b": "c"}}, "each key is a label key"),
    "no label value": ({"nodeSelector": {"a": "b c"}}, "each value is a label value"),
    "no label key of pods": (
        {"pods": {"podSelector": {"matchLabels": {"/a": "b"}}}},
        "each key is a label key",
    ),
    "no label value of pods": (
        {"pods": {"podSelector": {"matchLabels": {"a": "b c"}}}},
        "each value is a label value",
    ),
    "no label key of namespaces": (
        {"pods": {"namespaceSelector": {"matchLabels": {"/a": "b"}}}},
        "each key is a label key",
    ),
    "no label value of namespaces": (
        {"pods": {"namespaceSelector": {"matchLabels": {"a": "b c"}}}},
        "each value is a label value",
    ),
    "In without values": (
        {"pods": {"podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}},
        "In and NotIn need values",
    ),
    "Exists with values": (
        {
            "pods": {
                "namespaceSelector": {
                    "matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]
                }
            }
        },
        "Exists and DoesNotExist take none",
    ),
    "no QoS class": ({"pods": {"qosClasses": []}}, "at least 1 items"),
    "a QoS class that requests nothing": (
        {"pods": {"qosClasses": ["BestEffort"]}},
        'supported values: "Guaranteed", "Burstable"',
    ),
    "a QoS class twice": (
        {"pods": {"qosClasses": ["Guaranteed", "Guaranteed"]}},
        "Duplicate value",
    ),
    "a notice beyond all": ({"dynamic": {"notice": "10000h"}}, "a duration is at most 9999h"),
    "a notice of many parts": ({"dynamic": {"notice": "1m1ms"}}, "notice is 0s to 60s"),
    "no duration": ({"releaseDelay": "soon"}, "this is not a duration: write it like 30s"),
    "a duration below nothing": ({"releaseDelay": "-1s"}, "this is not a duration"),
    "days": ({"dynamic": {"movePause": "1d"}}, "this is not a duration"),
    "a longer duration": ({"releaseDelay": "9999h1ns"}, "a duration is at most 9999h"),
    "a duration that Go cannot hold": ({"releaseDelay": "99999999h"}, "spec.releaseDelay"),
    "memory without CPUs, as no kubelet does": (
        {"memory": {"policy": "Static", "nodesWithoutCPUs": "Spill"}},
        "nodesWithoutCPUs Spill conflicts with policy Static",
    ),
    "another use of memory without CPUs": (
        {"memory": {"nodesWithoutCPUs": "Always"}},
        'supported values: "Never", "Spill", "Any"',
    ),
    "a permission that is no truth value": (
        {"placement": {"podRequests": "Allow"}},
        "spec.placement.podRequests",
    ),
    "a start that waits for nothing": ({"startTimeout": "0s"}, "startTimeout is more than 0s"),
    "a start that waits too long": ({"startTimeout": "1501ms"}, "startTimeout is more than 0s"),
    "a start that waits for days": ({"startTimeout": "10000h"}, "a duration is at most 9999h"),
    "a start without a unit": ({"startTimeout": "1"}, "this is not a duration"),
    "other processes of no pod": (
        {"system": {"processes": "Move"}},
        'supported values: "Leave", "KeepOff"',
    ),
    "another start gate": ({"startGate": "Never"}, 'supported values: "None", "Wait"'),
    "no isolation": (
        {"isolation": "None"},
        'supported values: "Cpuset", "Partition", "IsolatedPartition"',
    ),
    "no way to be unsatisfiable": (
        {"onUnsatisfiable": "Wait"},
        '"Wait": supported values: "Share", "Evict", "Hold"',
    ),
    "no way to choose a node": (
        {"placement": {"nodes": "Random"}},
        '"Random": supported values: "Pack", "Spread"',
    ),
    "nodes twice": (
        {"nodeSelector": {"a": "b"}, "nodes": {"matchLabels": {"a": "b"}}},
        "give nodes or nodeSelector, not both",
    ),
    "no label key of nodes": ({"nodes": {"matchLabels": {"/a": "b"}}}, "each key is a label key"),
    "no label value of nodes": (
        {"nodes": {"matchLabels": {"a": "b c"}}},
        "each value is a label value",
    ),
    "nodes NotIn without values": (
        {"nodes": {"matchExpressions": [{"key": "a", "operator": "NotIn"}]}},
        "In and NotIn need values",
    ),
    "a longer pause": ({"dynamic": {"movePause": "10000h"}}, "a duration is at most 9999h"),
    "a longer notice": ({"dynamic": {"notice": "61s"}}, "notice is 0s to 60s"),
    "a notice of hours": ({"dynamic": {"notice": "9h"}}, "notice is 0s to 60s"),
    "a notice without a unit": ({"dynamic": {"notice": "5"}}, "this is not a duration"),
    "no moves": ({"dynamic": {"maxMovesPerMinute": 0}}, "greater than or equal to 1"),
    "no label key of moved pods": (
        {"dynamic": {"podSelector": {"matchLabels": {"/a": "b"}}}},
        "each key is a label key",
    ),
    "no label value of moved pods": (
        {"dynamic": {"podSelector": {"matchLabels": {"a": "b c"}}}},
        "each value is a label value",
    ),
    "moved pods In without values": (
        {"dynamic": {"podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}},
        "In and NotIn need values",
    ),
}
