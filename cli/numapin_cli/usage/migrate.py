"""The command line of `numapin migrate`."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Final

from numapin_cli.arguments import (
    add_input_arguments,
)
from numapin_cli.subcommand import Subcommand, run_of

_DESCRIPTION: Final = """\
Help to move a node between the kubelet's static policy and a CpuPolicy without a drain
(docs/migration.md). Nothing is changed.

--check reads the kubelet's cpu_manager_state and memory_manager_state. It says of each container
to which the kubelet has given exclusive CPUs, or NUMA nodes for its memory alone, whether it keeps
them under the policy, why not, and what else will differ. If the node's NodeAssignment is given, it
must say the same already. The exit status is 0 if every container keeps its CPUs and NUMA nodes, 1
if one does not.

--back prints the cpu_manager_state with which a static kubelet goes on with the CPUs that the
NodeAssignment has given. Its exit status is 0.

--kubelet-config prints the CpuPolicy that does what a kubelet of this configuration does: a
KubeletConfiguration (/var/lib/kubelet/config.yaml), or what the kubelet answers at /configz, which
has its flags too. Given again, it names drop-ins, of which the last one counts. Standard error has
a line for each setting of which that cannot be said. The policy selects the node of --node by its
label kubernetes.io/hostname; without --node every node. The exit status is 0.

The exit status is 2 if something that is given cannot be used.
"""

_EPILOG: Final = """\
examples:
  numapin migrate --kubelet-config /var/lib/kubelet/config.yaml --node worker-1 > policy.yaml
  kubectl get --raw /api/v1/nodes/worker-1/proxy/configz | numapin migrate --kubelet-config -
  kubectl get nodes,ns,pods,cpupol,nodeasg,nodereports,nodetopologies -A -o json > now.json
  numapin migrate --check --cluster now.json --node worker-1         as root on worker-1
  numapin migrate --check --cluster now.json --node worker-1 -f policy.yaml \\
      --cpu-manager-state ./cpu_manager_state --memory-manager-state ./memory_manager_state
  numapin migrate --back --cluster now.json --node worker-1 > cpu_manager_state
"""

CPU_FILE: Final = "cpu_manager_state"
MEMORY_FILE: Final = "memory_manager_state"
"""The kubelet's names of its states."""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = _EPILOG
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true", help="say what a policy would change")
    what.add_argument("--back", action="store_true", help="print the state for a static kubelet")
    what.add_argument(
        "--kubelet-config",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="print the CpuPolicy for this KubeletConfiguration; - for standard input; repeated:"
        " drop-ins",
    )
    parser.add_argument(
        "--kubelet-root-dir",
        type=Path,
        default=Path("/var/lib/kubelet"),
        metavar="DIR",
        help="the kubelet's folder, with both state files (default: /var/lib/kubelet)",
    )
    parser.add_argument(
        "--cpu-manager-state",
        type=Path,
        metavar="FILE",
        help=f"the CPU manager's state (default: {CPU_FILE} in the kubelet's folder)",
    )
    parser.add_argument(
        "--memory-manager-state",
        type=Path,
        metavar="FILE",
        help=f"the memory manager's state (default: {MEMORY_FILE} there, if it exists)",
    )
    add_input_arguments(parser)
    parser.add_argument("--node", metavar="NAME", help="the node; needed if there are several")


MIGRATE: Final = Subcommand(
    name="migrate",
    summary="translate a kubelet's static policy, and compare it with a CpuPolicy",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run=run_of("numapin_cli.commands.migrate"),
)
