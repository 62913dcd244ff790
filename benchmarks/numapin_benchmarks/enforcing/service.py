"""A small service for a container: 1 ms of work every 5 ms; it needs only Python.

Prints a line for each fifth of a second: its end (seconds of the monotonic clock), and for each
request in it the milliseconds from its due time to the end of its work. The time includes waiting
for an earlier request that is late.
"""

import time

PERIOD_SECONDS, WORK_SECONDS, WINDOW_SECONDS = 0.005, 0.001, 0.2


def serve() -> None:
    """Work until killed."""
    due = printed = time.monotonic()
    answered: list[str] = []
    while True:
        due += PERIOD_SECONDS
        time.sleep(max(0.0, due - time.monotonic()))
        enough = time.thread_time() + WORK_SECONDS
        while time.thread_time() < enough:
            pass
        now = time.monotonic()
        answered.append(f"{(now - due) * 1000:.2f}")
        if now - printed >= WINDOW_SECONDS:
            print(f"{now:.4f}", *answered, flush=True)
            printed, answered = now, []


serve()
