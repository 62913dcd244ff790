"""Log lines about a pod name its trace."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from numapin_daemon.logs.lines import POD_UID
from numapin_daemon.telemetry.span import trace_id_text


class TraceIds(logging.Filter):
    """Adds the field `trace_id` to each line that has `pod_uid`; lets every line through."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true."""
        if uid := getattr(record, POD_UID, ""):
            record.trace_id = trace_id_text(str(uid))
        return True


@contextmanager
def traced_logs() -> Iterator[None]:
    """Have the lines of this process name traces meanwhile."""
    handlers, ids = tuple(logging.getLogger().handlers), TraceIds()
    for handler in handlers:
        handler.addFilter(ids)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(ids)
