"""Files that a script loads from a folder that it set before: `loader.setPath("models/")`, then `loader.load("a.glb")`.

three.js' loaders and Phaser's have such folders. A loader is known by the name that the script calls it by; each call
uses the folder that was set last. Phaser's calls, `this.load.image("key", "a.png")`, need no folder; one without a file
loads the file named like the key. Decoders of three.js have programs in a folder: `setDecoderPath("draco/")`. Anything
else names nothing. All are guesses, relative to the page. Linear and bounded on any text.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice

from archiver.config.expressions import compiled

MOST = 2000  # calls of one script, and files
_NEAR = 200  # characters before a call that show its loader
_CALL = compiled(
    r"\.(?:(?P<set>setPath|setDecoderPath|setTranscoderPath)|load(?:\.(?P<kind>[a-z]\w{2,30}+)|Async)?)"
    r"\(\s{0,40}+(?P<given>[^(){};]{0,1000}+)"
)
_FOLDER = compiled(r"[\"'`]((?:https?:/)?[\w~@%+./:-]{0,300}+)[\"'`]\s*+(?:\)|\Z)")
_FILE = compiled(r"[\"'`]([\w~@%+-][\w~@%+./-]{0,300}+)(?<=[a-z0-9])[\"'`]", re.IGNORECASE)
_KEY = compiled(r"[\"'`]([\w-]{1,60}+)[\"'`]\s*+\Z")
_LOADER = re.compile(
    r"(?<![\w$])([A-Za-z_$][\w$]{0,40})(?:\s{0,4}=\s{0,4}new\s[\w$.]{1,60}(?:\([^()]{0,80}\))?)?\s{0,40}\Z"
)
_PHASER = "load"
_ENDINGS = {"image": "png", "json": "json", "audio": "", "svg": "svg", "xml": "xml", "text": "txt"}
_SETTINGS = frozenset(("setPath", "setBaseURL"))
_PROGRAMS = {
    "setDecoderPath": ("draco_wasm_wrapper.js", "draco_decoder.wasm"),
    "setTranscoderPath": ("basis_transcoder.js", "basis_transcoder.wasm"),
}


def urls(text: str, is_file: Callable[[str], bool]) -> Iterator[str]:
    """Yield the files that the script *text* loads; *is_file* tells if a string is the URL of a file."""
    if "setPath(" not in text and ".load." not in text and "setBaseURL(" not in text and "coderPath(" not in text:
        return
    yield from islice((name for name in _loaded(text) if is_file(name)), MOST)


def _loaded(text: str) -> Iterator[str]:
    folders, base = dict[str, str](), ""
    last, chained = 0, ""  # the end of the last `setPath` and its folder: `new Loader().setPath("a/").load("b.glb")`
    for call in islice(_CALL.finditer(text), MOST):
        if _is_example(text, call.start()):
            continue
        given = call["given"]
        setting = call["set"] or (call["kind"] if call["kind"] in _SETTINGS else None)
        if setting is None:
            direct = last and not text[last : call.start()].strip(" \t\r\n)")
            folder = chained if direct else folders.get(_PHASER if call["kind"] else _loader(text, call.start()), "")
            if call["kind"]:
                yield from (_joined(base, folder, name) for name in _of_phaser(call["kind"], given))
            elif folder:
                yield from (_joined("", folder, name) for name in _FILE.findall(given))
            continue
        if (stated := _FOLDER.match(given)) is None:
            continue
        folder = stated[1]
        if setting in _PROGRAMS:
            yield from (folder + name for name in _PROGRAMS[setting])
        elif setting == "setBaseURL":
            base = folder
        else:
            folders[_PHASER if call["kind"] else _loader(text, call.start())] = chained = folder
            last = call.end()


def _is_example(text: str, position: int) -> bool:
    """Return True if the line up to *position* is a comment: the libraries' own scripts have examples there."""
    return text[max(0, position - _NEAR) : position].rpartition("\n")[2].lstrip().startswith(("*", "//"))


def _loader(text: str, position: int) -> str:
    """Return the name of the loader whose method is called at *position*: what the name before it is, or becomes."""
    before = text[max(0, position - _NEAR) : position]
    found = _LOADER.search(before)
    return found[1] if found else ""


def _of_phaser(kind: str, given: str) -> Iterator[str]:
    """Yield the files in the arguments *given* to a call for a file of this *kind*, of which the first is the key."""
    if key := _KEY.match(given):
        if ending := _ENDINGS.get(kind):
            yield f"{key[1]}.{ending}"
        return
    yield from _FILE.findall(given.partition(",")[2])


def _joined(base: str, folder: str, name: str) -> str:
    if folder and not folder.endswith("/"):
        folder += "/"
    return f"{base.rstrip('/')}/{folder.lstrip('/')}{name}" if base else folder + name
