"""A small service: some work every 50 ms. Prints, in milliseconds, how late each answer is.

Each line is the monotonic time in seconds, and the time from when the work was due to its end.
"""

import time

PERIOD_SECONDS, ROUNDS = 0.05, 2000


def serve() -> None:
    """Work until killed."""
    due = time.monotonic()
    while True:
        due += PERIOD_SECONDS
        time.sleep(max(0.0, due - time.monotonic()))
        sum(range(ROUNDS))
        now = time.monotonic()
        print(f"{now:.4f} {(now - due) * 1000:.2f}", flush=True)


if __name__ == "__main__":
    serve()
