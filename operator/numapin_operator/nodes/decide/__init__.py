"""Decide the next write to a node's assignment."""

from numapin_operator.nodes.decide.decide import decide
from numapin_operator.nodes.decide.decision import Decision, NodePicture, Write

__all__ = ["Decision", "NodePicture", "Write", "decide"]
