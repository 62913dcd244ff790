"""Texts of others, without what a terminal would obey. Does no I/O."""


def printable(text: str) -> str:
    """The text on one line: anybody may write into an object what a terminal would obey."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
