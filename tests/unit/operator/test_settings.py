from pathlib import Path

import pytest

from numapin_daemon.options import Address
from numapin_operator.settings import Settings, parse_settings


def test_defaults_suit_a_pod() -> None:
    assert parse_settings([], {}) == Settings(
        kubeconfig=None,
        namespace="numapin-system",
        health_address=Address("127.0.0.1", 9880),
        leader_elect=True,
        shards=1,
        kube_api_qps=200.0,
        kube_api_burst=400,
        annotate_pods=False,
        annotate_refusals=True,
        publish_topologies=False,
        numa_metrics=False,
        assignment_form="v1beta1",
        check=False,
        log_level="info",
        log_format="text",
    )


def test_the_environment_is_read() -> None:
    environment = {
        "NUMAPIN_KUBECONFIG": "/etc/kubeconfig",
        "NUMAPIN_NAMESPACE": "elsewhere",
        "NUMAPIN_HEALTH_ADDRESS": "[::1]:0",
        "NUMAPIN_LEADER_ELECT": "no",
        "NUMAPIN_KUBE_API_QPS": "0.5",
        "NUMAPIN_KUBE_API_BURST": "7",
        "NUMAPIN_ANNOTATE_PODS": "yes",
        "NUMAPIN_ANNOTATE_REFUSALS": "no",
        "NUMAPIN_PUBLISH_TOPOLOGIES": "yes",
        "NUMAPIN_NUMA_METRICS": "yes",
        "NUMAPIN_ASSIGNMENT_FORM": "v1alpha1",
        "NUMAPIN_LOG_LEVEL": "debug",
        "NUMAPIN_LOG_FORMAT": "json",
        "KUBECONFIG": "/home/user/kubeconfig",
    }
    assert parse_settings([], environment) == Settings(
        kubeconfig=Path("/etc/kubeconfig"),
        namespace="elsewhere",
        health_address=Address("::1", 0),
        leader_elect=False,
        shards=1,
        kube_api_qps=0.5,
        kube_api_burst=7,
        annotate_pods=True,
        annotate_refusals=False,
        publish_topologies=True,
        numa_metrics=True,
        assignment_form="v1alpha1",
        check=False,
        log_level="debug",
        log_format="json",
    )


def test_the_usual_variable_of_the_kubeconfig_is_read_too() -> None:
    environment = {"NUMAPIN_KUBECONFIG": "", "KUBECONFIG": "/home/user/kubeconfig"}
    assert parse_settings([], environment).kubeconfig == Path("/home/user/kubeconfig")


def test_flags_win() -> None:
    environment = {"NUMAPIN_LEADER_ELECT": "false", "NUMAPIN_LOG_LEVEL": "error"}
    settings = parse_settings(["--leader-elect", "--log-level=warning"], environment)
    assert (settings.leader_elect, settings.log_level) == (True, "warning")


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        (["--health-address=nowhere"], {}, "'nowhere' is not HOST:PORT"),
        (["--health-address=:70000"], {}, "':70000' is not HOST:PORT"),
        ([], {"NUMAPIN_HEALTH_ADDRESS": "x"}, "'x' is not HOST:PORT"),
        ([], {"NUMAPIN_LEADER_ELECT": "perhaps"}, "'perhaps' is neither true nor false"),
        (["--kube-api-qps=nan"], {}, "'nan' is not a number from 0.0 to 10000.0"),
        (["--kube-api-qps=-1"], {}, "'-1' is not a number from 0.0 to 10000.0"),
        (["--kube-api-burst=1.5"], {}, "'1.5' is not a whole number from 1 to 10000"),
        (["--kube-api-burst=0"], {}, "'0' is not a whole number from 1 to 10000"),
        (["--shards=17"], {}, "'17' is not a whole number from 1 to 16"),
        (["--shards=2", "--no-leader-elect"], {}, "--shards needs --leader-elect"),
        (["--log-level=loud"], {}, "'loud' is none of debug, info, warning, error"),
        ([], {"NUMAPIN_LOG_FORMAT": "xml"}, "'xml' is none of text, json"),
        (["--frobnicate"], {}, "unrecognized arguments: --frobnicate"),
    ],
)
def test_bad_input_is_named(
    arguments: list[str],
    environment: dict[str, str],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_settings(arguments, environment)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_settings(["--version"], {})
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("numapin-operator ")
