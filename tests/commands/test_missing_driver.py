"""A crawl in PostgreSQL where its driver, psycopg, is missing or finds no libpq: one line says what to install."""

import subprocess
from pathlib import Path

import pytest

from archiver.frontier.address import write_address
from archiver.model import ExitCode
from fixtures.command import COMMAND, ROOT, environment

ADDRESS = "postgresql://crawl@127.0.0.1:1/crawl"
FAULTS = {
    "missing": ("raise ModuleNotFoundError(\"No module named 'psycopg'\")\n", "pip install 'warchiver[postgres]'"),
    "without libpq": ("raise ImportError('no pq wrapper available.')\n", "pip install 'psycopg[binary]'"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "words",
    [
        ("crawl", "http://127.0.0.1:1/", "--frontier", ADDRESS),
        ("join", ADDRESS),
        ("resume", "c"),
        ("status", "c"),
        ("status", ADDRESS),
        ("add", "c", "http://127.0.0.1:1/x"),
    ],
    ids=" ".join,
)
def test_one_line_says_what_to_install(tmp_path: Path, fault: str, words: tuple[str, ...]) -> None:
    source, cure = FAULTS[fault]
    (tmp_path / "first" / "psycopg").mkdir(parents=True)
    (tmp_path / "first" / "psycopg" / "__init__.py").write_text(source)
    (tmp_path / "c" / "archive").mkdir(parents=True)
    (tmp_path / "c" / "crawl.toml").write_text(f'seeds = ["http://127.0.0.1:1/"]\nfrontier = "{ADDRESS}"\n')
    write_address(tmp_path / "c" / "crawl.db", ADDRESS)
    ran = subprocess.run(
        [*COMMAND, *words],
        cwd=tmp_path,
        env={**environment(), "PYTHONPATH": f"{tmp_path / 'first'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (ExitCode.USAGE, "")
    assert cure in ran.stderr.splitlines()[-1]
    assert "Traceback" not in ran.stderr
