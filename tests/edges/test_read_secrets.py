"""Values of secrets, read from real files, the environment and a keyring: what comes back and what is refused."""

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from archiver.config.secrets import secret_source
from archiver.crawl import secrets
from archiver.errors import ConfigError


def read(text: str) -> str:
    source = secret_source(text)
    found = secrets._read((source,))
    assert found[source] not in repr(found)
    return found[source]


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as refused:
        read(text)
    assert "hunter2" not in str(refused.value)
    return str(refused.value)


def private(path: Path, data: bytes) -> str:
    path.touch(0o600)
    path.write_bytes(data)
    return f"file:{path}"


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_PASSWORD", "hunter2 ö")
    assert read("env:SITE_PASSWORD") == "hunter2 ö"
    monkeypatch.setenv("SITE_PASSWORD", "")
    assert refusal("env:SITE_PASSWORD") == "env:SITE_PASSWORD is empty; put the secret there"
    monkeypatch.setenv("SITE_PASSWORD", "hunter2\r\nX-Evil: 1")
    assert "control characters" in refusal("env:SITE_PASSWORD")
    monkeypatch.delenv("SITE_PASSWORD")
    assert "SITE_PASSWORD is not set" in refusal("env:SITE_PASSWORD")


@pytest.mark.parametrize("data", [b"hunter2", b"hunter2\n", b"hunter2\r\n", b"hunter2\nsecond line\n"])
def test_the_first_line_of_a_file(tmp_path: Path, data: bytes) -> None:
    assert read(private(tmp_path / "secret", data)) == "hunter2"


def test_a_path_below_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    private(tmp_path / "secret", b"hunter2\n")
    assert read("file:~/secret") == "hunter2"


@pytest.mark.skipif(os.name != "posix", reason="needs file modes")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    source = private(tmp_path / "secret", b"hunter2")
    (tmp_path / "secret").chmod(mode)
    assert refusal(source) == f"{source}: others may read this file; run chmod 600 {tmp_path}/secret"


def test_files_that_hold_no_secret(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refusal(f"file:{tmp_path}/none")
    assert "is empty" in refusal(private(tmp_path / "empty", b"\nhunter2"))
    assert "not UTF-8" in refusal(private(tmp_path / "binary", b"hunter2\xff\n"))
    assert "cannot be read" in refusal(f"file:{tmp_path}")


def test_the_keyring() -> None:
    """With a real keyring package and a keyring that lives in memory."""
    keyring: Any = pytest.importorskip("keyring")
    backend: Any = pytest.importorskip("keyring.backend")
    kept = {("wiki", "me/too"): "hunter2"}
    unused = dict.fromkeys(("set_password", "delete_password"))
    methods = {"priority": 1, "get_password": lambda _self, service, user: kept.get((service, user)), **unused}
    in_memory = type("InMemory", (backend.KeyringBackend,), methods)
    before = keyring.get_keyring()
    keyring.set_keyring(in_memory())
    try:
        assert read("keyring:wiki/me/too") == "hunter2"
        assert "run keyring set wiki you" in refusal("keyring:wiki/you")
    finally:
        keyring.set_keyring(before)


def test_without_the_keyring_package_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    none: ModuleType | None = None
    monkeypatch.setitem(sys.modules, "keyring", none)
    assert "pip install 'warchiver[keyring]'" in refusal("keyring:wiki/me")
