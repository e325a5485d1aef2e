"""What the loaders of applications ask for: JupyterLite, Flutter, Blazor, Unity and Godot. Pure.

A page of JupyterLite states how far the root of the site is above it. Each folder up to there may have a configuration;
that of the root names the first page, the extensions and the settings. A list for each folder names the notebooks and
files.

Flutter's service worker lists all files, its manifests the fonts and assets. Blazor's `blazor.boot.json` lists the
assemblies in its folder. Pages of Unity and Godot state the program and its data. All are guesses. Linear; data in any
other form names nothing.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any
from urllib.parse import quote

from archiver.config.expressions import compiled

ROOT = "data-jupyter-lite-root"
CONFIGURATION = "/jupyter-lite.json"
CONTENTS, LIST = "/api/contents/", "/all.json"
_STEPS = {"/".join([".."] * number) or ".": number for number in range(9)}
_SETTINGS = ("all", "all_federated")
_MOST = 20_000  # files of one folder or list

_FLUTTER = "_flutter.loader", "flutter_service_worker.js"
_OF_FLUTTER = ("flutter_service_worker.js", "assets/FontManifest.json", "assets/AssetManifest.bin.json")
_STARTED = compiled(r"\"(?:mainJsPath|mainWasmPath|jsSupportRuntimePath)\"\s*+:\s*+\"([\w./-]{1,200})\"")
_FILES = compiled(r"\bRESOURCES\s*+=\s*+(?=\{)")
_MANIFESTS = ("/assets/FontManifest.json", "/assets/AssetManifest.json", "/assets/AssetManifest.bin.json")
_STRING = re.compile(rb"\x07([\x01-\xfd])")  # and its length, in Flutter's StandardMessageCodec
_BOOT = "/_framework/blazor.boot.json"
_DATA = (CONFIGURATION, *_MANIFESTS, _BOOT)

_UNITY = compiled(
    r"\b(?:data|framework|code|memory|symbols)Url\s*+[:=]\s*+(?:([\w$]{1,40}+)\s*+\+\s*+)?+"
    r"[\"'`]([^\"'`\\\s<>{}]{1,300})[\"'`]"
)
_ASSIGNED = compiled(r"(?<![\w$.])([\w$]{1,40}+)\s*+=\s*+[\"'`]([^\"'`\\\s<>]{0,300})[\"'`]")
_OLD_UNITY = compiled(r"\"\w{1,40}Url\"\s*+:\s*+\"([^\"\\\s:<>]{1,300}\.unityweb)\"")
_GODOT = compiled(r"\"executable\"\s*+:\s*+\"([^\"\\<>]{1,200})\"")
_SIZES = compiled(r"\"fileSizes\"\s*+:\s*+\{([^{}]{0,10000})\}")
_SIZE = compiled(r"\"([^\"\\<>]{1,200}+)\"\s*+:")
_WORKLETS = ("audio.worklet.js", "audio.position.worklet.js")


def page_files(attributes: Mapping[str, str]) -> Iterator[str]:
    """Yield the configurations that a page with this root in *attributes* reads."""
    steps = _STEPS.get(attributes[ROOT].strip().rstrip("/") or ".", -1)
    for step in range(steps + 1):
        yield from (f"{'../' * step}jupyter-lite.{ending}" for ending in ("json", "ipynb"))


def of_page(text: str) -> Iterator[str]:
    """Yield what the script *text* in a page starts, relative to the page."""
    yield from of_script(text)
    if "frameworkUrl" in text:
        values = dict(_ASSIGNED.findall(text))
        yield from (values.get(folder, "") + name for folder, name in _UNITY.findall(text))
    if '"executable"' in text and (program := _GODOT.search(text)) and (sizes := _SIZES.search(text)):
        yield from _SIZE.findall(sizes[1])
        yield from (f"{program[1]}.{name}" for name in _WORKLETS)


def of_script(text: str) -> Iterator[str]:
    """Yield what the *text* of a script or data starts or lists, relative to it."""
    if any(mark in text for mark in _FLUTTER):
        yield from _STARTED.findall(text) or ("main.dart.js",)
        yield from _OF_FLUTTER
    if "flutter-app-cache" in text and (found := _FILES.search(text)):
        yield from (
            quote(name, safe="/%", errors="replace") for name in _keys(json_at(text, found.end())) if name != "/"
        )
    if 'blazor.boot.json"' in text:
        yield "blazor.boot.json"
    if ".unityweb" in text:
        yield from _OLD_UNITY.findall(text)


def is_data(path: str) -> bool:
    """True if *path*, or the URL with it, is that of a configuration or a list."""
    return path.endswith(_DATA) or (path.endswith(LIST) and CONTENTS in path)


def of_data(body: bytes, path: str) -> Iterator[str]:
    """Yield what the configuration or list at *path* names, relative to it."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return
    if path.endswith(_MANIFESTS):
        yield from (quote(quote(name, errors="replace")) for name in islice(_assets(data), _MOST))
    elif path.endswith(_BOOT):
        yield from islice(_assemblies(data), _MOST) if isinstance(data, dict) else ()
    elif isinstance(data, dict) and path.endswith(CONFIGURATION):
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


def json_at(text: str, start: int) -> object:
    """Return the JSON value in *text* from *start* on; None if it is damaged."""
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _keys(value: object) -> list[str]:
    return list(value)[:_MOST] if isinstance(value, dict) else []


def _assets(data: object) -> Iterator[str]:
    """Yield the files in a manifest of Flutter: of fonts, of assets, or of assets in a binary form."""
    if isinstance(data, str):
        try:
            written = base64.b64decode(data)
        except ValueError:
            return
        strings = (written[found.end() : found.end() + found[1][0]] for found in _STRING.finditer(written))
        yield from (name for name in (each.decode("utf-8", "replace") for each in strings) if "." in name)
    elif isinstance(data, dict):
        yield from data
    elif isinstance(data, list):
        families = [family.get("fonts") for family in data if isinstance(family, dict)]
        fonts = chain.from_iterable(family for family in families if isinstance(family, list))
        named = (font.get("asset") for font in fonts if isinstance(font, dict))
        yield from (name for name in named if isinstance(name, str))


def _assemblies(boot: dict[str, Any]) -> Iterator[str]:
    """Yield the files that .NET loads, up to version 8; those of languages may be in a folder of their own."""
    resources = boot.get("resources")
    groups = resources.items() if isinstance(resources, dict) else ()
    for name, value in chain.from_iterable(group.items() for kind, group in groups if _is_listed(kind, group)):
        if isinstance(value, dict):
            yield from (each if each.startswith(f"{name}/") else f"{name}/{each}" for each in value)
        else:
            yield f"../{name}" if name.startswith("_content/") else name
    settings = boot.get("appsettings") or boot.get("config")
    for name in settings if isinstance(settings, list) else ():
        if isinstance(name, str):
            yield name if name.startswith("../") else f"../{name}"


def _is_listed(kind: str, group: object) -> bool:
    return isinstance(group, dict) and kind != "fingerprinting"
