"""A queue that serves group after group."""

from numapin_operator.queues.turns import Turns


def filled(**items: list[int]) -> Turns[tuple[str, int]]:
    turns = Turns[tuple[str, int]]()
    for group, numbers in items.items():
        for number in numbers:
            turns.add(group, (group, number))
    return turns


def drained(turns: Turns[tuple[str, int]]) -> str:
    taken = []
    while (item := turns.take()) is not None:
        taken.append(f"{item[0]}{item[1]}")
    return " ".join(taken)


def test_each_group_has_its_turn_and_keeps_its_order() -> None:
    assert drained(filled(a=[1, 2, 3, 4], b=[1], c=[1, 2])) == "a1 b1 c1 a2 c2 a3 a4"


def test_a_group_that_was_just_served_comes_last_when_it_asks_again() -> None:
    turns = filled(a=[1], b=[1])
    assert turns.take() == ("a", 1)
    turns.add("a", ("a", 2))
    assert drained(turns) == "b1 a2"


def test_what_is_not_due_keeps_its_turn() -> None:
    turns = filled(a=[1, 2], b=[3])
    assert turns.take(lambda item: item[1] > 1) == ("a", 2)
    assert turns.take(lambda item: item[1] > 3) is None
    assert (len(turns), sorted(turns)) == (2, [("a", 1), ("b", 3)])
    assert drained(turns) == "b3 a1"


def test_the_last_item_of_the_largest_group_is_dropped() -> None:
    turns = filled(a=[1], b=[1, 2, 3], c=[1, 2])
    assert [turns.drop() for _ in range(2)] == [("b", 3), ("b", 2)]
    assert (drained(turns), len(turns)) == ("a1 b1 c1 c2", 0)
