"""Random and recorded histories of a node, judged after every single write.

`make histories` searches on from here. A history that it finds becomes an entry of
`BROKEN_BEFORE`, by its seed, as short as it is printed.
"""

from typing import get_args

import pytest

from numapin_campaigns.histories.actions import (
    Action,
    Assign,
    FenceNew,
    History,
    Hold,
    Make,
    Meanwhile,
    Name,
    Overwrite,
    Own,
    Pass,
    Refuse,
    Restart,
    Restrict,
    StandbyPass,
)
from numapin_campaigns.histories.search import (
    EVERYTHING,
    FAILURES,
    Kind,
    broken_law,
    random_history,
    shortened,
)
from numapin_campaigns.laws.writes import BrokenLawError

ENOMEM, ENOSPC = 12, 28
SEEDS = 50

BROKEN_BEFORE: dict[str, History] = {
    "failures 500913: a child moves to its container's CPU before another has left it": History(
        1,
        "cgroupfs",
        cpus=3,
        numa_nodes=2,
        actions=(
            *(Make("b6"), Make("b6/c8"), Make("b6/c8/n"), Make("b6/a9")),
            *(Assign("0", (Own("b6", "a", "1-2"),)), Name("b6/a9"), Pass()),
            Assign("1", (Own("b6", "a", "0"), Own("b6", "c", "2"))),
            Overwrite("b6/c8", "0,2"),
        ),
    ),
    "everything 710269: a shared container gets back the CPU of another": History(
        2,
        "systemd",
        cpus=5,
        numa_nodes=2,
        actions=(
            *(Make("b3"), Make("b3/s4"), Make("b3/b6"), Make("b7"), Make("b7/a9"), Name("b7/a9")),
            *(Assign("0,3", (Own("b7", "a", "2"), Own("b3", "b", "4"))), Pass()),
            Overwrite("burstable", "2"),
        ),
    ),
    "everything 711173: the standby moves the child of a container that looks new": History(
        1,
        "systemd",
        cpus=8,
        numa_nodes=1,
        actions=(
            *(Make("g1"), Make("g1/c4"), Name("g1/c4"), Make("g1/c4/n")),
            *(Assign("2,4-7", (Own("g1", "a", "0-1"), Own("g1", "c", "3"))), Pass()),
            *(Overwrite("g1/c4", "0-7"), StandbyPass()),
        ),
    ),
    "4018: what should have been gained is missing, and the parent is narrowed": History(
        2,
        "cgroupfs",
        cpus=3,
        numa_nodes=1,
        actions=(
            *(Make("b8"), Make("b8/c10"), Name("b8/c10"), Assign("2", (Own("b8", "c", "1"),))),
            *(Make("b15"), Make("b15/s16"), Pass(), Assign("0", (Own("b8", "c", "1"),))),
            Pass(faults=(Refuse("b15", 0, ENOSPC),)),
        ),
    ),
    "1986: an intruder is on the exclusive CPU of a container that moves": History(
        2,
        "cgroupfs",
        cpus=7,
        numa_nodes=1,
        actions=(
            *(Make("e1"), Make("e1/s2"), Make("e1/b4"), Name("e1/b4")),
            *(Assign("2,4,6", (Own("e1", "b", "0"),)), Make("b6"), Make("b6/a9"), Pass()),
            *(Assign("0,3-4", (Own("b6", "a", "5"), Own("e1", "b", "6"))), Overwrite("e1", "0,5")),
        ),
    ),
    "3074: a parent gives back a CPU that another could not be moved off": History(
        2,
        "cgroupfs",
        cpus=4,
        numa_nodes=1,
        actions=(
            *(Make("b1"), Make("b1/b4"), Name("b1/b4"), Assign("0,3", (Own("b1", "b", "1-2"),))),
            *(Pass(), Overwrite("b1", "0-1"), Overwrite("besteffort", "0-3")),
            Pass(faults=(Refuse("besteffort", 0, ENOMEM),)),
        ),
    ),
    "3976: a class gives back a CPU that a new pod could not be moved off": History(
        2,
        "cgroupfs",
        cpus=8,
        numa_nodes=1,
        actions=(
            *(Make("b1"), Make("b1/b3"), Name("b1/b3")),
            *(Assign("0-1,3-4,7", (Own("b1", "b", "2,5"),)), Pass(full_resync=False)),
            *(Overwrite("burstable", "0-1,4-5"), Make("g10")),
            Pass(faults=(Refuse("g10", 0, ENOMEM),)),
        ),
    ),
    "failures 7: a moving container is parked on the CPU of another, beside an intruder": History(
        1,
        "cgroupfs",
        cpus=4,
        numa_nodes=1,
        actions=(
            *(Make("g1"), Make("g1/c4"), Name("g1/c4"), Make("g1/b5"), Name("g1/b5")),
            *(Assign("1,3", (Own("g1", "c", "0"), Own("g1", "b", "2"))), Pass()),
            Assign("0,2", (Own("g1", "b", "3"), Own("g1", "c", "1"))),
            Overwrite("besteffort", "1-3"),
        ),
    ),
    "failures 57: a moving container is parked beside a new one, on v1": History(
        1,
        "cgroupfs",
        cpus=5,
        numa_nodes=1,
        actions=(
            *(Make("b1"), Make("b1/b3"), Name("b1/b3"), Make("b1/a4")),
            *(Make("g5"), Make("g5/a7"), Name("g5/a7")),
            *(Assign("1,3", (Own("g5", "a", "2,4"), Own("b1", "b", "0"))), Pass()),
            Assign("4", (Own("b1", "a", "2"), Own("g5", "a", "0-1"), Own("b1", "b", "3"))),
            Make("b1/c8"),
        ),
    ),
    "everything 365: it is parked on CPUs reserved for an unnamed container": History(
        1,
        "systemd",
        cpus=5,
        numa_nodes=1,
        actions=(
            *(Make("b7"), Make("b7/c10"), Make("b7/a11"), Assign("4", (Own("b7", "c", "2"),))),
            *(Name("b7/a11"), Pass(), Assign("3", (Own("b7", "c", "2,4"), Own("b7", "a", "0")))),
            *(Restart(), Pass()),
        ),
    ),
    "failures 5800: each CPU but the old pool is exclusive, and two containers move": History(
        1,
        "cgroupfs",
        cpus=6,
        numa_nodes=1,
        actions=(
            *(Make("b1"), Make("b1/a3"), Name("b1/a3"), Make("e4"), Make("e4/b6")),
            *(Make("e4/a7"), Name("e4/a7"), Make("e4/c8"), Name("e4/c8")),
            *(Make("e9"), Make("e9/b11"), Name("e9/b11")),
            Assign(
                "4",
                (
                    *(Own("e4", "c", "3"), Own("b1", "a", "2")),
                    *(Own("e4", "b", "0"), Own("e9", "b", "1,5")),
                ),
            ),
            Pass(),
            Assign("0,2", (Own("b1", "a", "5"), Own("e4", "a", "3-4"), Own("e4", "b", "1"))),
        ),
    ),
    "failures 1766: the whole new pool is withheld by the parent of kubepods": History(
        2,
        "cgroupfs",
        cpus=5,
        numa_nodes=1,
        actions=(
            *(Make("g1"), Make("g1/b3"), Name("g1/b3"), Assign("3", (Own("g1", "b", "0,2"),))),
            *(Pass(), Assign("1,4", (Own("g1", "b", "2"),)), Restrict("0,2-3"), Pass()),
        ),
    ),
    "failures 7444: a container was taken off a CPU that the spec takes from it as well": History(
        2,
        "systemd",
        cpus=4,
        numa_nodes=1,
        actions=(
            *(Make("e8"), Make("e8/b11"), Name("e8/b11"), Assign("1", (Own("e8", "b", "2"),))),
            *(Pass(), Assign("2-3", (Own("e8", "b", "0"),)), Overwrite("besteffort", "1"), Pass()),
        ),
    ),
    "everything 4826: a new cgroup's pod was changed since the last look": History(
        2,
        "systemd",
        cpus=8,
        numa_nodes=2,
        actions=(
            *(Make("g1"), Assign("1,4,7", (Own("g1", "b", "0", "0"),)), Pass(), Make("g1/a8")),
            *(Overwrite("g1", "5"), FenceNew()),
        ),
    ),
    "failures 5951: what a cgroup has lost with its parent's write is given to it again": History(
        2,
        "cgroupfs",
        cpus=3,
        numa_nodes=1,
        actions=(
            *(Make("e4"), Make("e4/s5"), Make("e4/s5/n"), Make("e4/a6"), Name("e4/a6")),
            *(Assign("0", (Own("e4", "a", "1-2"),)), Pass(), Overwrite("e4", "1-2")),
        ),
    ),
    "everything 21: two unnamed cgroups are taken for one container": History(
        2,
        "cgroupfs",
        cpus=6,
        numa_nodes=1,
        actions=(
            *(Make("e1"), Make("e1/s2"), Make("e1/c4"), Assign("1"), Pass()),
            *(Assign("5", (Own("e1", "c", "1"),)), Pass(full_resync=False)),
        ),
    ),
    "everything 957: a set pod is given again what widening its class has taken from it": History(
        2,
        "cgroupfs",
        cpus=4,
        numa_nodes=1,
        actions=(
            *(Make("b11"), Make("b11/s12"), Assign("1,3"), Pass()),
            Assign("1-2", (Own("g19", "c", "3"),)),
            Pass(full_resync=False, faults=(Meanwhile("burstable", 1, Overwrite("b11", "0,2-3")),)),
            *(Overwrite("burstable", "3"), StandbyPass(hung=True)),
        ),
    ),
    "everything 721394: others write the parent of a moving container, which stays": History(
        2,
        "systemd",
        cpus=3,
        numa_nodes=1,
        actions=(
            *(Make("e3"), Make("e3/c5"), Name("e3/c5"), Assign("0", (Own("e3", "c", "1"),))),
            *(Pass(), Assign("1", (Own("e3", "c", "0"),))),
            Pass(faults=(Meanwhile("e3/c5", 0, Overwrite("besteffort", "1")),), by_runtime=True),
        ),
    ),
}
"""Histories that broke a law once, by kind and seed."""


