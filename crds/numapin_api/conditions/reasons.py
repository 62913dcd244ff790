"""Every reason that numapin gives for anything, and what becomes a condition."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Self


class ConditionType(StrEnum):
    """The three conditions of every CpuPolicy and NodeAssignment.

    Source: kstatus, the convention by which Flux judges health.
    """

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"


class Reason(StrEnum):
    """One CamelCase word that scripts may match; part of the API.

    Each member carries its meaning, which docs/reasons.md prints.
    """

    meaning: str

    def __new__(cls, word: str, meaning: str) -> Self:
        """Make a member that is equal to its word."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.meaning = meaning
        return member

    # All is well.
    IN_FORCE = "InForce", "The policy is in force on every node that it governs."
    ENFORCED = "Enforced", "The kernel has what the spec says."
    AUDITED = (
        "Audited",
        "With mode Audit nothing is written on the node; the message says what would change.",
    )
    FOREIGN_TASKS = (
        "ForeignTasks",
        "Other tasks use the CPUs of an exclusive container, by the CPU time that the kernel "
        "counts; the spec is in force.",
    )
    PROMISED_MEMORY_IN_USE = (
        "PromisedMemoryInUse",
        "Memory that containers were promised on a NUMA node, and have not used yet, is in use by "
        "others; the spec is in force.",
    )
    INHERITED_AFFINITY = (
        "InheritedAffinity",
        "Containers may use only some of their CPUs: their processes have inherited the CPU "
        "affinity of the container runtime. Ready stays true if none of them is exclusive.",
    )
    START_GATE_OPEN = (
        "StartGateOpen",
        "Containers do not wait for their assignment, although the policy says so, and may begin "
        "on shared CPUs; the spec is in force.",
    )
    HOST_PROCESSES_LEFT = (
        "HostProcessesLeft",
        "Processes of no pod may use exclusive CPUs although the policy has them keep off, or have "
        "not got back all CPUs that they had; the spec is in force.",
    )
    INTERRUPTS_NOT_MOVED = (
        "InterruptsNotMoved",
        "Interrupts of devices may come to exclusive CPUs although the policy has them keep off, "
        "or have not got back all CPUs that they had; the spec is in force.",
    )
    CACHE_NOT_SHARED_OUT = (
        "CacheNotSharedOut",
        "Exclusive CPUs do not have the share of caches or of memory bandwidth that the policy "
        "says, or resctrl is not as it was found; the spec is in force.",
    )
    NOT_STALLED = "NotStalled", "Nothing needs an administrator."
    MEMORY_RESERVATION_DIFFERS = (
        "MemoryReservationDiffers",
        "memory.reserved does not add up to what the Node keeps back; the policy is in force.",
    )
    CPU_RESERVATION_DIFFERS = (
        "CPUReservationDiffers",
        "More CPUs are reserved than the Node keeps back, so the scheduler binds pods for which "
        "exclusive CPUs are missing; the policy is in force.",
    )
    TOPOLOGY_OF_ANOTHER_WRITER = (
        "TopologyOfAnotherWriter",
        "The NodeResourceTopology of the node has another writer, so numapin does not write it; "
        "the policy is in force.",
    )
    RESERVED_CPUS_OFFLINE = (
        "ReservedCPUsOffline",
        "reserved.cpus names CPUs that are offline; the policy is in force with the others.",
    )
    MEMORY_WITHOUT_CPUS = (
        "MemoryWithoutCPUs",
        "Containers can be bound to NUMA nodes that have memory and no CPUs, as CXL and "
        "high-bandwidth memory have; the policy is in force.",
    )
    KUBEVIRT_CPU_MANAGER = (
        "KubeVirtCPUManager",
        "KubeVirt keeps virtual machines with dedicated CPUs off the node; the policy is in force.",
    )
    CROSSING_TOPOLOGY = (
        "CrossingTopology",
        "Cores or sockets of the node cross its NUMA nodes, and an option of the policy depends on "
        "them; the policy is in force.",
    )
    SETTLED = "Settled", "No change is in progress."

    # In progress: numapin completes it without help.
    APPLYING = "Applying", "The change is being applied."
    WAITING_FOR_TOPOLOGY = (
        "WaitingForTopology",
        "The node's enforcer has not reported the hardware yet.",
    )
    WAITING_FOR_ENFORCER = (
        "WaitingForEnforcer",
        "The node's enforcer has not reported on the newest spec yet.",
    )
    WAITING_FOR_ASSIGNMENT = (
        "WaitingForAssignment",
        "The operator has not assigned any CPUs on the node yet.",
    )
    WAITING_FOR_ROLLOUT = (
        "WaitingForRollout",
        "The node keeps what was in force until others have accepted the edited policy.",
    )
    RELEASE_DELAYED = (
        "ReleaseDelayed",
        "mode is None; containers keep their CPUs until releaseDelay has passed.",
    )
    WAITING_FOR_CONTAINERS = (
        "WaitingForContainers",
        "Running containers keep CPUs or memory that the newest policy would not give them.",
    )

    # Nodes that are counted apart: the policy does not wait for them.
    NODE_NOT_READY = "NodeNotReady", "The Node is not Ready; it is not waited for."
    NOT_LINUX = "NotLinux", "The node does not run Linux; no enforcer can run there."
    NO_ENFORCER = (
        "NoEnforcer",
        "No enforcer has reported on the node's assignment for 5 minutes; it is not waited for.",
    )

    NODE_PAUSED = (
        "NodePaused",
        "An annotation of the Node has everything there stay as it is; it is not waited for.",
    )

    # What a CpuPolicy needs.
    NO_NODES_SELECTED = "NoNodesSelected", "The selector of the policy matches no node."
    OVERRULED = "Overruled", "Other policies take precedence on every node that this one selects."
    INVALID_POLICY = "InvalidPolicy", "A field of the policy has an invalid value."
    UNSUPPORTED_FIELD = "UnsupportedField", "The spec uses a feature that is not supported yet."
    IMPOSSIBLE_ON_NODE = (
        "ImpossibleOnNode",
        "The policy cannot work on the node's hardware, or with the containers that run there.",
    )
    NODES_STALLED = "NodesStalled", "The policy cannot be put in force on some nodes."
    INVALID = (
        "Invalid",
        "The API server rejected the NodeAssignment: its CRD does not match this operator.",
    )
    FORBIDDEN = "Forbidden", "The API server denied the operator permission to write."

    ASSIGNMENT_CONTESTED = (
        "AssignmentContested",
        "Something else changes what the operator writes to the NodeAssignment, so it writes at "
        "growing intervals.",
    )

    # What a node needs.
    ENFORCER_UNKNOWN = (
        "EnforcerUnknown",
        "The enforcer of the node no longer renews its Lease: it does not run, hangs, or "
        "cannot reach the API server. What is in force stays.",
    )
    INVALID_ASSIGNMENT = (
        "InvalidAssignment",
        "The NodeAssignment contradicts itself or the node's hardware; the last valid one is used.",
    )
    INVALID_LOCAL_COPY = (
        "InvalidLocalCopy",
        "The assignment stored on the node is damaged or belongs to another node; it is not used.",
    )
    ASSIGNMENT_NOT_SAVED = (
        "AssignmentNotSaved",
        "The node's disk refuses the assignment; containers that a restart would not know are not "
        "reported exclusive.",
    )
    KUBELET_STATIC_POLICY = (
        "KubeletStaticPolicy",
        "The kubelet's CPU or memory manager pins containers; numapin leaves the node alone.",
    )
    KUBEPODS_NOT_FOUND = "KubepodsNotFound", "The kubelet's cgroup for pods does not exist."
    CPUSET_CONTROLLER_MISSING = (
        "CpusetControllerMissing",
        "No cpuset controller is mounted where the enforcer looks for it.",
    )
    CGROUPS_READ_ONLY = "CgroupsReadOnly", "The enforcer may not write to the cgroup file system."
    CGROUP_WRITE_FAILED = "CgroupWriteFailed", "The kernel rejected a write to a cgroup."
    MEMORY_NOT_BOUND = (
        "MemoryNotBound",
        "What a container has on other NUMA nodes does not fit on its own, or is too much to move.",
    )
    CONTAINER_UNKNOWN = (
        "ContainerUnknown",
        "The container runtime does not list a container that runs on the node.",
    )
    CPUS_WITHHELD = (
        "CPUsWithheld",
        "The kernel gives a cgroup other CPUs than were written to it.",
    )
    MEMORY_WITHHELD = (
        "MemoryWithheld",
        "The kernel gives a container other NUMA nodes than were written to its cgroup.",
    )
    PARTITIONS_UNSUPPORTED = (
        "PartitionsUnsupported",
        "The policy asks for partitions, and the node has cgroup v1 or a Linux before 6.7: CPUs "
        "are kept apart by cpusets alone.",
    )
    PARTITION_REFUSED = (
        "PartitionRefused",
        "The kernel makes no partition of an exclusive container: its CPUs are kept apart by "
        "cpusets alone.",
    )
    CPUS_SHARED = "CPUsShared", "Another container may use the CPUs of an exclusive container."
    CPUS_OFFLINE = "CPUsOffline", "The CPUs of an exclusive container are offline."
    PROCESSES_ELSEWHERE = (
        "ProcessesElsewhere",
        "An exclusive container has a cgroup without processes.",
    )
    WATCH_INCOMPLETE = (
        "WatchIncomplete",
        "The node is out of inotify watches or instances; changes wait for the periodic rescan.",
    )
    INTERNAL_ERROR = (
        "InternalError",
        "A defect of the operator or the enforcer; it is retried, and the log has the traceback.",
    )
    TOPOLOGY_UNREADABLE = "TopologyUnreadable", "The node's hardware could not be discovered."
    RUNTIME_UNAVAILABLE = "RuntimeUnavailable", "The container runtime does not answer."
    RUNTIME_UNSUPPORTED = (
        "RuntimeUnsupported",
        "The container runtime lacks a CRI method that numapin needs.",
    )
    RUNTIME_REFUSED = "RuntimeRefused", "The container runtime rejected a request."
    SYSTEMD_UNAVAILABLE = "SystemdUnavailable", "systemd does not answer on D-Bus."
    SYSTEMD_REFUSED = "SystemdRefused", "systemd rejected a request."

    # Why a pod got no CPUs or memory of its own.
    NOT_ENOUGH_CPUS = "NotEnoughCPUs", "Fewer CPUs are free than the container requests."
    NOT_ENOUGH_MEMORY = (
        "NotEnoughMemory",
        "No allowed set of NUMA nodes has enough free memory or huge pages.",
    )
    NOT_ENOUGH_DEVICES = (
        "NotEnoughDevices",
        "Fewer devices of a device plug-in are free than the container requests. Only `numapin "
        "simulate` gives this reason.",
    )
    TOPOLOGY_AFFINITY_ERROR = (
        "TopologyAffinityError",
        "The request fits, but not aligned as topology.policy requires.",
    )
    SMT_ALIGNMENT_ERROR = (
        "SMTAlignmentError",
        "options.fullPCPUsOnly is set, and the request is not a number of whole free cores.",
    )
    SHARED_POOL_EMPTY = "SharedPoolEmpty", "No CPU would be left for the shared pool."
    EMPTY_POD_SHARED_POOL_ERROR = (
        "EmptyPodSharedPoolError",
        "The pod's exclusive containers would leave no CPU for its other containers.",
    )

    ASSIGNMENT_FULL = (
        "AssignmentFull",
        "The NodeAssignment has no room for more containers; the pod shares CPUs and memory.",
    )
    INVALID_POD = (
        "InvalidPod",
        "A field of the pod cannot be used; the pod shares CPUs and memory, and is not evicted.",
    )

    # Events about a pod that is placed, or will be.
    CPUS_ASSIGNED = "CPUsAssigned", "The pod's containers have been given CPUs of their own."
    CPUS_RESIZED = (
        "CPUsResized",
        "A running container was resized and has more or fewer CPUs of its own now.",
    )
    WAITING_FOR_ENDING_PODS = (
        "WaitingForEndingPods",
        "The pod gets CPUs of its own once pods that are ending have released theirs.",
    )
    HELD = "Held", "The pod stays pending until a node has a place for it."
    GROUPS_BLOCKED = (
        "GroupsBlocked",
        "The pod stays pending; its controller and others have some pods placed and some that "
        "wait, so they wait for each other if their pods only work together.",
    )
    NOT_HELD = (
        "NotHeld",
        "The pod's scheduling gate was opened without a place: its namespace has not opted in, no "
        "policy holds it, or the scheduler looks at more than numapin does.",
    )
    PLACE_LOST = (
        "PlaceLost",
        "The pod was opened for a node and not bound there in time; its place is free again.",
    )
    WAITING_FOR_MOVES = (
        "WaitingForMoves",
        "The pod gets CPUs of its own once other containers have been moved.",
    )
    CPUS_MOVING = (
        "CPUsMoving",
        "A container of the pod gets other CPUs; it has the old and the new ones for a while.",
    )
    CPUS_MOVED = "CPUsMoved", "A container of the pod has been moved to other CPUs."
    WAITING_FOR_KUBELET = (
        "WaitingForKubelet",
        "No scheduler has bound the pod, and the node has no room for it; the kubelet decides.",
    )

    # Events about a NodeAssignment.
    CGROUP_DRIVER_CHANGED = (
        "CgroupDriverChanged",
        "The kubelet uses another cgroup driver than before; its new cgroups are enforced.",
    )
    ANOTHER_WRITER = (
        "AnotherWriter",
        "Another program keeps changing the same cgroup; each change is reverted.",
    )
    CPUSET_DRIFT = "CpusetDrift", "A cpuset was changed by someone else and has been reverted."


