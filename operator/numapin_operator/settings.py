"""One frozen Settings; the only reader of the environment and of the command line."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from numapin_api import names
from numapin_daemon.logs.options import LOG_OPTIONS
from numapin_daemon.options import Address, Option, OptionParser, number_between, one_of
from numapin_daemon.version import VERSION
from numapin_operator.shards.division import MOST_SHARDS

_DESCRIPTION: Final = """\
Decides which container of each node gets which CPUs and NUMA nodes, and writes that into the
node's NodeAssignment."""

_EPILOG: Final = """\
Every option can be set in the environment instead: NUMAPIN_ and its name in capitals, such as
NUMAPIN_LOG_LEVEL; --kubeconfig also as KUBECONFIG. An option on the command line wins."""

_OPTIONS: Final = (
    Option(
        "--kubeconfig",
        None,
        "how to reach the API server; not needed in a pod, which uses its service account",
        type=Path,
        metavar="FILE",
        also="KUBECONFIG",
    ),
    Option("--namespace", names.NAMESPACE, "namespace of the leader's Lease"),
    Option(
        "--health-address",
        "127.0.0.1:9880",
        "where /healthz, /readyz and /metrics are served",
        type=Address.parse,
        metavar="HOST:PORT",
    ),
    Option(
        "--leader-elect",
        True,
        "write only while holding the Lease, so that other operators can stand by",
        type=bool,
    ),
    Option(
        "--shards",
        1,
        "into how many shards the nodes are divided, of which each operator leads some; the same "
        "number for all. 1: one leads all nodes, the others stand by. See docs/operations.md",
        type=number_between(1, MOST_SHARDS),
        metavar="NUMBER",
    ),
    Option(
        "--kube-api-qps",
        200.0,
        "requests a second to the API server in the long run; 0 for any number. Renewals of the "
        "Lease and watches are not counted",
        type=number_between(0.0, 10_000.0),
        metavar="NUMBER",
    ),
    Option(
        "--kube-api-burst",
        400,
        "requests to the API server at once",
        type=number_between(1, 10_000),
        metavar="NUMBER",
    ),
    Option(
        "--annotate-pods",
        False,
        f"tell workloads which exclusive CPUs they have, and which will leave them, by the "
        f"annotation {names.CPUS_ANNOTATION} of their pods; needs the right to patch pods, see "
        "manifests/components/cpu-annotation",
        type=bool,
    ),
    Option(
        "--annotate-refusals",
        True,
        f"tell pods that were refused CPUs or memory by the annotation {names.REFUSED_ANNOTATION}; "
        "needs the right to patch pods, see manifests/base/operator-refusals.yaml",
        type=bool,
    ),
    Option(
        "--publish-topologies",
        False,
        "write a NodeResourceTopology for each node whose policy says "
        "publish.nodeResourceTopology, for schedulers that see NUMA nodes; needs the right to "
        "write them, see manifests/components/node-resource-topology",
        type=bool,
    ),
    Option(
        "--numa-metrics",
        False,
        "serve what each NUMA node of each node offers and has left as metrics: two series for "
        "each resource of each NUMA node (docs/metrics.md)",
        type=bool,
    ),
    Option(
        "--assignment-form",
        names.VERSION,
        f"{names.VERSION}, or v1alpha1 to prepare going back to numapin 0.1: NodeAssignments are "
        "written as it reads them, and NodeReports and NodeTopologies are deleted",
        type=one_of((names.VERSION, "v1alpha1")),
        metavar="FORM",
    ),
    Option(
        "--check",
        False,
        "look whether the installation in --namespace works, say so, and end: status 0 if it does",
        type=bool,
    ),
    *LOG_OPTIONS,
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that may differ between installations.

    Attributes:
        kubeconfig: None in a pod, which uses the mounted service account token.
        namespace: where the leader's Lease is.
        health_address: where the probes are served.
        leader_elect: whether to write only while holding the Lease.
        shards: into how many shards the nodes are divided.
        kube_api_qps: requests a second to the API server; 0 for any number.
        kube_api_burst: requests to the API server at once.
        annotate_pods: whether workloads are told their CPUs by an annotation of their pods.
        annotate_refusals: whether refused pods are told so by an annotation.
        publish_topologies: whether NodeResourceTopologies are written where a policy says so.
        numa_metrics: whether metrics say what each NUMA node has left.
        assignment_form: the version whose form NodeAssignments are written in.
        check: whether to look only whether the installation works.
        log_level: the lowest level of log lines to print.
        log_format: log lines for people or for machines.
    """

    kubeconfig: Path | None
    namespace: str
    health_address: Address
    leader_elect: bool
    shards: int
    kube_api_qps: float
    kube_api_burst: int
    annotate_pods: bool
    annotate_refusals: bool
    publish_topologies: bool
    numa_metrics: bool
    assignment_form: str
    check: bool
    log_level: Literal["debug", "info", "warning", "error"]
    log_format: Literal["text", "json"]


def parse_settings(
    arguments: Sequence[str] | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """Settings from flags, else from `NUMAPIN_*` variables, else from their defaults.

    Args:
        arguments: the command line without the program's name; None reads this process's own.
        environment: None reads this process's own.

    Raises:
        SystemExit: bad input (status 2, the reason on standard error), `--help`, `--version`.
    """
    parser = OptionParser(
        "numapin-operator",
        os.environ if environment is None else environment,
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_version(f"numapin-operator {VERSION}")
    parser.add(*_OPTIONS)
    settings = Settings(**parser.parse(arguments))
    if settings.shards > 1 and not settings.leader_elect:
        parser.fail("--shards needs --leader-elect: each shard is led by who holds its Lease")
    return settings
