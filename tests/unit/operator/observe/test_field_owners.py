"""Which owners of fields a replacing write clears."""

from typing import Any

import pytest

from numapin_operator.observe.assignments.view import AssignmentView

UPDATE = {"manager": "numapin-operator", "operation": "Update"}
STATUS = {"manager": "numapin-enforcer", "operation": "Update", "subresource": "status"}
APPLY = {"manager": "team", "operation": "Apply"}


@pytest.mark.parametrize(
    ("managers", "carried"),
    [
        ([UPDATE, STATUS], [{}]),
        ([], None),
        ([UPDATE, APPLY], None),
    ],
    ids=["written", "cleared already", "applied on the server's side"],
)
def test_a_write_clears_owners_unless_one_applies_on_the_servers_side(
    managers: list[Any], carried: list[Any] | None
) -> None:
    metadata = {"name": "n", "uid": "u", "resourceVersion": "1", "managedFields": managers}
    view = AssignmentView.decode({"metadata": metadata})
    assert view.metadata.get("managedFields") == carried
