"""`numapin migrate`: from the kubelet's static policy to a CpuPolicy without a drain, and back."""

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from numapin_api.names import API_VERSION, CPU_POLICY_KIND, NODE_ASSIGNMENT_KIND
from numapin_api.quantity import plural
from numapin_cli.arguments import document
from numapin_cli.inputs.input_flags import (
    add_input_arguments,
    described_by,
    read_given,
    say_notes,
)
from numapin_cli.inputs.manifests import STDIN
from numapin_cli.kubelet.files import read_kubelet_configuration
from numapin_cli.kubelet.pools import kubelet_state
from numapin_cli.kubelet.settings import translate
from numapin_cli.subcommand import CommandError, Subcommand, UsageError
from numapin_cli.takeover import Takeover, rows, take_over
from numapin_enforcer.node.kubelet_state import (
    STATIC_CPUS,
    STATIC_MEMORY,
    CpuState,
    KubeletStateError,
    MemoryState,
    parse_cpu_state,
    parse_memory_state,
)
from numapin_operator.nodes.picture import picture_of
from numapin_operator.observe.assignments.view import AssignmentView

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

_CPU_FILE, _MEMORY_FILE = "cpu_manager_state", "memory_manager_state"


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
        help=f"the CPU manager's state (default: {_CPU_FILE} in the kubelet's folder)",
    )
    parser.add_argument(
        "--memory-manager-state",
        type=Path,
        metavar="FILE",
        help=f"the memory manager's state (default: {_MEMORY_FILE} there, if it exists)",
    )
    add_input_arguments(parser)
    parser.add_argument("--node", metavar="NAME", help="the node; needed if there are several")


def _run(options: Namespace) -> int:
    try:
        if options.kubelet_config:
            return _translate(options)
        return _back(options) if options.back else _check(options)
    except CommandError as problem:
        raise UsageError(str(problem)) from problem


def _translate(options: Namespace) -> int:
    """Print the CpuPolicy for a kubelet's configuration, and what it does not carry."""
    if options.kubelet_config.count(STDIN) > 1:
        raise CommandError("standard input (-) is given twice, and can be read once; use a file")
    configuration = read_kubelet_configuration(options.kubelet_config)
    try:
        translated = translate(configuration)
    except CommandError as problem:
        files = ", ".join(map(str, options.kubelet_config))
        raise CommandError(f"{files}: {problem}") from problem
    name = options.node
    selector = {"nodeSelector": {"kubernetes.io/hostname": name}} if name else {}
    policy = {
        "apiVersion": API_VERSION,
        "kind": CPU_POLICY_KIND,
        "metadata": {"name": name or "from-kubelet"},
        "spec": {**selector, **translated.spec},
    }
    sys.stdout.write(document(policy, "yaml"))
    say_notes(translated.notes)
    if not name:
        say_notes(["nodeSelector: is missing, so every node is selected; add labels, or --node"])
    return 0


def _check(options: Namespace) -> int:
    cpu, memory = _read_states(options)
    described = described_by(read_given(options), options)
    if len(described.nodes) != 1:
        raise CommandError(f"{plural(len(described.nodes), 'Node')} are given; choose with --node")
    (node,) = described.nodes
    picture = picture_of(described.state, node)
    if not picture.ranked:
        raise CommandError(f"no CpuPolicy selects node {node}; add one with -f")
    topology = picture.assignment.topology if picture.assignment is not None else None
    if topology is None:
        raise CommandError(
            f"the hardware of node {node} is not known; add its NodeAssignment, or give --machine"
        )
    found = take_over(picture, topology, cpu, memory)
    _print(node, found)
    return 0 if found.keeps_all else 1


def _print(node: str, found: Takeover) -> None:
    exclusive = sum(bool(one.cpus) for one in found.outcomes)
    bound = len(found.outcomes) - exclusive
    also = f", and has bound the memory of {bound} without CPUs of their own" if bound else ""
    print(f"{node}: the kubelet has given CPUs to {plural(exclusive, 'container')}{also}")
    for row in rows(found.outcomes):
        print(row)
    for note in found.notes:
        print(note)
    if found.stalled:
        print(f"the policy cannot be put in force: {found.stalled}")
    if lost := sum(not one.keeps for one in found.outcomes):
        what = "CPUs or NUMA nodes" if bound else "CPUs"
        of_all = f"{lost} of {plural(len(found.outcomes), 'container')}"
        print(f"{of_all} would not keep {what} now (marked !)")


def _read_states(options: Namespace) -> tuple[CpuState, MemoryState]:
    cpu_file = options.cpu_manager_state or options.kubelet_root_dir / _CPU_FILE
    memory_file = options.memory_manager_state or options.kubelet_root_dir / _MEMORY_FILE
    try:
        cpu = parse_cpu_state(_read(cpu_file))
    except KubeletStateError as problem:
        raise CommandError(f"{cpu_file}: {problem}") from problem
    try:
        text = _read(memory_file, optional=options.memory_manager_state is None)
        memory = parse_memory_state(text) if text else MemoryState()
    except KubeletStateError as problem:
        raise CommandError(f"{memory_file}: {problem}") from problem
    if cpu.policy != STATIC_CPUS and memory.policy != STATIC_MEMORY:
        raise CommandError(
            f"{cpu_file}: its policy is {cpu.policy}, and that of the memory manager is"
            f" {memory.policy}: this kubelet pins no container, so there is nothing to take over"
        )
    return cpu, memory


def _read(file: Path, *, optional: bool = False) -> bytes:
    """The content of a file; empty if it is optional and there is none."""
    try:
        return file.read_bytes()
    except OSError as problem:
        if optional and isinstance(problem, FileNotFoundError):
            return b""
        raise CommandError(
            f"{file}: {problem.strerror}; run this as root on the node, or name a copy of the file"
        ) from problem


def _back(options: Namespace) -> int:
    assignments = read_given(options).of(NODE_ASSIGNMENT_KIND)
    name = options.node or (next(iter(assignments)) if len(assignments) == 1 else "")
    if name not in assignments:
        raise CommandError(
            f"there is no NodeAssignment {name}; give another --node"
            if name
            else f"{plural(len(assignments), NODE_ASSIGNMENT_KIND)} are given; choose with --node"
        )
    view = AssignmentView.decode(assignments[name].content)
    if view.problem is not None or view.topology is None or view.spec.pools is None:
        why = view.problem or "it gives no CPUs"
        raise CommandError(f"NodeAssignment {name}: {why}; there is nothing to go on with")
    state = kubelet_state(view.spec, view.topology)
    print(json.dumps(state))
    print(
        f"the kubelet goes on with it if it reserves CPUs among {state['defaultCpuSet']}, or, with"
        " strict-cpu-reservation, CPUs that are in no list",
        file=sys.stderr,
    )
    return 0


MIGRATE: Final = Subcommand(
    name="migrate",
    summary="translate a kubelet's static policy, and compare it with a CpuPolicy",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run=_run,
)
