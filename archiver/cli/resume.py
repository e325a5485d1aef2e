"""`archiver resume`: continue a crawl."""

from pathlib import Path
from typing import Any

from archiver.cli.options import crawl_options, define_command, directory_argument, given_settings, verbosity


def _run(directory: Path, **rest: Any) -> int:
    from archiver.cli.start import resume

    return resume(directory, given_settings(rest), verbosity(rest))


COMMAND = define_command(
    "resume",
    _run,
    """Continue a crawl after Ctrl+C, a crash or a limit.

    The settings are those of DIR/crawl.toml. Options override them and are written back.
    """,
    [directory_argument(), *crawl_options()],
    ("archiver resume collections/example.org", "continue"),
    ("archiver resume collections/example.org --max-urls 100000 --rate 10", "continue with other settings"),
)
