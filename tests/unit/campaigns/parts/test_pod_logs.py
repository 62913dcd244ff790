"""What the kubelet writes of numapin's pods, as lines of their logs."""

import json
from pathlib import Path

from numapin_api.names import NAMESPACE
from numapin_campaigns.parts.logs import parse
from numapin_campaigns.parts.pod_logs import KeptLogs, PodLog, plain

AT = "2026-11-24T22:00:00.000+00:00"


def entry(text: str, **fields: object) -> str:
    return json.dumps({"time": AT, "level": "warning", "logger": "a.b", "text": text} | fields)


def of_kubelet(text: str, tag: str = "F") -> str:
    return f"2026-11-24T22:00:00.123456789Z stderr {tag} {text}\n"


def test_json_becomes_the_same_line_as_from_a_program_in_text() -> None:
    (line,) = plain([of_kubelet(entry("the cat is away", generation=7)).strip()])
    assert line == f"{AT} WARNING a.b: the cat is away generation=7"
    trace = "Traceback (most recent call last):\n  File x"
    assert list(plain([of_kubelet(entry("failed", traceback=trace)).strip()])) == [
        f"{AT} WARNING a.b: failed",
        *trace.splitlines(),
    ]


def test_a_long_line_comes_in_parts_and_other_text_stays() -> None:
    text = entry("a cat")
    parts = [of_kubelet(text[:20], "P").strip("\n"), of_kubelet(text[20:]).strip("\n")]
    assert list(plain(parts)) == [f"{AT} WARNING a.b: a cat"]
    assert list(plain([of_kubelet("Killed").strip()])) == ["Killed"]
    assert [one.level for one in parse(plain(parts))] == ["WARNING"]


def test_lines_of_containers_whose_files_the_kubelet_has_deleted_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / f"{NAMESPACE}_numapin-enforcer-x_uid" / "enforcer"
    folder.mkdir(parents=True)
    first = folder / "0.log"
    first.write_text(of_kubelet(entry("before")))
    kept = KeptLogs(tmp_path, "enforcer")
    kept.look()
    log = PodLog(kept, kept.sizes())
    with first.open("a") as added:
        added.write(of_kubelet(entry("first")))
    (folder / "1.log").write_text(of_kubelet(entry("second")))
    kept.look()
    first.unlink()
    assert [line.text.partition(": ")[2] for line in log.lines()] == ["first", "second"]
    for file in kept.files.values():
        file.close()
