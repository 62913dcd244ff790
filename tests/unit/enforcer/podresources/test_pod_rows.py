"""Which UID gets the devices that a kubelet lists by name: never the wrong one."""

from numapin_enforcer.podresources.devices import Devices, Rows, Unnamed
from numapin_enforcer.podresources.pod_rows import PodAnswer, PodRows


def gpu(id_: str) -> Rows:
    return (("c", Devices("example.com/gpu", (0,), 1, (id_,))),)


def answer(*without: str, **rows: Rows) -> PodAnswer:
    named = {f"d/{name}": has for name, has in rows.items()}
    return PodAnswer(frozenset(named) | {f"d/{name}" for name in without}, named)


def pods(*uids: str, **names: str) -> PodRows:
    made = PodRows(names={uid: f"d/{name}" for uid, name in names.items()})
    made.keep(uids, 0.0)
    return made


def test_a_pod_gets_what_is_listed_under_its_name() -> None:
    found = pods("u1", "u2", u1="a", u2="b")
    assert found.settle(answer("b", a=gpu("g1")), ["u1", "u2"]) == frozenset()
    assert found.rows == {"u1": gpu("g1")}
    assert found.unsettled == frozenset()


def test_a_name_is_needed_only_while_devices_are_left_that_no_known_pod_has() -> None:
    found = pods("u1", "u2")
    assert found.settle(answer("b", a=gpu("g1")), ["u1", "u2"]) == {"u1", "u2"}
    found.names["u1"] = "d/a"
    assert found.settle(answer("b", a=gpu("g1")), ["u1", "u2"]) == frozenset()
    assert found.rows == {"u1": gpu("g1")}
    assert found.unsettled == frozenset()


def test_an_answer_says_nothing_of_a_pod_that_came_after_the_question() -> None:
    found = pods("u1", u1="a")
    found.settle(answer(a=gpu("g1")), [])
    assert found.rows == {}
    assert found.unsettled == {"u1"}


def test_a_pod_that_was_created_again_gets_nothing_of_the_one_before() -> None:
    found = pods("old", old="a")
    found.settle(answer(a=gpu("g1")), ["old"])
    found.keep(["old", "new"], 1.0)
    found.names["new"] = "d/a"
    found.settle(answer(a=gpu("g1")), ["old"])  # asked before it came
    found.settle(answer(a=gpu("g2")), ["old", "new"])
    assert found.rows == {"old": gpu("g1")}
    found.keep(["new"], 2.0)
    found.settle(answer(a=gpu("g2")), ["new"])
    assert found.rows == {"new": gpu("g2")}


def test_two_pods_of_one_name_get_nothing_until_one_of_them_is_gone() -> None:
    found = pods("old", "new", old="a", new="a")
    assert found.settle(answer(a=gpu("g1")), ["old", "new"]) == frozenset()
    assert found.rows == {}
    assert found.unsettled == {"old", "new"}
    found.keep(["new"], 1.0)
    found.settle(answer(a=gpu("g1")), ["new"])
    assert found.rows == {"new": gpu("g1")}


def test_a_name_that_is_listed_twice_or_not_at_all_says_nothing() -> None:
    found = pods("u1", u1="a")
    found.settle(PodAnswer(frozenset({"d/b"}), {}), ["u1"])
    assert found.unsettled == {"u1"}


def test_a_pod_keeps_its_devices_while_it_has_a_cgroup_whatever_is_listed_later() -> None:
    found = pods("u1", u1="a")
    found.settle(answer(a=gpu("g1")), ["u1"])
    found.reopen()
    found.settle(answer("a"), ["u1"])
    assert found.rows == {"u1": gpu("g1")}
    found.keep([], 1.0)
    assert found.rows == {}


def test_a_pod_without_devices_may_be_found_to_have_some() -> None:
    found = pods("u1", u1="a")
    found.settle(answer("a"), ["u1"])
    assert found.unsettled == frozenset()
    found.reopen()
    found.settle(answer(a=gpu("g1")), ["u1"])
    assert found.rows == {"u1": gpu("g1")}


def test_pods_without_a_name_have_together_what_is_left() -> None:
    found = pods("a", "u1", "u2", "late", a="a")
    listed = answer("b", a=gpu("g0"), new=gpu("g1"))
    asked = ["a", "u1", "u2"]
    assert found.settle(listed, asked) == {"u1", "u2"}
    assert found.unnamed(listed, asked) == Unnamed(("u1", "u2"), {"d/new": gpu("g1")})
    found.names["u1"] = "d/new"
    assert found.settle(listed, asked) == frozenset()
    assert found.rows["u1"] == gpu("g1")
    assert found.unnamed(listed, asked) == Unnamed()


def test_what_is_left_is_not_that_of_a_pod_that_has_a_name() -> None:
    found = pods("old", "new", old="a")
    assert found.unnamed(answer(a=gpu("g1")), ["old", "new"]) == Unnamed()


def test_only_pods_that_are_there_are_resumed() -> None:
    found = pods("u1", "u2")
    found.resume({"u1": gpu("g1"), "gone": gpu("g2")})
    assert found.rows == {"u1": gpu("g1")}
    assert found.unsettled == {"u2"}


def test_names_of_pods_without_a_cgroup_are_forgotten_when_told() -> None:
    found = pods("u1", u1="a", gone="b")
    assert "gone" in found.names
    found.forget_names()
    assert found.names == {"u1": "d/a"}
