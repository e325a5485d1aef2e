"""Temporary folders: the next command removes those of killed processes, and says in one line if none can be made."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from archiver.model import ExitCode
from archiver.storage.temporary import temporary_folder
from fixtures.command import archiver, ended, environment, running
from fixtures.packages import collection, response

HOLD = """
import sys
from archiver.storage.temporary import temporary_folder
with temporary_folder(sys.argv[1]) as folder:
    (folder / "part").mkdir()
    (folder / "part" / "large").write_bytes(b"x" * 5000)
    (folder / "link").symlink_to(sys.argv[2])
    print(folder, flush=True)
    sys.stdin.read()
"""


@contextmanager
def holding(purpose: str, elsewhere: Path) -> Iterator[tuple[Path, "subprocess.Popen[str]"]]:
    """Yield the temporary folder of another process, with a link to *elsewhere* in it, and the process."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, purpose, str(elsewhere)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        try:
            yield Path(process.stdout.readline().rstrip("\n")), process
        finally:
            process.kill()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files of the processes that the test starts."""
    found = tmp_path / "tmp"
    found.mkdir()
    monkeypatch.setenv("TMPDIR", str(found))
    return found


def verified(folder: Path) -> None:
    """Verify the collection in *folder*. A new interpreter reads TMPDIR, which a fork does not."""
    with running("verify", "c", cwd=folder) as process:
        assert ended(process) == (ExitCode.FAULTS, "")


@pytest.mark.parametrize("purpose", ["verify", "view", "look", "replay", "adopt", "browser"])
def test_the_next_command_removes_what_a_killed_process_left(tmp_path: Path, place: Path, purpose: str) -> None:
    """Whatever it was for. The folders of living processes stay, and so do those of other programs."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    (place / "archiver-of-another-program").mkdir()
    collection(tmp_path / "c", [response("http://example.org/", b"a page")])
    with holding(purpose, elsewhere) as (living, _), holding(purpose, elsewhere) as (left, killed):
        killed.kill()
        killed.wait(timeout=300)
        assert (left / "part/large").exists()
        verified(tmp_path)
        assert sorted(place.iterdir()) == sorted((living, place / "archiver-of-another-program"))
        assert (living / "part/large").exists()
    assert (elsewhere / "kept").exists()


def test_a_removal_that_is_killed_is_finished_by_the_next(tmp_path: Path, place: Path) -> None:
    """The lock file goes last, so a folder without it contains nothing."""
    collection(tmp_path / "c", [response("http://example.org/", b"a page")])
    with holding("verify", tmp_path) as (left, killed):
        killed.kill()
        killed.wait(timeout=300)
    (left / "link").unlink()
    (left / "part/large").unlink()
    verified(tmp_path)
    assert list(place.iterdir()) == []


def test_a_folder_goes_with_its_content(tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    with temporary_folder("view") as folder:
        (folder / "part").mkdir()
        (folder / "part/file").touch()
        (folder / "link").symlink_to(tmp_path)
    assert not folder.exists()
    assert (tmp_path / "kept").exists()


NOT_WRITABLE = ("bash", "-c", 'ulimit -f 0; exec "$@"', "bash")  # as on a machine whose disks are all read-only


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such limit")
@pytest.mark.parametrize(
    "arguments", [("verify", "c"), ("verify", "c.wacz"), ("ls", "c.wacz"), ("export", "c.wacz", "--to", "pages")]
)
def test_no_folder_is_writable(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    collection(tmp_path / "c", [response("http://example.org/", b"a page")])
    assert archiver("pack", "c", cwd=tmp_path).returncode == ExitCode.DONE
    with running(*arguments, cwd=tmp_path, before=NOT_WRITABLE) as process:
        code, err = ended(process)
    assert code == ExitCode.STORAGE
    assert err == (
        "archiver: no folder for temporary files is writable, neither that of TMPDIR nor /tmp, /var/tmp or the "
        "current directory; set TMPDIR to one with free space\n"
    )
