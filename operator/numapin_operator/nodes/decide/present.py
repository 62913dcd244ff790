"""A node's machine with what its pods have by its assignment, as it stands. Does no I/O."""

from numapin_operator.nodes.decide.decide import as_reported
from numapin_operator.nodes.decide.decision import NodePicture
from numapin_operator.nodes.decide.returning import reports_running
from numapin_operator.placement import Node, PolicyError, present_node, resolve, with_reserved
from numapin_operator.policies.status import policy_fault


def present_machine(picture: NodePicture) -> Node | None:
    """The machine; None if no policy places pods there, or it is not known what is in use."""
    node, assignment = picture.node, picture.assignment
    if node is None or node.problem or not picture.ranked or assignment is None:
        return None
    governing, topology = picture.ranked[0], assignment.topology
    unknown = topology is None or assignment.problem or not reports_running(assignment)
    if unknown or topology is None or policy_fault(governing) or governing.spec.mode == "None":
        return None
    try:
        policy = resolve(topology, with_reserved(governing.spec, topology, node.system))
    except PolicyError:
        return None
    running = frozenset(assignment.status.running)
    return present_node(
        as_reported(policy, assignment, node), assignment.spec, picture.pods, running
    )
