"""Flags and variables become values, or an error that says what to write instead."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from numapin_daemon.options import Address, Option, OptionParser, one_of, seconds_between

OPTIONS = (
    Option("--state-dir", "/var/lib/x", "where state is", Path, "DIR"),
    Option("--socket", None, "the socket", Path, "SOCKET"),
    Option("--node-name", "", "the node", metavar="NAME", also="NODE_NAME"),
    Option("--health-address", "127.0.0.1:80", "the probes", Address.parse, "HOST:PORT"),
    Option("--log-level", "info", "the lines", one_of(("debug", "info")), "debug|info"),
    Option("--resync-seconds", 10, "how often", seconds_between(0.1, 3600), "SECONDS"),
    Option("--leader-elect", True, "elect", bool),
)

DEFAULTS = {
    "state_dir": Path("/var/lib/x"),
    "socket": None,
    "node_name": "",
    "health_address": Address("127.0.0.1", 80),
    "log_level": "info",
    "resync_seconds": 10.0,
    "leader_elect": True,
    "release": False,
}


def parser(environment: dict[str, str]) -> OptionParser:
    made = OptionParser("program", environment, description="What\n  it does.", epilog="More.")
    made.add_version("product 1.2")
    made.add_switch("--release", "give back")
    made.add(OPTIONS[0])
    made.add(*OPTIONS[1:], group="a group")
    return made


def parse(arguments: list[str], environment: dict[str, str]) -> dict[str, Any]:
    return parser(environment).parse(arguments)


def test_defaults() -> None:
    assert parse([], {}) == DEFAULTS


ENVIRONMENT = {
    "NUMAPIN_STATE_DIR": "/elsewhere",
    "NUMAPIN_SOCKET": "/run/x.sock",
    "NUMAPIN_NODE_NAME": "n1",
    "NUMAPIN_HEALTH_ADDRESS": "[::1]:9000",
    "NUMAPIN_LOG_LEVEL": "debug",
    "NUMAPIN_RESYNC_SECONDS": "2.5",
    "NUMAPIN_LEADER_ELECT": "No",
}


def test_variables_win_over_defaults() -> None:
    assert parse([], ENVIRONMENT) == {
        "state_dir": Path("/elsewhere"),
        "socket": Path("/run/x.sock"),
        "node_name": "n1",
        "health_address": Address("::1", 9000),
        "log_level": "debug",
        "resync_seconds": 2.5,
        "leader_elect": False,
        "release": False,
    }


def test_flags_win_over_variables() -> None:
    arguments = [
        "--state-dir=/flag",
        "--socket=/flag.sock",
        "--node-name=n2",
        "--health-address=:1",
        "--log-level=info",
        "--resync-seconds=3",
        "--leader-elect",
        "--release",
    ]
    assert parse(arguments, ENVIRONMENT) == {
        "state_dir": Path("/flag"),
        "socket": Path("/flag.sock"),
        "node_name": "n2",
        "health_address": Address("", 1),
        "log_level": "info",
        "resync_seconds": 3.0,
        "leader_elect": True,
        "release": True,
    }
    assert not parse(["--no-leader-elect"], {})["leader_elect"]


def test_an_empty_variable_counts_as_not_set() -> None:
    assert parse([], dict.fromkeys(ENVIRONMENT, "")) == DEFAULTS


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"NODE_NAME": "a"}, "a"),
        ({"NODE_NAME": "a", "NUMAPIN_NODE_NAME": ""}, "a"),
        ({"NODE_NAME": "a", "NUMAPIN_NODE_NAME": "b"}, "b"),
    ],
)
def test_another_variable_is_read_when_ours_is_not_set(
    environment: dict[str, str], name: str
) -> None:
    assert parse([], environment)["node_name"] == name


@pytest.mark.parametrize("source", ["flag", "variable"])
@pytest.mark.parametrize(
    ("flag", "text", "said"),
    [
        ("--health-address", "80", "'80' is not HOST:PORT, such as 127.0.0.1:8080"),
        ("--health-address", "h:65536", "is not HOST:PORT"),
        ("--health-address", "h:٣", "is not HOST:PORT"),
        ("--log-level", "loud", "invalid choice: 'loud' is none of debug, info"),
        ("--resync-seconds", "0", "'0' is not a number of seconds from 0.1 to 3600"),
        ("--resync-seconds", "3601", "is not a number of seconds"),
        ("--resync-seconds", "nan", "is not a number of seconds"),
        ("--resync-seconds", "soon", "is not a number of seconds"),
    ],
)
def test_a_bad_value_is_explained(
    flag: str, text: str, said: str, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    variable = "NUMAPIN_" + flag.removeprefix("--").replace("-", "_").upper()
    by_flag = source == "flag"
    with pytest.raises(SystemExit) as ended:
        parse([f"{flag}={text}"] if by_flag else [], {} if by_flag else {variable: text})
    assert ended.value.code == 2
    written = capsys.readouterr().err
    assert said in written
    assert flag in written


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        ([], {"NUMAPIN_LEADER_ELECT": "perhaps"}, "LEADER_ELECT: 'perhaps' is neither true nor"),
        (["--rel"], {}, "unrecognized arguments: --rel"),
        (["--frobnicate"], {}, "unrecognized arguments: --frobnicate"),
    ],
)
def test_bad_input_is_explained(
    arguments: list[str],
    environment: dict[str, str],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments, environment)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_options_that_do_not_fit_together_end_the_program(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser({}).fail("give --node-name")
    assert ended.value.code == 2
    assert "program: error: give --node-name" in capsys.readouterr().err


def test_help_shows_groups_and_the_defaults_of_the_program(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--help"], ENVIRONMENT)
    assert ended.value.code == 0
    written = capsys.readouterr().out
    assert "What\n  it does." in written
    assert "a group:\n" in written
    assert "where state is (default: /var/lib/x)" in written
    assert "how often (default: 10)" in written
    assert "elect (default: true)\n" in written
    assert "the socket\n" in written
    assert "the node\n" in written
    assert "n1" not in written


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--version"], {})
    assert ended.value.code == 0
    assert capsys.readouterr().out == "product 1.2\n"


@pytest.mark.parametrize("text", ["127.0.0.1:80", "[::1]:0", ":9880", "localhost:65535"])
def test_an_address_is_written_as_it_is_read(text: str) -> None:
    assert str(Address.parse(text)) == text


def test_an_address_names_what_is_wrong() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="'nowhere' is not HOST:PORT"):
        Address.parse("nowhere")
