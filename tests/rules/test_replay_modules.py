"""What is changed in ECMAScript modules for a replay, and what is not."""

from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.tools.replay.es_modules import NAMES, ModuleContext, head, import_map, parse, rewrite_module
from fixtures.growth import growth, least_seconds

PREFIX = "/c/2020esm_/"
PLACE = ModuleContext("http://h/a/b.js", PREFIX, "/static/ours.js")
SITE = PREFIX + "http://h"
OURS = 'from "/static/ours.js";'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('import"./x.js"', f'import"{SITE}/a/x.js"'),
        ("import a from '../../x.js';", f"import a from '{SITE}/x.js';"),
        ('import{a as b}from"/x.js";', f'import{{a as b}}from"{SITE}/x.js";'),
        ('import a,{b,c}from"//o/x.js"', f'import a,{{b,c}}from"{PREFIX}http://o/x.js"'),
        ('import * as a from "https://o/x"', f'import * as a from "{PREFIX}https://o/x"'),
        ('import/*1*/a//2\nfrom/*3*/"/x"', f'import/*1*/a//2\nfrom/*3*/"{SITE}/x"'),
        ('import{"a b" as c}from"/x"', f'import{{"a b" as c}}from"{SITE}/x"'),
        ('import from from "/x"', f'import from from "{SITE}/x"'),
        ('import j from "/x.json" with {type: "json"}', f'import j from "{SITE}/x.json" with {{type: "json"}}'),
        ('export*from"/x"', f'export*from"{SITE}/x"'),
        ('export * as a from "/x"', f'export * as a from "{SITE}/x"'),
        ('export{a,b as default}from"/x"', f'export{{a,b as default}}from"{SITE}/x"'),
        ('a();import"/x";b()', f'a();import"{SITE}/x";b()'),
        ('const a=`${b}`/2;import"/x"', f'const a=`${{b}}`/2;import"{SITE}/x"'),
        ('a/b;c/d;import"/x"', f'a/b;c/d;import"{SITE}/x"'),
        ('if(a)/"/.test(b);import"/x"', f'if(a)/"/.test(b);import"{SITE}/x"'),
        ('a=/[/"]/g;import"/x"', f'a=/[/"]/g;import"{SITE}/x"'),
        ('a++/b;c="/";import"/x"', f'a++/b;c="/";import"{SITE}/x"'),
        ("f(import.meta.url)", 'f("http://h/a/b.js")'),
        ("f(import . meta . url)", 'f("http://h/a/b.js")'),
        *[(text, text) for text in (
            'import "bare"', 'import a from "@x/y"', "export {a}", 'export const a = "/x"', "export default '/x'",
            'const a = "import \'/x\'"', "// import '/x'", "/* import '/x' */", "`import '/x'`", '/import "x"/',
            'o.import("/x")', "class A { import(a) { } }", "o={import(a){}}", "import.meta.env", "import", "import {",
            "export {a} ; from '/x'", "{import '/x'}", "a={import:1}", "import a from b", "importer('/x')",
            "$import '/x'", "",
        )],
    ],
)  # fmt: skip
def test_names_of_modules(text: str, expected: str) -> None:
    assert rewrite_module(parse(text), PLACE) == expected


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("import(a)", "a)"),
        ('await import ( "/x" , b)', ' "/x" , b)'),
        ("`${import(a)}`", "a)}`"),
        ("f(...import(a))", "a))"),
        ("()=>import(`./${a}.js`)", "`./${a}.js`)"),
    ],
)
def test_imports_when_it_runs(text: str, body: str) -> None:
    """They are asked of our module, with the place of this one."""
    found = rewrite_module(parse(text), PLACE)
    assert found.startswith(f"import {{__archiver_import}} {OURS}")
    assert found.endswith(f'__archiver_import("{PREFIX}","http://h/a/b.js",{body}')


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("document.title = window.name", "window, document"),
        ("let document, top = 1; parent", "parent"),
        ("const {location, a: [frames]} = b; self", "self"),
        ("function opener() {} class top {} export default parent", "parent"),
        ("import {location} from 'router'; document", "document"),
        ("import top, * as self from 'a'; document", "document"),
        ("if (a) { var self = b } document", "document"),
        ("for (var self of a) {} document", "document"),
        ("function f() { var self = this } self", "self"),
        ("const f = () => { var self = this }; self", "self"),
        ("class A { b() { var self = this } }; self", "self"),
        ("function f(location) { return location }", "location"),
        ("{ let location } location", "location"),
        ("'window'; // document", "window, document"),  # too many do no harm
        ("a.b", ""),
    ],
)
def test_the_names_that_a_module_is_given(text: str, names: str) -> None:
    """Those that it uses, without those that it declares itself: two declarations of one name are an error."""
    assert head(parse(text), PLACE) == (f"import {{{names}}} {OURS}" if names else "")


