"""What a node's enforcer keeps off exclusive CPUs besides containers. Does no I/O."""

from numapin_api.schema.plain_assignment import System
from numapin_api.system import model


def system_of(asked: model.System) -> System | None:
    """What a policy asks, as an assignment has it; None if it leaves everything where it is.

    So an enforcer that does not know the field never hears of it where nobody asks for it.
    """
    return None if asked == model.System() else System.from_wire(asked.to_wire())
