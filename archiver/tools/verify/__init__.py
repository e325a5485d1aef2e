"""`verify`: an archive read back, and every fault in it named, with its place and a stable code word.

Whatever the files hold, it ends with a report: broken archives and those of other tools are what it is for. It
streams, and its memory depends neither on the size of records nor on their number.
"""

from archiver.tools.verify.collection import verify
from archiver.tools.verify.findings import (
    CODES,
    Code,
    Fault,
    FileRead,
    Findings,
    Severity,
    VerifyProgress,
    VerifyReport,
    joined,
)

__all__ = [
    "CODES",
    "Code",
    "Fault",
    "FileRead",
    "Findings",
    "Severity",
    "VerifyProgress",
    "VerifyReport",
    "joined",
    "verify",
]
