"""`numapin migrate`: from the kubelet's static policy to a CpuPolicy without a drain, and back."""

import json
import sys
from argparse import Namespace
from pathlib import Path

from numapin_api.names import API_VERSION, CPU_POLICY_KIND, NODE_ASSIGNMENT_KIND
from numapin_api.quantity import plural
from numapin_cli.inputs.input_flags import (
    described_by,
    read_given,
    say_notes,
)
from numapin_cli.inputs.manifests import STDIN
from numapin_cli.kubelet.files import read_kubelet_configuration
from numapin_cli.kubelet.pools import kubelet_state
from numapin_cli.kubelet.settings import translate
from numapin_cli.scripting.documents import document
from numapin_cli.subcommand import CommandError, UsageError
from numapin_cli.takeover import Takeover, rows, take_over
from numapin_cli.usage.migrate import CPU_FILE, MEMORY_FILE
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


def run(options: Namespace) -> int:
    """Carry it out; returns the exit status."""
    try:
        if options.kubelet_config:
            return _translate(options)
        return _back(options) if options.back else _check(options)
    except CommandError as problem:
        raise UsageError(*problem.texts) from problem


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
    cpu_file = options.cpu_manager_state or options.kubelet_root_dir / CPU_FILE
    memory_file = options.memory_manager_state or options.kubelet_root_dir / MEMORY_FILE
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
