"""What stands in a page besides its links: by construction, and as words or as numbers."""

from hypothesis import given
from hypothesis import strategies as st

from archiver.texts import MOST_RUNS, READ, READ_ON, marks, marks_of, runs

WORDS = st.text("abcXYZ 12.,-\n", max_size=20)
SOUP = st.lists(
    st.sampled_from(
        [*"ab1 .\n<>é", "<p>", "</p>", "<a href=x>", "</A>", "<!-- b -->", "<!--", "-->", "<svg>", "</svg>"]
    )
).map("".join)


def _words(text: str) -> bytes:
    return " ".join("".join(c if c.isalnum() else " " for c in text.lower()).split()).encode()


@given(
    st.lists(
        st.tuples(st.sampled_from(["p", "a", "A", "script", "STYLE", "svg", "noscript", "!--", "h1"]), WORDS, WORDS)
    )
)
def test_runs_are_the_texts_of_elements_that_are_shown(parts: list[tuple[str, str, str]]) -> None:
    page, told = "<body>", []
    for name, inside, behind in parts:
        if name == "!--":  # a text goes on behind a comment
            page += f"<p>{inside}<!-- <p>{inside}</p> <a -->{behind}</p>"
            told.append(inside + behind)
        else:
            page += f"<{name} title='{inside}'>{inside}</{name}>{behind}<br>"
            told += [*([inside] if name in {"p", "h1"} else []), behind]
    expected = tuple(dict.fromkeys(filter(None, map(_words, told))))
    assert runs(page.encode()) == expected


@given(SOUP)
def test_a_run_is_known_by_the_same_number_as_words_and_as_letters(page: str) -> None:
    assert set(marks(page.encode())) == set(marks_of(runs(page.encode())))


def test_what_is_read_is_bounded() -> None:
    many = b"".join(b"<p>%d" % number for number in range(5 * MOST_RUNS)) + b"<p>"
    assert len(runs(many)) == len(marks(many)) == MOST_RUNS
    assert marks(b"<p>a</p>" * READ) == marks_of([b"a"])
    assert len(b"".join(runs(b"<p>" + b"a<b>" * READ * 9))) <= READ + 2 * READ_ON
