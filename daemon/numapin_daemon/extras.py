"""Says which extra of numapin to install when a package of it is missing."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def needs_extra(program: str, extra: str, packages: Mapping[str, str]) -> Iterator[None]:
    """Run imports that need an extra; `pip install numapin` installs none.

    Any other import error is raised unchanged: it is a defect, and its traceback is needed.

    Args:
        program: its name for the user.
        extra: such as `operator`, for `numapin[operator]`.
        packages: the extra's packages by the names that are imported.

    Raises:
        SystemExit: one of the packages is not installed (1); what to install is the message.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = packages.get(error.name or "")
        if package is None:
            raise
        remedy = f"pip install 'numapin[{extra}]'"
        raise SystemExit(f"{program}: needs {package}: {remedy}") from error
