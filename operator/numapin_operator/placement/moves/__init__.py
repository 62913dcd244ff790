"""Which running containers to move, so that a pod fits or they are as the policy demands.

Read `search` first. `movable` says what may be moved where, `targets` where the pod could be,
`space` what the policy allows. `making_room` begins moves for the pods of a plan, and `renewal`
those of containers that the policy would place otherwise.
"""

from numapin_operator.placement.moves.beginning import MoveRules
from numapin_operator.placement.moves.result import Move, Moves, Searched
from numapin_operator.placement.moves.search import fewest_moves
from numapin_operator.placement.moves.search_space import SearchSpace

__all__ = ["Move", "MoveRules", "Moves", "SearchSpace", "Searched", "fewest_moves"]
