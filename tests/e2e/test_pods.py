"""Pods come and go on a real kubelet, and the kernel says what numapin did."""

from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import NodeAssignment
from numapin_lab.running_lab import BUSY, Session, eventually, pod, policy

OWN, SHARED = CpuSet.parse("1"), CpuSet.parse("0")
EVERYTHING = CpuSet.parse("0-1")


def _exclusive(assignment: NodeAssignment) -> dict[str, tuple[str, bool]]:
    status = assignment.status
    assert status is not None
    return {one.pod_uid: (str(one.cpus), one.exclusive) for one in status.containers}


def test_a_pod_gets_a_cpu_of_its_own_and_everybody_else_leaves_it(session: Session) -> None:
    session.apply(policy(), pod("neighbour", BUSY))
    session.wait_running("neighbour")
    session.wait_settled()
    assert session.allowed("neighbour") == EVERYTHING

    session.apply(pod("owner", cpu="1"))
    session.wait_running("owner")
    uid = session.pod("owner")["metadata"]["uid"]
    eventually(lambda: _exclusive(session.wait_settled()), {uid: ("1", True)})

    assert session.allowed("owner") == OWN
    assert session.allowed("neighbour") == SHARED
    row = session.kubectl("get", "nodeassignments").splitlines()[1].split()
    assert row[1:-1] == ["e2e", "Static", "1", "0", "0", "0", "True"]


def test_who_cannot_fit_is_told_the_numbers_and_runs_shared(session: Session) -> None:
    session.apply(policy(), pod("first", cpu="1"))
    session.wait_running("first")
    session.apply(pod("second", cpu="1"))
    session.wait_running("second")
    refused = session.wait_settled().spec.refused
    assert [(one.pod, one.reason) for one in refused] == [("second", "NotEnoughCPUs")]
    assert "wanted 1 CPU, none free; free on NUMA node 0: 0 CPUs" in refused[0].message

    def told() -> list[bool]:
        events = [one for one in session.events("second") if one["reason"] == "NotEnoughCPUs"]
        return [one["type"] == "Warning" and refused[0].message in one["message"] for one in events]

    eventually(told, [True])
    assert session.allowed("first") == OWN
    assert session.allowed("second") == SHARED

    session.delete("pod", "first")
    eventually(lambda: session.allowed("second"), EVERYTHING)
    eventually(lambda: _exclusive(session.wait_settled()), {})
    status = session.wait_settled().status
    assert status is not None
    assert status.pools is not None
    assert status.pools.shared == EVERYTHING


def test_deleting_the_policy_gives_every_cgroup_back(session: Session) -> None:
    session.apply(pod("owner", cpu="1"), pod("neighbour", BUSY))
    session.wait_running("owner", "neighbour")
    before = session.cpusets()
    session.apply(policy())
    eventually(lambda: session.allowed("owner"), OWN)
    assert session.cpusets() != before

    session.delete("cpupolicy", "e2e")
    eventually(session.assignment, None)
    assert session.cpusets() == before


def test_mode_none_gives_every_cgroup_back_and_the_policy_stays(session: Session) -> None:
    session.apply(pod("owner", cpu="1"), pod("neighbour", BUSY))
    session.wait_running("owner", "neighbour")
    before = session.cpusets()
    session.apply(policy())
    eventually(lambda: session.allowed("owner"), OWN)
    session.apply(policy(mode="None"))
    eventually(session.cpusets, before)
    assert session.wait_settled().spec.mode == "None"


def test_a_container_runs_on_its_own_cpu_before_its_first_instruction(session: Session) -> None:
    session.apply(policy())
    session.wait_settled()
    printed = []
    for number in range(20):
        name = f"first-act-{number}"
        command = ("grep", "Cpus_allowed_list", "/proc/self/status")
        session.apply(pod(name, command, cpu="1"))
        done = "--for=jsonpath={.status.phase}=Succeeded"
        session.kubectl("wait", done, f"pod/{name}", "--timeout=50s")
        printed.append(session.kubectl("logs", name).split()[-1])
        session.delete("pod", name)
        eventually(lambda: session.wait_settled().spec.containers, ())
    assert printed == ["1"] * 20


def test_a_fractional_request_shares(session: Session) -> None:
    session.apply(policy(), pod("half", cpu="500m"))
    session.wait_running("half")
    assert not session.wait_settled().spec.containers
    assert session.allowed("half") == EVERYTHING


def test_a_policy_that_comes_later_pins_what_already_runs(session: Session) -> None:
    session.apply(pod("owner", cpu="1"), pod("neighbour", BUSY))
    session.wait_running("owner", "neighbour")
    session.apply(policy())
    eventually(lambda: session.allowed("owner"), OWN)
    eventually(lambda: session.allowed("neighbour"), SHARED)


def test_an_init_container_hands_its_cpu_on(session: Session) -> None:
    look = ("grep", "Cpus_allowed_list", "/proc/self/status")
    owner = pod("owner", BUSY, cpu="1")
    main = owner["spec"]["containers"][0]
    owner["spec"]["initContainers"] = [main | {"name": "first", "command": list(look)}]
    session.apply(policy(), pod("neighbour", BUSY))
    session.wait_running("neighbour")
    session.wait_settled()
    session.apply(owner)
    session.wait_running("owner")
    eventually(lambda: session.allowed("owner"), OWN)
    assert session.kubectl("logs", "owner", "-c", "first").split()[-1] == str(OWN)
    assert session.allowed("neighbour") == SHARED
    spec = session.wait_settled().spec
    assert [(one.container, str(one.cpus)) for one in spec.containers] == [("main", "1")]
