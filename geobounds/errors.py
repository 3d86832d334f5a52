"""The errors geobounds raises on purpose; each message is one clear line."""

__all__ = [
    "ArgumentError",
    "AssumptionError",
    "CertificateFormatError",
    "GeoboundsError",
    "HeadDataError",
]


class GeoboundsError(Exception):
    """Base class: catch this to catch every refusal of this library."""


class ArgumentError(GeoboundsError, ValueError):
    """An argument lies outside its range (N, a query, the name of a policy)."""


class HeadDataError(GeoboundsError, ValueError):
    """Arrays that cannot be one attention head: shape, sign, NaN, mask."""


class CertificateFormatError(GeoboundsError, ValueError):
    """A certificate file that does not have the documented form."""


class AssumptionError(GeoboundsError, ValueError):
    """A hypothesis of a statement fails for the head at hand.

    Parameters
    ----------
    message : str
        One line: what was required and what was found.
    statement : str
        Id of the statement, such as ``"T6"``.
    assumption : str
        The hypothesis that fails, in words.
    measured : object
        The value found.
    """

    def __init__(
        self, message: str, *, statement: str, assumption: str, measured: object
    ) -> None:
        super().__init__(message)
        self.statement = statement
        self.assumption = assumption
        self.measured = measured
