"""When a workload knew that CPUs would leave it, from what it has written down."""

import json
from typing import Any

from numapin_api.cpuset import CpuSet
from numapin_campaigns.workload.notice import (
    Departure,
    Reading,
    leaving_in,
    parse_followed,
    with_cpus_file,
)
from numapin_lab.running_lab import pod


def text(cpus: str, leaving: str = "") -> str:
    main: dict[str, Any] = {"cpus": cpus}
    if leaving:
        main["leaving"] = {"cpus": leaving}
    return json.dumps({"version": 1, "containers": {"main": main}})


def log(*rows: tuple[float, str, object]) -> list[str]:
    return [json.dumps(row) + "\n" for row in rows]


def departures(*rows: tuple[float, str, object]) -> list[Departure]:
    return list(parse_followed(log(*rows)).departures)


def test_a_departure_was_announced_when_the_file_first_named_all_its_cpus() -> None:
    found = departures(
        (1, "file", ""),
        (1, "cpus", [4]),
        (2, "file", text("4")),
        (3, "cpus", [0, 4]),
        (4, "file", text("0,4", "4")),
        (5, "file", text("0,4", "4")),
        (7, "cpus", [0]),
        (8, "file", text("0")),
    )
    assert found == [Departure(CpuSet.parse("4"), 4, 7)]
    assert found[0].notice_seconds == 3


def test_the_file_may_say_that_a_cpu_is_gone_before_the_kernel_takes_it() -> None:
    found = departures(
        (1, "cpus", [0, 4]),
        (2, "file", text("0,4", "4")),
        (3, "file", text("0")),
        (4, "cpus", [0]),
        (5, "cpus", [0, 4]),
        (6, "file", text("0,4")),
        (7, "cpus", [0]),
    )
    assert [one.announced_at for one in found] == [2, None]


def test_what_the_file_names_later_or_not_at_all_was_not_announced() -> None:
    late = departures((1, "cpus", [0, 4]), (2, "cpus", [0]), (3, "file", text("0,4", "4")))
    part = departures((1, "cpus", [0, 4, 5]), (2, "file", text("0,4", "4")), (3, "cpus", [0]))
    taken_back = departures(
        (1, "cpus", [0, 4]),
        (2, "file", text("0,4", "4")),
        (3, "file", text("0,4")),
        (4, "cpus", [0]),
    )
    assert [one.announced_at for one in (*late, *part, *taken_back)] == [None] * 3
    assert late[0].notice_seconds == 0


def test_a_line_that_is_not_whole_is_left_out_and_the_last_one_says_how_often_it_asked() -> None:
    assert parse_followed([*log((1, "cpus", [4])), '[2, "cpus", [']).departures == ()
    found = parse_followed(log((1, "cpus", [4]), (9, "asked", [8000, 0.5])))
    assert (found.asked, found.longest_gap_seconds) == (8000, 0.5)


def test_cpus_that_another_could_use_are_kept() -> None:
    seen: list[tuple[float, list[int]]] = [(2, []), (3, [4]), (4, []), (5, [4])]
    found = parse_followed(log((1, "cpus", [4]), *((at, "shared", cpus) for at, cpus in seen)))
    assert found.shared == tuple(Reading(at, CpuSet.parse("4")) for at in (3, 5))
    assert found.had == (Reading(1, CpuSet.parse("4")),)


def test_an_empty_file_and_another_container_announce_nothing() -> None:
    assert leaving_in("") == CpuSet()
    assert leaving_in(text("0,4", "4"), "other") == CpuSet()
    assert leaving_in(text("0,4", "4")) == CpuSet.parse("4")


def test_a_pod_gets_the_volume_and_is_not_changed_itself() -> None:
    plain = pod("a", cpu="1")
    (container,) = with_cpus_file(plain)["spec"]["containers"]
    assert container["volumeMounts"][0]["mountPath"] == "/etc/numapin"
    assert "volumes" not in plain["spec"]
