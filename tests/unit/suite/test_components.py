"""A component is found or built before the clock of the first test that needs it runs."""

import pytest

from numapin_lab.components.catalog import HELM
from numapin_lab.errors import LabError
from support.suite import components
from support.suite.components import Components, wanted


def test_a_test_needs_its_fixtures_and_the_components_that_its_module_imports(
    request: pytest.FixtureRequest,
) -> None:
    item: pytest.Item = request.node
    assert {HELM.name, "request"} <= wanted(item)
    assert "cluster" not in wanted(item)


def test_each_thing_is_provided_once_and_a_failure_is_left_to_the_test(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[set[str]] = []

    def provide(new: set[str]) -> None:
        asked.append(new)
        raise LabError("no Go")

    monkeypatch.setattr(components, "_provide", provide)
    item: pytest.Item = request.node
    plugin = Components(request.config)
    for _ in range(2):
        run = plugin.pytest_runtest_protocol(item)
        next(run)
        with pytest.raises(StopIteration, match="True"):
            run.send(True)
    assert asked == [wanted(item)]
