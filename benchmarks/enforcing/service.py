"""A small service, for the victim's container: 1 ms of work every 5 ms, needing nothing but Python.

Prints a line for each fifth of a second: when it ended (seconds of the monotonic clock), and for
each request in it the milliseconds from the moment it was due to the end of its work. A request
that comes while another is late waits its turn, and that counts.
"""

import time

PERIOD_SECONDS, WORK_SECONDS, WINDOW_SECONDS = 0.005, 0.001, 0.2


def serve() -> None:
    """Work until killed."""
    due = told = time.monotonic()
    answered: list[str] = []
    while True:
        due += PERIOD_SECONDS
        time.sleep(max(0.0, due - time.monotonic()))
        enough = time.thread_time() + WORK_SECONDS
        while time.thread_time() < enough:
            pass
        now = time.monotonic()
        answered.append(f"{(now - due) * 1000:.2f}")
        if now - told >= WINDOW_SECONDS:
            print(f"{now:.4f}", *answered, flush=True)
            told, answered = now, []


serve()
