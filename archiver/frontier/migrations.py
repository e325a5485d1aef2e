"""The schema's history: a list of steps, each in its own transaction, so that a crash between two is harmless."""

from importlib.resources import files

APPLICATION_ID = 0x41524348  # "ARCH": tells our database from any other SQLite file

STEPS: tuple[str, ...] = ("schema.sql", "files.sql", "politeness.sql", "scale.sql", "revisits.sql", "verdict.sql")
VERSION = len(STEPS)


def script(version: int) -> str:
    """The SQL that brings a database from *version* - 1 to *version*, in one transaction."""
    body = files("archiver.frontier").joinpath(STEPS[version - 1]).read_text("utf-8")
    marks = f"PRAGMA application_id = {APPLICATION_ID};\nPRAGMA user_version = {version};"
    return f"BEGIN IMMEDIATE;\n{body}\n{marks}\nCOMMIT;"
