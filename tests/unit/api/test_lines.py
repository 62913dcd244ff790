"""A container as a line, and back: nothing is lost, and no text makes a program fail otherwise."""

from contextlib import suppress
from random import Random
from typing import Any

import pytest

from numapin_api.forms.lines import LINE_LENGTH, LineError, parse_line, print_line
from numapin_api.nodeassignment import ContainerAssignment

ENGINE: dict[str, Any] = {
    "podUID": "u-1",
    "namespace": "team",
    "pod": "engine-0",
    "container": "engine",
    "cpus": "2,34",
    "mems": "0",
    "exclusive": True,
    "memory": [{"numaNodes": [0], "resource": "memory", "bytes": 1 << 30}],
}


def test_a_line_reads_like_a_sentence() -> None:
    line = "team/engine-0 engine cpus=2,34 mems=0 memory=0:1Gi since=7 uid=u-1"
    assert print_line(ENGINE, 7) == line
    assert parse_line(line) == (ENGINE, 7)


def test_a_move_names_what_leaves_and_for_whom() -> None:
    moving = {"leaving": "4-5", "leavingMems": "1", "at": "2026-03-01T09:00:00Z"}
    moving |= {"namespace": "team", "pod": "large-0"}
    line = print_line(ENGINE | {"moving": moving, "movedAt": "2026-03-01T08:59:58Z"}, 8)
    told = "leaving=4-5 leavingMems=1 leaveAt=2026-03-01T09:00:00Z for=team/large-0"
    assert f" {told} movedAt=2026-03-01T08:59:58Z since=8 " in line
    assert parse_line(line)[0]["moving"] == moving


def _random_set(random: Random) -> str:
    return ",".join(
        str(one) for one in sorted(random.sample(range(0, 64, 2), random.randint(1, 4)))
    )


def _random_name(random: Random) -> str:
    usual = "".join(random.choices("abcxyz019-.", k=random.randint(1, 30)))
    return random.choice([usual] * 9 + ["a b/c%d\n", "é=ü", "uid=1"])


def _random_entry(random: Random) -> dict[str, Any]:
    blocks = [
        {
            "numaNodes": random.sample(range(16), random.randint(1, 5)),
            "resource": random.choice(["memory", "hugepages-2Mi", "hugepages-1Gi"]),
            "bytes": random.choice([0, 1, 4096, 5 << 20, 3 << 30, (1 << 60) + 1]),
        }
        for _ in range(random.randint(0, 4))
    ]
    fields: dict[str, Any] = {
        "cpus": _random_set(random),
        "mems": _random_set(random),
        "memory": blocks,
        "grants": [_random_set(random) for _ in range(random.randint(1, 3))],
        "outdated": True,
        "claimed": True,
        "movedAt": "2026-03-01T08:59:58Z",
        "moving": {"leaving": _random_set(random)},
    }
    kept = {key: value for key, value in fields.items() if random.random() < 0.6}
    names = {key: _random_name(random) for key in ("namespace", "pod", "container")}
    exclusive = "cpus" in kept and random.random() < 0.9
    return {"podUID": f"u{random.randint(0, 99)}", **names, **kept, "exclusive": exclusive}


@pytest.mark.parametrize("seed", range(200))
def test_every_entry_comes_back_as_it_was(seed: int) -> None:
    random = Random(seed)
    entry, since = _random_entry(random), random.randint(0, 10**6)
    line = print_line(entry, since)
    assert "\n" not in line
    back, first = parse_line(line)
    model = ContainerAssignment.model_validate
    assert (model(back), first) == (model(entry), since)
    assert print_line(back, since) == line


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (7, "should be a text, not 7"),
        ("", "should be like"),
        ("engine-0 engine uid=1", "should be like"),
        ("team/engine-0 engine cpus=1", "has no uid"),
        ("team/engine-0 engine cpus=1 cpus=2 uid=1", "has cpus twice"),
        ("team/engine-0 engine cpus uid=1", "should have key=value, not 'cpus'"),
        ("team/engine-0 engine  uid=1", "should have key=value, not ''"),
        ("team/engine-0 engine since=x uid=1", "since should be a whole number"),
        ("team/engine-0 engine since=-1 uid=1", "since should be a whole number"),
        ("team/engine-0 engine since=१ uid=1", "since should be a whole number"),
        ("team/engine-0 engine exclusive=no cpus=1 uid=1", "exclusive should be true or false"),
        ("team/engine-0 engine memory=1Gi uid=1", "memory should be like 0:1Gi"),
        ("team/engine-0 engine memory=0:1Gb uid=1", "memory should be like 0:1Gi"),
        ("team/engine-0 engine memory=3-1:1Gi uid=1", "should have ascending NUMA nodes"),
        ("team/engine-0 engine memory=0-99999:1 uid=1", "should have at most 128 NUMA nodes"),
        (f"team/engine-0 engine {'memory=0:1 ' * 65}uid=1", "has more than 64 blocks of memory"),
        ("team/engine-0 engine podUID=2 uid=1", "has podUID, which no line has"),
        ("team/engine-0 engine uid=%ff", "should be Unicode text"),
        ("a" * (LINE_LENGTH + 1), f"at most {LINE_LENGTH} are read"),
    ],
)
def test_a_wrong_line_is_refused_with_its_reason(line: object, problem: str) -> None:
    with pytest.raises(LineError) as caught:
        parse_line(line)
    assert problem in str(caught.value)


def test_a_key_of_a_later_operator_is_kept_for_whoever_checks_the_schema() -> None:
    entry, _ = parse_line("team/engine-0 engine cache=3 uid=u-1")
    assert entry["cache"] == "3"


@pytest.mark.parametrize("seed", range(100))
def test_a_damaged_line_is_read_or_refused_and_nothing_else(seed: int) -> None:
    random = Random(seed)
    text = list(print_line(_random_entry(random), 3))
    for _ in range(random.randint(1, 6)):
        text[random.randrange(len(text))] = random.choice("=:/,- 09%\x00é\ud800")
    with suppress(LineError):
        entry, since = parse_line("".join(text))
        assert since >= 0
        assert entry["podUID"] is not None