@pytest.mark.parametrize("history", BROKEN_BEFORE.values(), ids=list(BROKEN_BEFORE))
def test_a_history_that_broke_a_law_breaks_none_now(history: History) -> None:
    assert broken_law(history) is None


@pytest.mark.parametrize("kind", [FAILURES, EVERYTHING], ids=lambda kind: kind.name)
def test_random_histories_break_no_law(kind: Kind) -> None:
    for seed in range(SEEDS):
        history, problem = random_history(seed, kind)
        assert problem is None, f"seed {seed}: {problem}: {shortened(history)}"


def test_a_random_history_is_the_same_when_it_is_played_again() -> None:
    history, problem = random_history(3, EVERYTHING)
    assert history == random_history(3, EVERYTHING)[0]
    assert problem is broken_law(history) is None


def test_random_histories_contain_all_that_can_happen() -> None:
    histories = [random_history(seed, EVERYTHING)[0] for seed in range(20)]
    actions: list[Action] = [one for history in histories for one in history.actions]
    faults = [fault for one in actions if isinstance(one, Pass) for fault in one.faults]
    assert {type(one) for one in actions} == set(get_args(Action)) - {Hold}
    assert {type(one) for one in faults} == {Refuse, Meanwhile}
    assert {(one.version, one.driver) for one in histories} == {
        (version, driver) for version in (1, 2) for driver in ("cgroupfs", "systemd")
    }


def test_a_broken_law_is_found_and_the_history_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    """The laws see what goes wrong if failed writes hold back no others."""
    monkeypatch.setattr("numapin_enforcer.cgroups.apply._blocks", lambda missing, write: False)
    found = (random_history(seed, FAILURES) for seed in range(100))
    history = next(one for one, problem in found if problem is not None)
    shorter = shortened(history)
    assert isinstance(broken_law(shorter), BrokenLawError)
    assert len(shorter.actions) < len(history.actions)
    assert any(isinstance(one, Pass) and one.faults for one in shorter.actions)