REFUSAL_REASONS: Final = (
    Reason.EMPTY_POD_SHARED_POOL_ERROR,
    Reason.NOT_ENOUGH_CPUS,
    Reason.NOT_ENOUGH_MEMORY,
    Reason.SHARED_POOL_EMPTY,
    Reason.SMT_ALIGNMENT_ERROR,
    Reason.TOPOLOGY_AFFINITY_ERROR,
)
"""Why the planner refuses a container or a pod."""


class Verdict(NamedTuple):
    """The new state of one condition; `merge` finds the time of the last change."""

    type: ConditionType
    holds: bool
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A reason why an object is not as it should be yet; becomes a condition.

    Attributes:
        reason: one CamelCase word.
        message: the same for people, with the numbers.
    """

    reason: str
    message: str


_MEANINGS: Final = {str(one): one.meaning for one in Reason}


def meaning_of(reason: str) -> str:
    """What a reason means; empty if it is not one of ours."""
    return _MEANINGS.get(reason, "")


def internal_error(task: str, error: Exception) -> Obstacle:
    """The obstacle for an unexpected exception, which is a defect of numapin.

    Args:
        task: what could not be done, e.g. `updating CFS quotas`.
        error: the exception; the log has its traceback.
    """
    message = f"{task} failed unexpectedly, it will be retried: {type(error).__name__}: {error}"
    return Obstacle(Reason.INTERNAL_ERROR, message)
