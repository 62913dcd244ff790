"""What people wrote is judged as a whole: every fault is said, not the first one alone."""

from pathlib import Path

import pytest

from numapin_cli.main import main
from numapin_cli.subcommand import CommandError, Faults, UsageError

Capture = pytest.CaptureFixture[str]

FILE = """\
apiVersion: numapin.io/v1beta1
kind: CpuPolicy
metadata: {name: fast}
spec:
  mode: Statik
  reserved: {count: -1}
  optoins: {}
---
apiVersion: v2
kind: Pod
metadata: {name: a}
---
- not an object
---
kind: Pod
apiVersion: v1
metadata: {name: b}
spec: {containers: [{name: main, resources: {requests: {cpu: two}}}]}
---
apiVersion: v1
kind: List
items:
- {kind: Deployment, apiVersion: apps/v1, metadata: {name: web}, spec: {}}
- {kind: Node, apiVersion: v1, metadata: {}}
- {kind: Pod, apiVersion: v1, metadata: {name: c}, spec: {containers: [{name: main}]}}
- {kind: Pod, apiVersion: v1, metadata: {name: c}, spec: {containers: [{name: main}]}}
---
kind: CpuPolicy
apiVersion: numapin.io/v1beta1
metadata: {name: other}
spec:
  reserved: {cpus: "0", count: 1}
  options: {fullPCPUsOnly: true, distributeCPUsAcrossCores: true}
"""


def faults(capsys: Capture, *words: str, status: int = 1) -> list[str]:
    """What each line of standard error says, without the program's name."""
    assert main(list(words)) == status
    said = capsys.readouterr()
    assert said.out == ""
    return [line.removeprefix("numapin: error: ") for line in said.err.splitlines()]


@pytest.fixture(autouse=True)
def as_numapin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["numapin"])


def test_every_fault_of_every_file_is_said(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "all.yaml").write_text(FILE)
    (tmp_path / "broken.yaml").write_text("a: [")
    paths = [str(tmp_path / name) for name in ("none.yaml", "broken.yaml", "all.yaml")]
    found = faults(capsys, "plan", "-f", paths[0], "-f", paths[1], "-f", paths[2])
    shown = [one.replace(f"{tmp_path}/", "") for one in found]
    begins = [
        "none.yaml: No such file or directory",
        "broken.yaml: not YAML: ",
        "all.yaml: document 2: apiVersion: must be v1, not 'v2'",
        "all.yaml: document 3: must be an object",
        "all.yaml: document 5: items[1]: metadata.name: is missing",
        "all.yaml: document 5: items[0]: spec.template.spec: is missing",
        "all.yaml: document 5: items[3]: Pod default/c is listed twice",
        "all.yaml: document 1: spec.mode: ",
        "all.yaml: document 1: spec.reserved.count: ",
        "all.yaml: document 1: spec.optoins: there is no such field",
        "all.yaml: document 6: spec.reserved: give cpus or count, not both",
        "all.yaml: document 6: spec.options.distributeCPUsAcrossCores: excludes fullPCPUsOnly",
        "all.yaml: document 4: pod b: spec.containers[0].resources.requests.cpu",
    ]
    missing = [one for one in begins if not any(line.startswith(one) for line in shown)]
    assert not missing, shown
    assert len(shown) == len(begins), shown


def test_explain_says_every_fault_too(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "all.yaml").write_text(FILE)
    found = faults(capsys, "explain", "-f", str(tmp_path / "all.yaml"))
    policies = [one for one in found if "CpuPolicy cannot be explained" in one]
    assert len(policies) == 2
    assert any("apiVersion: must be v1" in one for one in found)
    assert any("spec.containers[0].resources.requests.cpu" in one for one in found)


def test_every_fault_of_wrong_usage_is_said(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "all.yaml").write_text(FILE)
    flags = ("migrate", "--back", "-f", str(tmp_path / "all.yaml"), "--node", "node-1")
    assert len(faults(capsys, *flags, status=2)) > 5


def test_what_is_collected_is_raised_once() -> None:
    collects = Faults()
    collects.check()
    for fault in (CommandError("one"), UsageError("two", "three"), CommandError("one")):
        with collects.collected():
            raise fault
    with pytest.raises(CommandError) as raised:
        collects.check()
    assert raised.value.texts == ("one", "two", "three")
    assert str(raised.value) == "one; two; three"


def test_other_exceptions_are_not_collected() -> None:
    with pytest.raises(ValueError, match="a fault of numapin"), Faults().collected():
        raise ValueError("a fault of numapin")
