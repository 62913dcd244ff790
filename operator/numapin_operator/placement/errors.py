"""Why a pod cannot be placed: each error carries its data and the reason that users see."""

from typing import ClassVar

from numapin_api.conditions.reasons import Reason
from numapin_api.quantity import plural


class PlacementError(Exception):
    """A container or pod cannot be placed.

    `problem` says what was asked for and what prevents it. `free` and `fitting`, which `Node` adds,
    say what was free where and what would have fitted.
    """

    reason: ClassVar[Reason]

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.free = self.fitting = ""
        self.container: str | None = None

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.problem, self.fitting, self.free)))


class NotEnoughCpusError(PlacementError):
    """Fewer CPUs are free than the request needs."""

    reason = Reason.NOT_ENOUGH_CPUS

    def __init__(self, wanted: int, free: int, detail: str = "") -> None:
        super().__init__(f"wanted {plural(wanted, 'CPU')}, {free or 'none'} free{detail}")


class SmtAlignmentError(PlacementError):
    """Only whole cores may be given out, and no free ones add up to the request."""

    reason = Reason.SMT_ALIGNMENT_ERROR


class TopologyAffinityError(PlacementError):
    """No set of NUMA nodes serves every resource as the topology policy demands."""

    reason = Reason.TOPOLOGY_AFFINITY_ERROR


class EmptyPodSharedPoolError(PlacementError):
    """A pod's exclusive containers use up its resources, and its other containers get none."""

    reason = Reason.EMPTY_POD_SHARED_POOL_ERROR


class NotEnoughMemoryError(PlacementError):
    """No allowed set of NUMA nodes has the memory or huge pages that the request needs."""

    reason = Reason.NOT_ENOUGH_MEMORY


class NotEnoughDevicesError(PlacementError):
    """Fewer devices of a resource are free than the request needs."""

    reason = Reason.NOT_ENOUGH_DEVICES

    def __init__(self, resource: str, wanted: int, free: int, detail: str = "") -> None:
        super().__init__(f"wanted {wanted} of {resource}, {free or 'none'} free{detail}")


class SharedPoolEmptyError(PlacementError):
    """The shared pool would lose its last CPU."""

    reason = Reason.SHARED_POOL_EMPTY


class AssignmentFullError(PlacementError):
    """The NodeAssignment has no room for the pod's containers."""

    reason = Reason.ASSIGNMENT_FULL


class InvalidPodError(PlacementError):
    """The pod has a field that cannot be used; it stays on its node and shares."""

    reason = Reason.INVALID_POD


class PolicyError(Exception):
    """A policy cannot work on this machine; the text names the field and the remedy."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field, self.problem = field, problem


class PodFormatError(ValueError):
    """A pod cannot be read; the text names the pod, the field and what belongs there."""

    def __init__(self, pod: str, field: str, problem: str) -> None:
        super().__init__(f"pod {pod}: {field}: {problem}")
        self.pod, self.field, self.problem = pod, field, problem
