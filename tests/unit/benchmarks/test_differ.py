"""The kubelet's answers are compared where they never vary; the kubelet here is made of ours."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from numapin_benchmarks.placement.differ import outcome
from numapin_benchmarks.placement.workload import Json
from numapin_cli.commands.simulate import answer
from numapin_cli.inputs.machines import Machines
from numapin_cli.inputs.scenario import parse_scenario
from numapin_operator.placement import KUBELET

GPU = "example.com/gpu"
AMOUNTS = {"cpu": "1", "memory": "64Mi", GPU: "1"}
CONTAINER = {"name": "c", "resources": {"requests": AMOUNTS, "limits": AMOUNTS}}
QUESTION: Json = {
    "name": "two GPUs",
    "machine": {
        "cpus": [[cpu, cpu, cpu // 4, -1, cpu // 4] for cpu in range(8)],
        "numaNodes": [{"id": node, "memoryBytes": 1 << 30} for node in range(2)],
    },
    "policy": {"reserved": {"cpus": "0"}},
    "devices": {GPU: [{"id": "g0", "numaNodes": [0]}, {"id": "g1", "numaNodes": [1]}]},
    "steps": [
        {"add": {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [CONTAINER]}}}
    ],
}


def kubelet(*changes: Callable[[Json], None]) -> Callable[[Json], Json]:
    """Answers in turn what `changes` make of our own answer."""
    turns = itertools.cycle(changes)

    def ask(question: Json) -> Json:
        given = answer(parse_scenario(json.dumps(question), Machines(Path())), KUBELET)
        next(turns)(given["steps"][0])
        return given

    return ask


def same(step: Json) -> None:
    """Nothing is different."""


def other_device(step: Json) -> None:
    given = step["containers"]["c"]["devices"]
    given[GPU] = ["g1" if given[GPU] == ["g0"] else "g0"]


def other_cpu(step: Json) -> None:
    step["containers"]["c"]["cpus"], step["shared"] = "7", "1-6"


def no_device(step: Json) -> None:
    del step["containers"]["c"]["devices"]


@pytest.mark.parametrize(
    ("ask", "came"),
    [
        pytest.param(kubelet(same), "alike, with devices", id="alike"),
        pytest.param(kubelet(other_cpu), "DIFFERENT", id="another CPU"),
        pytest.param(kubelet(other_device), "DIFFERENT", id="always another NUMA node"),
        pytest.param(kubelet(no_device), "DIFFERENT", id="no device"),
        pytest.param(
            kubelet(other_device, same), "alike, with devices", id="now this device, now that one"
        ),
        pytest.param(
            kubelet(other_cpu, same),
            "the kubelet varies with its devices",
            id="now this CPU, now that one",
        ),
    ],
)
def test_what_never_varies_must_be_alike(ask: Callable[[Json], Json], came: str) -> None:
    assert outcome(ask, QUESTION).partition(":")[0] == came


def test_a_kubelet_that_ends_is_no_difference() -> None:
    assert outcome(lambda _: None, QUESTION) == "the kubelet hangs or ends"
