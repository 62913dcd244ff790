"""What can go wrong in the lab, each with the command that mends it."""


class LabError(Exception):
    """The lab cannot go on; the message says why and what to do about it."""


class MissingError(LabError):
    """Something the lab needs of this machine is not there."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}\n  mend it with: {remedy}")
        self.what, self.remedy = what, remedy
