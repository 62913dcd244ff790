"""Which running containers to move so that a pod fits with the alignment it demands.

Read `search` first. `movable` says what may be moved where, `targets` where the pod could be,
`ground` what the policy allows.
"""

from numapin_operator.placement.moves.ground import Ground
from numapin_operator.placement.moves.search import Move, Moves, Searched, fewest_moves

__all__ = ["Ground", "Move", "Moves", "Searched", "fewest_moves"]
