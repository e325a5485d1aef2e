"""What `verify` found, as values: findings, what was read, and how far the reading is."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from archiver.verify.codes import CODES, Severity

MAX_EACH = 100  # findings kept of one code in one file: one broken tool makes the same mistake in each of 10^6 records


@dataclass(frozen=True, slots=True)
class Fault:
    """One finding: where, what kind, and a sentence for a person."""

    file: str
    code: str
    sentence: str
    offset: int | None = None  # of the record or line in its file
    record: str = ""  # the record's type
    url: str = ""

    @property
    def severity(self) -> Severity:
        """How grave it is: a property of its code."""
        return CODES[self.code].severity

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"severity": self.severity.value, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the reading is."""

    bytes_done: int
    bytes_total: int
    files_done: int
    files_total: int


@dataclass(frozen=True, slots=True)
class FileRead:
    """One file that was read."""

    file: str
    size: int
    records: int


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome. `faults` keeps a sample of each code for each file; `counts` counts them all."""

    files: tuple[FileRead, ...]
    faults: tuple[Fault, ...]
    counts: Mapping[str, int]

    @property
    def ok(self) -> bool:
        """Whether there is no fault; warnings and notes do not count."""
        return not self.count(Severity.FAULT)

    def count(self, severity: Severity) -> int:
        """How many findings there are of this severity, those not kept included."""
        return sum(number for code, number in self.counts.items() if CODES[code].severity is severity)

    def as_json(self) -> dict[str, Any]:
        """All of it, ready for `json.dumps`."""
        return {
            "ok": self.ok,
            "records": sum(read.records for read in self.files),
            "bytes": sum(read.size for read in self.files),
            "files": [asdict(read) for read in self.files],
            "findings": {severity.value: self.count(severity) for severity in Severity},
            "counts": dict(self.counts),
            "faults": [fault.as_dict() for fault in self.faults],
        }


@dataclass(slots=True)
class Findings:
    """Where findings are gathered: bounded, whatever is wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    kept: list[Fault] = field(default_factory=list)
    _each: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, fault: Fault) -> None:
        """Count *fault*, and keep it unless there are many like it."""
        self.counts[fault.code] += 1
        self._keep(fault)

    def merge(self, counts: Mapping[str, int], kept: Iterable[Fault]) -> None:
        """Take over what was gathered elsewhere."""
        self.counts.update(counts)
        for fault in kept:
            self._keep(fault)

    def _keep(self, fault: Fault) -> None:
        self._each[fault.file, fault.code] += 1
        if self._each[fault.file, fault.code] <= MAX_EACH:
            self.kept.append(fault)


def joined(reports: Iterable[Report]) -> Report:
    """Several reports as one."""
    every = list(reports)
    counts: Counter[str] = Counter()
    for report in every:
        counts.update(report.counts)
    return Report(
        tuple(read for report in every for read in report.files),
        tuple(fault for report in every for fault in report.faults),
        dict(counts),
    )
