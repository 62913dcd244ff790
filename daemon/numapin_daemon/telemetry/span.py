"""A step on the way of one thing, as a part of a trace that several processes write. Does no I/O.

The ids of a trace and of its first span follow from what the trace is about, such as a pod's UID.
So no process sends them to another one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256


@dataclass(frozen=True, slots=True)
class Span:
    """One span, which has ended.

    Attributes:
        name: what was done.
        subject: what the trace is about; spans of one subject are in one trace.
        begin_ns: when it began, in nanoseconds since 1970; `end_ns`: when it ended.
        attributes: what is known besides, by the semantic conventions' names where there are any.
        is_root: whether it is the span that contains all others of its trace.
    """

    name: str
    subject: str
    begin_ns: int
    end_ns: int
    attributes: Mapping[str, str | int] = field(default_factory=dict)
    is_root: bool = False


SpanSink = Callable[[Span], object]
"""Takes spans; returns at once and does not raise."""


def trace_id(subject: str) -> int:
    """The id of the trace about a subject: 128 bits, not 0.

    Not the UID itself: samplers that keep a part of all traces need random bits.
    """
    return int.from_bytes(sha256(subject.encode()).digest()[:16]) or 1


def trace_id_text(subject: str) -> str:
    """The same as 32 hexadecimal digits, as in logs."""
    return f"{trace_id(subject):032x}"


def root_span_id(subject: str) -> int:
    """The id of the trace's first span: 64 bits, not 0."""
    return int.from_bytes(sha256(subject.encode()).digest()[16:24]) or 1
