"""The objects that our informer and kopf are compared with: valid, and kept alike in both forms."""

import pytest

from numapin_api.nodeassignment import NodeAssignmentSpec, NodeAssignmentStatus
from numapin_benchmarks.informer.node_objects import APART, FORMS, REPORTS, TODAY
from numapin_client.resources import Json

COUNT = 15


def kept(form: str, number: int) -> list[object]:
    found = FORMS[form].objects(number, COUNT, 3)
    metadata: Json = {"name": "node-00001", "resourceVersion": "7", "uid": "u"}
    decoders = FORMS[form].decoders
    return [decoders[which](one | {"metadata": metadata}) for which, one in found.items()]


def test_todays_objects_are_valid() -> None:
    (one,) = FORMS["today"].objects(1, COUNT, 3).values()
    NodeAssignmentSpec.model_validate(one["spec"])
    NodeAssignmentStatus.model_validate(one["status"])


@pytest.mark.parametrize("form", FORMS)
def test_each_decoder_takes_its_objects(form: str) -> None:
    assert len(kept(form, 1)) == len(FORMS[form].definitions)


def test_both_forms_have_the_same_containers() -> None:
    (now,) = FORMS["today"].objects(1, COUNT, 3).values()
    then = FORMS["apart"].objects(1, COUNT, 3)
    lines = [line.split(" ")[-1] for line in then[APART]["spec"]["containers"]]
    assert lines == [f"uid={one['podUID']}" for one in now["spec"]["containers"]]
    assert "status" not in then[APART]
    assert "spec" not in then[REPORTS]


@pytest.mark.parametrize("form", FORMS)
def test_each_node_has_containers_of_its_own(form: str) -> None:
    entries = dict(FORMS[form].in_etcd(2, COUNT))
    plural = TODAY.plural
    texts = [str(one["spec"]["containers"]) for key, one in entries.items() if plural in key]
    assert len(entries) == 2 * len(FORMS[form].decoders)
    assert len({*texts}) == 2
