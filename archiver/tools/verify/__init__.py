"""`verify`: read an archive back and name every fault, with its place and a stable code.

It reports whatever the files contain, including broken archives and those of other tools. It streams: memory depends
neither on the size nor on the number of records.
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
    merge_reports,
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
    "merge_reports",
    "verify",
]
