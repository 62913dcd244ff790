"""The pods of a run are the same for a seed, and the table says what became of them."""

from numapin_benchmarks.scheduling.__main__ import HEAD, row
from numapin_benchmarks.scheduling.pods import Fates, random_pods


def test_a_seed_gives_the_same_pods_which_fit_a_numa_node() -> None:
    pods = random_pods(200, 1)
    assert pods == random_pods(200, 1) != random_pods(200, 2)
    assert {one.cpus for one in pods} == set(range(1, 8))
    assert [one.at_seconds for one in pods] == sorted(one.at_seconds for one in pods)
    assert pods[0].body["spec"]["containers"][0]["resources"]["limits"]["cpu"] == str(pods[0].cpus)


def test_a_row_has_what_the_head_names() -> None:
    fates = Fates({"a": 0.0, "b": 1.0, "c": 2.0}, {"a": 0.5, "b": 4.0}, {"b"}, {"a"}, 2)
    line = row("default", 3, fates, 9.6)
    assert line == "| default | 3 | 2 | 1 | 0.5 / 0.5 | 2 | 10 |"
    assert {one.count("|") for one in (*HEAD.splitlines(), line)} == {8}
    assert row("default", 3, Fates(), 1.0).startswith("| default | 3 | 0 | 0 | 0.0 / 0.0 |")
