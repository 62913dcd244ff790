"""kopf without the `kubernetes` package, which it imports for types that we never hand it."""

import sys

_kept = sys.modules.get("kubernetes")
sys.modules["kubernetes"] = None  # type: ignore[assignment]  # makes the import fail: saves 15 MiB
try:
    import kopf
finally:
    if _kept is None:
        del sys.modules["kubernetes"]
    else:
        sys.modules["kubernetes"] = _kept

__all__ = ["kopf"]
