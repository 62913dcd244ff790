"""Flags and variables become one Settings, or an error that helps."""

from pathlib import Path

import pytest

from numapin_enforcer.settings import parse_settings
from numapin_enforcer.standby.settings import parse_standby_settings

NODE = ["--node-name", "n1"]


def test_defaults() -> None:
    settings = parse_settings(NODE, {})
    assert (settings.node_name, settings.kubeconfig, settings.cri_socket) == ("n1", None, None)
    assert settings.sysfs == Path("/sys")
    assert settings.cgroupfs == Path("/sys/fs/cgroup")
    assert settings.cgroup_root == "/"
    assert settings.health_address == ("127.0.0.1", 8081)
    assert settings.resync_seconds == 10
    assert settings.most_moved_memory == 16 * 1024**3
    assert not settings.release
    kubelet = Path("/var/lib/kubelet")
    assert settings.pod_resources_socket == kubelet / "pod-resources/kubelet.sock"


def test_an_empty_socket_switches_devices_off() -> None:
    assert parse_settings([*NODE, "--pod-resources-socket="], {}).pod_resources_socket is None


def test_the_environment_sets_what_flags_leave_open() -> None:
    environment = {
        "NODE_NAME": "from-node-name",
        "NUMAPIN_CRI_SOCKET": "/run/x.sock",
        "NUMAPIN_RESYNC_SECONDS": "2.5",
        "NUMAPIN_HEALTH_ADDRESS": "[::1]:9000",
        "NUMAPIN_LOG_FORMAT": "json",
        "NUMAPIN_LOG_LEVEL": "warning",
    }
    settings = parse_settings(["--resync-seconds", "3"], environment)
    assert settings.node_name == "from-node-name"
    assert settings.cri_socket == Path("/run/x.sock")
    assert settings.resync_seconds == 3
    assert settings.health_address == ("::1", 9000)
    assert (settings.log_level, settings.log_format) == ("warning", "json")


def test_our_own_variable_wins_over_node_name() -> None:
    environment = {"NODE_NAME": "a", "NUMAPIN_NODE_NAME": "b"}
    assert parse_settings([], environment).node_name == "b"


def test_release_needs_no_name() -> None:
    assert parse_settings(["--release"], {}).release


def test_release_is_a_flag_only_as_the_help_says(capsys: pytest.CaptureFixture[str]) -> None:
    """A variable that is left over in a pod must not release its node at each start."""
    assert not parse_settings(NODE, {"NUMAPIN_RELEASE": "1"}).release
    with pytest.raises(SystemExit):
        parse_settings(["--help"], {})
    assert "Every option but --release can be set in the environment" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        ([], {}, "the node's name is missing: give --node-name, or NODE_NAME"),
        ([*NODE, "--health-address", "8081"], {}, "'8081' is not HOST:PORT"),
        ([*NODE, "--health-address", "h:99999"], {}, "is not HOST:PORT"),
        ([*NODE, "--resync-seconds", "0"], {}, "'0' is not a number of seconds from 0.1 to 3600"),
        ([*NODE, "--most-moved-memory", "16G i"], {}, "'16G i' is not a quantity"),
        ([*NODE, "--most-moved-memory=-1"], {}, "'-1' is less than 0"),
        ([*NODE, "--resync-seconds", "nan"], {}, "'nan' is not a number of seconds"),
        (NODE, {"NUMAPIN_RESYNC_SECONDS": "soon"}, "'soon' is not a number of seconds"),
        ([*NODE, "--cgroup-root", "/a/../../b"], {}, "holds no '..'"),
        ([*NODE, "--cgroup-root", "kubepods"], {}, "starts with '/'"),
        ([*NODE, "--log-format", "xml"], {}, "invalid choice: 'xml'"),
        ([*NODE, "--realtime-priority=100"], {}, "'100' is not a whole number from 0 to 99"),
        ([*NODE, "--realtime-priority=-1"], {}, "'-1' is not a whole number from 0 to 99"),
        (NODE, {"NUMAPIN_REALTIME_PRIORITY": "high"}, "'high' is not a whole number"),
        ([*NODE, "--rel"], {}, "unrecognized arguments: --rel"),
    ],
)
def test_bad_input_is_explained(
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    environment: dict[str, str],
    message: str,
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_settings(arguments, environment)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_help_names_every_option_and_its_variable(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_settings(["--help"], {})
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "NUMAPIN_CRI_SOCKET" in text
    assert "(default: /sys/fs/cgroup)" in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_settings(["--version"], {})
    assert capsys.readouterr().out.startswith("numapin-enforcer 0.")


def test_a_standby_takes_the_options_of_the_enforcer_that_concern_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    environment = {"NODE_NAME": "n2", "NUMAPIN_STATE_DIR": "/kept", "NUMAPIN_LOG_FORMAT": "json"}
    flags = ["--cgroup-root=/lab", "--log-level=error"]
    settings = parse_standby_settings(flags, environment)
    assert (settings.node_name, settings.cgroup_root, settings.log_format) == ("n2", "/lab", "json")
    assert settings.log_level == "error"
    assert settings.state_dir == Path("/kept")
    assert settings.kubelet_state_dir == parse_settings(NODE, {}).kubelet_state_dir
    assert settings.realtime_priority == parse_settings(NODE, {}).realtime_priority
    environment["NUMAPIN_REALTIME_PRIORITY"] = "0"
    assert parse_standby_settings([], environment).realtime_priority == 0
    with pytest.raises(SystemExit) as ended:
        parse_standby_settings([], {})
    assert ended.value.code == 2
    assert "the node's name is missing" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        parse_standby_settings([*NODE, "--cri-socket=/x"], {})
    assert "unrecognized arguments: --cri-socket" in capsys.readouterr().err


def test_answers_for_exporters_need_those_of_the_kubelet(
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [*NODE, "--serve-pod-resources=/run/s"]
    assert str(parse_settings(given, {}).serve_pod_resources) == "/run/s"
    assert parse_settings(NODE, {}).serve_pod_resources is None
    with pytest.raises(SystemExit, match="2"):
        parse_settings([*given, "--pod-resources-socket="], {})
    assert "adds to the answers of --pod-resources-socket" in capsys.readouterr().err
