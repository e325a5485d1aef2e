"""Flows in JSON, as Chrome's recorder exports them, given with `--behavior`."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archiver.browser.answers import Asked, Told
from archiver.browser.behavior_files import read_behaviors
from archiver.browser.behaviours import BehaviourPlan
from archiver.browser.view import Viewed
from archiver.errors import ConfigError
from fixtures.devtools import needs_chromium, needs_namespace
from tests.crawl.test_browser_view import PAGE, PATIENT, SECOND, html, in_browser


def in_a_browser(test: Callable[[Path], None]) -> Callable[[Path], None]:
    return pytest.mark.browser(needs_chromium(needs_namespace(test)))


LIST = """<!doctype html><title>Shop</title><div id=list></div>
<button class=load>Load more</button><button aria-label="Sort by price">$</button>
<span onclick="tell('text')">Open me</span>
<select onchange="tell('chosen-' + this.value)"><option>a<option>b</select>
<input oninput="tell('typed-' + this.value)" onkeydown="tell('key-' + event.key)">
<p onmouseover="tell('hovered')" ondblclick="tell('twice')" style="margin-top: 2000px">Menu</p><div id=host></div>
<iframe srcdoc="<button onclick='parent.tell(`framed`)'>In</button>"></iframe><script>
var tell = what => fetch("/" + what)
let loaded = 0
document.querySelector(".load").onclick = async () => {
    if (loaded === 5) return
    const text = await (await fetch("/part-" + ++loaded)).text()
    document.getElementById("list").append(text)
}
document.querySelector("[aria-label]").onclick = () => tell("sorted")
addEventListener("scroll", () => scrollY >= 700 && tell("scrolled"), { once: true })
document.getElementById("host").attachShadow({ mode: "open" }).innerHTML = "<button>Deep</button>"
document.getElementById("host").shadowRoot.firstChild.onclick = () => tell("deep")
</script>"""


def flow(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"title": "Shopping", "steps": [{"type": "setViewport", "width": 800, "height": 600}, *steps]}


def click(*selectors: str | list[str], **more: Any) -> dict[str, Any]:
    return {
        "type": "click",
        "target": "main",
        "selectors": [[it] if isinstance(it, str) else it for it in selectors],
    } | more


def flowing(folder: Path, given: dict[str, Any]) -> tuple[Viewed, list[str]]:
    """The view of LIST with a flow, and what it asked for, but for what the scrolling of each view asks for."""
    path = folder / "flow.json"
    path.write_text(json.dumps(given))

    async def answer(asked: Asked) -> Told | None:
        return html(LIST) if asked.url == PAGE else Told(200, (("content-type", "text/plain"),), b"part", SECOND)

    limits = replace(PATIENT, behaviours=BehaviourPlan(files=read_behaviors((str(path),))))
    found = in_browser(lambda views, _browser: views.view(PAGE, SECOND, answer, limits))
    return found, [each.url.removeprefix(PAGE) for each in found.answered if each.url not in (PAGE, f"{PAGE}scrolled")]


@in_a_browser
def test_each_kind_of_step_and_of_selector(tmp_path: Path) -> None:
    found, asked = flowing(
        tmp_path,
        flow(
            {"type": "navigate", "url": PAGE},
            {"type": "waitForElement", "selectors": ["button"], "count": 2},
            click("#no", "aria/Sort by price"),
            click("text/Open me"),
            {"type": "change", "selectors": [["xpath///select"]], "value": "b"},
            {"type": "change", "selectors": [["input"]], "value": "word"},
            {"type": "keyDown", "key": "Enter"},
            {"type": "keyUp", "key": "Enter"},
            {"type": "hover", "selectors": ["p"]},
            {"type": "doubleClick", "selectors": ["p"]},
            {"type": "scroll", "x": 0, "y": 700},
            click(["#host", "button"]),
            click("button", frame=[0]),
            {"type": "waitForExpression", "expression": "document.title === 'Shop'"},
            {"type": "customStep", "name": "own"},
        ),
    )
    assert (found.ended, found.faults, found.behavior) == ("", (), "Shopping")
    kinds = ["sorted", "text", "chosen-b", "typed-word", "key-Enter", "hovered", "twice", "deep", "framed"]
    assert sorted(asked) == sorted(kinds)


@in_a_browser
def test_a_click_that_was_recorded_three_times_goes_on(tmp_path: Path) -> None:
    """Until the page no longer changes, as in browsertrix-crawler."""
    _, asked = flowing(tmp_path, flow({"type": "navigate", "url": PAGE}, *[click("button.load")] * 3))
    assert asked == [f"part-{n}" for n in range(1, 6)]
    _, asked = flowing(tmp_path, flow({"type": "navigate", "url": PAGE}, *[click("button.load")] * 2))
    assert asked == ["part-1", "part-2"]


@in_a_browser
def test_a_flow_runs_on_its_own_pages_only(tmp_path: Path) -> None:
    elsewhere = {"type": "navigate", "url": f"{PAGE}other"}
    found, asked = flowing(
        tmp_path, flow(elsewhere, click("span"), {"type": "navigate", "url": PAGE}, click("button.load"))
    )
    assert (found.behavior, asked) == ("Shopping", ["part-1"])
    found, asked = flowing(tmp_path, flow(elsewhere, click("span")))
    assert (found.behavior, asked) == ("", [])


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ("{", "it is no JSON"),
        ("{}", "a flow has a list of 1 to 1000 steps"),
        ({"steps": []}, "a flow has a list"),
        ({"steps": [{"type": "click"}] * 1001}, "a flow has a list"),
        ({"steps": [1]}, "step 1 is of the unknown type ''"),
        ({"steps": [{"type": "jump"}]}, "step 1 is of the unknown type 'jump'"),
        ({"steps": [{"type": ["click"]}]}, "step 1 is of the unknown type"),
        ({"steps": [{"type": "navigate"}]}, "step 1 has no text in 'url'"),
        ({"steps": [{"type": "navigate", "url": "http://a/"}]}, "no step to make"),
        ({"steps": [{"type": "click"}]}, "step 1 has no selectors"),
        ({"steps": [{"type": "click", "selectors": [[]]}]}, "step 1 has no selectors"),
        ({"steps": [{"type": "click", "selectors": [[1]]}]}, "step 1 has a selector that is no text"),
        ({"steps": [{"type": "change", "selectors": ["a"]}]}, "step 1 has no text in 'value'"),
        ({"steps": [{"type": "scroll", "x": "1"}]}, "step 1 has no number in 'x'"),
        ({"steps": [{"type": "click", "selectors": ["a"], "frame": ["a"]}]}, "no list of numbers"),
        ({"steps": [{"type": "waitForElement", "selectors": ["a"], "operator": "!"}]}, "its operator is none of"),
        ("[" * 5, "SyntaxError"),
        ('{"steps":' + "[" * 100_000, ""),
    ],
)
def test_a_faulty_flow_is_refused(tmp_path: Path, given: object, fault: str) -> None:
    path = tmp_path / "flow.json"
    path.write_text(given if isinstance(given, str) else json.dumps(given))
    if fault == "SyntaxError":  # it is no flow, and the browser says so
        assert len(read_behaviors((str(path),))) == 1
        return
    with pytest.raises(ConfigError) as error:
        read_behaviors((str(path),))
    assert str(error.value).startswith(f"--behavior {path}: ")
    assert fault in str(error.value)
    assert "\n" not in str(error.value)
