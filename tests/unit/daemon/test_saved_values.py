"""What is saved of a node is read again, and a damaged file gives nothing and says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from numapin_daemon import saved_values

DAMAGED = "cannot read it"


def parsed(content: Any) -> dict[str, int]:
    return {name: int(one) for name, one in content["values"].items()}


def read(path: Path) -> dict[str, int]:
    return saved_values.read(path, parsed, most_bytes=1000, damaged=DAMAGED)


def test_what_was_saved_is_read_again_and_the_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "state" / "file.json"
    assert read(path) == {}
    saved_values.save(path, {"values": {"a": 1}})
    assert read(path) == {"a": 1}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", "{}", '{"values": 3}', '{"values": {"a": "x"}}', "[" * 900, "1" * 1001],
    ids=range(9),
)
def test_a_damaged_file_gives_nothing_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    assert read(path) == {}
    (line,) = caplog.records
    assert (line.msg, vars(line)["file"]) == (DAMAGED, path)
    assert path.read_text() == text


def test_a_folder_in_its_place_is_no_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert read(tmp_path) == {}
    assert DAMAGED in caplog.text


def test_what_json_has_no_form_for_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    saved_values.save(path, {"values": {"a": 1}})
    with pytest.raises(TypeError):
        saved_values.save(path, {"values": {1, 2}})
    assert json.loads(path.read_text()) == {"values": {"a": 1}}
