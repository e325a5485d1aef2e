"""`verify`: an archive read back, and every fault in it named, with its place and a stable code word.

Whatever the files hold, it ends with a report: broken archives and those of other tools are what it is for. It
streams, and its memory depends neither on the size of records nor on their number.
"""

from archiver.verify.codes import CODES, Code, Severity
from archiver.verify.reading import run
from archiver.verify.report import Fault, FileRead, Findings, Progress, Report, joined

__all__ = ["CODES", "Code", "Fault", "FileRead", "Findings", "Progress", "Report", "Severity", "joined", "run"]
