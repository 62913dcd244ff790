"""On which nodes a DaemonSet has a pod."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from numapin_cli.inputs.manifests import read_manifests
from numapin_cli.inputs.objects import combined
from numapin_cli.inputs.workloads.daemon_nodes import runs_on

Body = dict[str, Any]


def node(name: str = "n1", *taints: Body, **labels: str) -> Body:
    spec = {"taints": list(taints)}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec}


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> Body:
    return {"key": key, "effect": effect, "value": value}


def requires(*terms: Body) -> Body:
    selector = {"nodeSelectorTerms": list(terms)}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": selector}
    return {"affinity": {"nodeAffinity": required}}


def expressions(*given: tuple[str, str, list[str]], key: str = "matchExpressions") -> Body:
    return {key: [{"key": one, "operator": how, "values": values} for one, how, values in given]}


def tolerates(**toleration: str) -> Body:
    return {"tolerations": [toleration]}


LABELLED = node(pool="fast", size="8")
TAINTED = node("n1", taint("pool", value="fast"))


@pytest.mark.parametrize(
    ("on", "spec", "runs"),
    [
        (node(), {}, True),
        (LABELLED, {"nodeSelector": {"pool": "fast"}}, True),
        (LABELLED, {"nodeSelector": {"pool": "slow"}}, False),
        (node(), {"nodeSelector": {"pool": "fast"}}, False),
        (node(), {"nodeName": "n2"}, False),
        (LABELLED, requires(expressions(("pool", "In", ["fast", "x"]))), True),
        (LABELLED, requires(expressions(("pool", "NotIn", ["fast"]))), False),
        (LABELLED, requires(expressions(("pool", "Exists", []))), True),
        (LABELLED, requires(expressions(("pool", "DoesNotExist", []))), False),
        (LABELLED, requires(expressions(("size", "Gt", ["7"]))), True),
        (LABELLED, requires(expressions(("size", "Lt", ["8"]))), False),
        (LABELLED, requires(expressions(("pool", "Gt", ["7"]))), False),
        (LABELLED, requires(expressions(("pool", "Exists", []), ("a", "Exists", []))), False),
        (LABELLED, requires(expressions(("a", "Exists", [])), expressions(("pool", "Exists", []))),
         True),
        (LABELLED, requires({}), False),
        (node(), requires(expressions(("metadata.name", "In", ["n1"]), key="matchFields")), True),
        (node(), requires(expressions(("metadata.name", "In", ["n2"]), key="matchFields")), False),
        (TAINTED, {}, False),
        (TAINTED, tolerates(operator="Exists"), True),
        (TAINTED, tolerates(key="pool", operator="Exists"), True),
        (TAINTED, tolerates(key="pool", value="fast"), True),
        (TAINTED, tolerates(key="pool", value="slow"), False),
        (TAINTED, tolerates(key="pool", operator="Exists", effect="NoExecute"), False),
        (node("n1", taint("pool", "NoExecute")), {}, False),
        (node("n1", taint("pool", "PreferNoSchedule")), {}, True),
        (node("n1", taint("node.kubernetes.io/unschedulable")), {}, True),
        (node("n1", taint("node.kubernetes.io/unschedulable", "NoExecute")), {}, False),
        (node("n1", taint("node.kubernetes.io/not-ready", "NoExecute")), {}, True),
        (node("n1", taint("node.kubernetes.io/not-ready")), {}, False),
        (node("n1", taint("node.kubernetes.io/network-unavailable")), {}, False),
        (node("n1", taint("node.kubernetes.io/network-unavailable")), {"hostNetwork": True}, True),
    ],
)  # fmt: skip
def test_a_daemon_runs_where_its_controller_would_create_it(
    on: Body, spec: Body, runs: bool
) -> None:
    assert runs_on({"spec": spec}, on) is runs


def test_a_daemon_set_has_one_pod_for_each_node_that_matches(tmp_path: Path) -> None:
    template = {"spec": {"nodeSelector": {"pool": "fast"}, "containers": [{"name": "c"}]}}
    daemon = {"kind": "DaemonSet", "metadata": {"name": "x"}, "spec": {"template": template}}
    nodes = [node("n1", pool="fast"), node("n2"), node("n3", pool="fast")]
    (tmp_path / "now.yaml").write_text(yaml.safe_dump_all(nodes))
    (tmp_path / "set.yaml").write_text(yaml.safe_dump_all([daemon, node("n2", pool="fast")]))
    cluster, written = ([*read_manifests([tmp_path / one])] for one in ("now.yaml", "set.yaml"))
    pods = combined(cluster, written[:1]).of("Pod").values()
    assert [one.content["spec"]["nodeName"] for one in pods] == ["n1", "n3"]
    assert len({one.name for one in pods}) == 2
    assert len(combined(cluster, written).of("Pod")) == 3, "one Node has another label now"
    none = combined(cluster[1:2], written[:1])
    assert not none.of("Pod")
    assert none.notes == ("left out: DaemonSet default/x: it matches none of the Nodes",)