def test_the_first_line_of_a_program_stays_first() -> None:
    assert (
        rewrite_module(parse("#!/usr/bin/env node\ndocument"), PLACE)
        == f"#!/usr/bin/env node\nimport {{document}} {OURS}document"
    )


def test_a_location_that_is_set() -> None:
    """What is imported cannot be set; a field of a class is none."""
    assert "let location=" in head(parse("location = '/x'"), PLACE)
    assert "let location=" not in head(parse("a.location = '/x'; if (location == b) {}"), PLACE)
    text = "class A extends f({}) { location = 1; b() { location = 2 } }"
    assert parse(text).fields == {text.index("location")}


def test_a_worker_has_no_window() -> None:
    place = ModuleContext("http://h/w.js", PREFIX, "/static/worker.js", worker=True)
    text = head(parse("self.onmessage = () => location.href"), place)
    assert text == 'import {} from "/static/worker.js";let location=new URL("http://h/w.js");'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"imports": {"a": "/x", "b/": "./y/"}}', f'{{"imports": {{"a": "{SITE}/x", "b/": "{SITE}/a/y/"}}}}'),
        ('{"imports": {"/old": "/new"}}', f'{{"imports": {{"{SITE}/old": "{SITE}/new"}}}}'),
        ('{"scopes": {"/x/": {"a": null}}}', f'{{"scopes": {{"{SITE}/x/": {{"a": null}}}}}}'),
        ('{"imports": {"a": "/x"}, "integrity": {"/x": "sha"}}', f'{{"imports": {{"a": "{SITE}/x"}}}}'),
        *[(text, text) for text in ("", "{", "[]", '{"imports": []}', '{"imports": {"a": 1}}', "[" * 100_000)],
    ],
)
def test_import_maps(text: str, expected: str) -> None:
    assert import_map(text, PLACE) == expected


_PIECES = (*"{}()[]'\"`$/*\\\n .,;=<a", "import ", "export", "from", "let ", "class ", "=>", "${", *NAMES)


@given(st.lists(st.sampled_from(_PIECES)))
def test_any_text_keeps_all_that_is_not_named(pieces: list[str]) -> None:
    """Nothing is lost or doubled, whatever it is; and what stands in strings is not looked at."""
    text = "".join(pieces)
    parsed = parse(text)
    edits = sorted([*parsed.urls, *parsed.resolves, *parsed.calls, *parsed.specifiers])
    assert all(one[1] <= other[0] for one, other in pairwise(edits))
    assert rewrite_module(parse("/* " + text.replace("*/", "") + " */"), PLACE).endswith(" */")
    assert not parse(f"`{text.replace('`', '').replace('$', '').replace(chr(92), '')}`").specifiers


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        *(("", piece) for piece in ("import{", "import a ", "`${", "/", "(", "/*", "class{", "let{", "a/*", "import(")),
        *(("", "\n "), ("", "let[a="), ("import", "/**/"), ("import", " "), ("const", " ")),
    ],
)
def test_its_cost_grows_with_its_length(begin: str, piece: str) -> None:
    """No text costs more than some times of what its length would."""

    def run(length: int) -> None:
        rewrite_module(parse(begin + piece * (length // len(piece))), PLACE)

    assert growth(partial(run, 20_000), partial(run, 160_000), enough=24, floor=0.02) < 24


def test_slashes_that_begin_no_regular_expression_cost_no_more_than_a_bound() -> None:
    assert least_seconds(lambda: parse("(/[" * 1_000_000), 30) < 30
