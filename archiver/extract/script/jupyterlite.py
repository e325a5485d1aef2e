"""Files of a JupyterLite site, which runs notebooks in the browser: its scripts read JSON to find them. Pure.

A page states how far the root of the site is above it. Each folder up to there may have a configuration; that of the
root names the first page, the extensions and the settings. A list for each folder names the notebooks and files. All
are guesses. Linear; data in any other form names nothing.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote

ROOT = "data-jupyter-lite-root"
CONFIGURATION = "/jupyter-lite.json"
CONTENTS, LIST = "/api/contents/", "/all.json"
_STEPS = {"/".join([".."] * number) or ".": number for number in range(9)}
_SETTINGS = ("all", "all_federated")
_MOST = 20_000  # files of one folder


def page_files(attributes: Mapping[str, str]) -> Iterator[str]:
    """Yield the configurations that a page with this root in *attributes* reads."""
    steps = _STEPS.get(attributes[ROOT].strip().rstrip("/") or ".", -1)
    for step in range(steps + 1):
        yield from (f"{'../' * step}jupyter-lite.{ending}" for ending in ("json", "ipynb"))


def is_data(path: str) -> bool:
    """True if *path* is that of a configuration or a list."""
    return path.endswith(CONFIGURATION) or (path.endswith(LIST) and CONTENTS in path)


def of_data(body: bytes, path: str) -> Iterator[str]:
    """Yield what the configuration or list at *path* names, relative to it."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return
    if isinstance(data, dict) and path.endswith(CONFIGURATION):
        config = data.get("jupyter-config-data")
        yield from _of_configuration(config, path) if isinstance(config, dict) else ()
    elif isinstance(data, dict):
        content = data.get("content")
        yield from _of_list(content, path.rpartition(CONTENTS)[0]) if isinstance(content, list) else ()


def _of_configuration(config: dict[str, Any], path: str) -> Iterator[str]:
    yield from (f"{folder}/index.html" for folder in _below(config.get("appUrl")))
    yield from (f"{folder}/{name}.json" for folder in _below(config.get("settingsUrl")) for name in _SETTINGS)
    yield from _below(config.get("faviconUrl"))
    listed = config.get("federated_extensions")
    for folder in _below(config.get("fullLabextensionsUrl")):
        for extension in islice(listed, _MOST) if isinstance(listed, list) else ():
            if isinstance(extension, dict) and (loaded := [*_below(extension.get("load"))]):
                yield f"{folder}/{extension.get('name')}/{loaded[0]}"
    if "baseUrl" in config:  # only that of the root has it
        yield from (f"api/{name}.json" for name in ("contents/all", "translations/all", "translations/en"))
    own = config.get("appUrl")
    if isinstance(own, str) and own.startswith("/") and path.endswith(own + CONFIGURATION):
        root = path.removesuffix(own + CONFIGURATION)
        for folder in _below(config.get("themesUrl")):
            yield from (f"{root}/{folder}/@jupyterlab/theme-{name}-extension/index.css" for name in ("light", "dark"))


def _below(value: object) -> Iterator[str]:
    """Yield *value* if it is a relative path: others are joined to a base that only scripts know."""
    if isinstance(value, str) and value and ":" not in value and not value.startswith("/"):
        yield value.rstrip("/")


def _of_list(content: list[object], root: str) -> Iterator[str]:
    for entry in islice(content, _MOST):
        path = entry.get("path") if isinstance(entry, dict) else None
        if isinstance(path, str) and path:
            name = quote(path, errors="replace")
            folder = isinstance(entry, dict) and entry.get("type") == "directory"
            yield f"{root}{CONTENTS}{name}{LIST}" if folder else f"{root}/files/{name}"
