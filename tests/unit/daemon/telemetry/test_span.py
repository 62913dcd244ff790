"""The ids of a trace, which two processes must compute alike."""

from hypothesis import given
from hypothesis import strategies as st

from numapin_daemon.telemetry.span import root_span_id, trace_id, trace_id_text


def test_the_ids_of_a_pod_never_change() -> None:
    """Operator and enforcer may be of two releases, whose spans must be in one trace."""
    uid = "8f1d5b4e-3c0b-4a53-9d2f-0c6a7a5e1b11"
    assert trace_id_text(uid) == "a537fcc736f4dd165be5f3b96bc9fd02"
    assert f"{root_span_id(uid):016x}" == "a2be1043743b8804"


@given(st.text())
def test_ids_are_valid_in_opentelemetry(subject: str) -> None:
    assert 0 < trace_id(subject) < 1 << 128
    assert 0 < root_span_id(subject) < 1 << 64
    assert int(trace_id_text(subject), 16) == trace_id(subject)
    assert len(trace_id_text(subject)) == 32
