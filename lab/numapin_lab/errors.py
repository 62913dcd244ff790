"""Errors of the lab, each with the command that fixes it."""


class LabError(Exception):
    """The lab cannot continue; the message says why and what to do."""


class MissingError(LabError):
    """Something that the lab needs is missing on this machine."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}\n  fix it with: {remedy}")
        self.what, self.remedy = what, remedy
