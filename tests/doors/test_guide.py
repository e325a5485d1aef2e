"""The newcomer's pages: every command in them does what they say, in the order of reading, in one folder."""

from pathlib import Path

import pytest

from fixtures import guide


@pytest.mark.replay
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_every_command_works(tmp_path: Path) -> None:
    site = guide.ExampleSite()
    with site.server:
        reader = guide.Reader(tmp_path, site)
        steps = list(guide.steps())
        assert {step.page for step in steps} == {path.name for path in guide.GUIDE.glob("[0-9]*.md")}
        for step in steps:
            code, said = reader.types(step)
            assert code == step.code, f"{step.page}: {step.line}\n{said}"
            assert "Traceback" not in said or step.code < 0, f"{step.page}: {step.line}\n{said}"
        assert b"newer" in (tmp_path / "newest.html").read_bytes()
        assert b"newer" not in (tmp_path / "first.html").read_bytes()


def test_what_is_told_to_a_reader_is_understood() -> None:
    known = {
        *("", "exits with 5", "the site has changed", "Ctrl+C in the middle, exits with 4"),
        *("Ctrl+C once it serves", "Ctrl+C once it serves, exits with -2"),
    }
    assert {step.note for step in guide.steps()} == known
