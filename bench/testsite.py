"""A made site for benchmarks, the same on each run: `python bench/testsite.py --pages 5000 FOLDER`.

It has pages of some 12 KiB with some thirty links in all spellings, pictures that many pages share, style sheets that
import and name others, and scripts. 5,000 pages make 5,338 URLs. `make` returns the path of each URL that a complete
crawl fetches; robots.txt does not exist and does not count.
"""

import argparse
import random
from pathlib import Path
from posixpath import relpath

PICTURES, BACKDROPS, STYLES, IMPORTED, SCRIPTS = 300, 20, 10, 3, 5
KINDS = {"jpg": b"\xff\xd8\xff\xe0", "png": b"\x89PNG\r\n\x1a\n", "gif": b"GIF89a", "webp": b"RIFF"}
SYLLABLES = [first + vowel + last for first in "bcdfghklmnprstvz" for vowel in "aeiou" for last in ("", "n", "r", "s")]
FOREIGN = ["naïve", "café", "Übung", "данные", "資料"]  # words that are not ASCII
WORDS, TEXT = 6000, 50_000  # different ones, and the length of the text they are drawn from
PARAGRAPHS, WORDS_EACH = 15, 86
NAVIGATION = 8  # links above the text
CHILDREN = 8  # first links of a page, so that each page is found


class Site:
    """A site that is written below a folder, and the paths that its pages name."""

    def __init__(self, folder: Path, pages: int, seed: int) -> None:
        self.folder, self.rng = folder, random.Random(seed)
        syllables = (self.rng.choices(SYLLABLES, k=self.rng.choice((1, 2, 2, 3))) for _ in range(WORDS))
        words = ["".join(each) for each in syllables]
        words[200:200] = FOREIGN
        weights = [1 / (rank + 3) for rank in range(len(words))]  # some are far more frequent than others
        self.text = self.rng.choices(words, weights, k=TEXT)
        self.pages = ["index.html", *(f"p/{each // 250:03}/page-{each:05}.html" for each in range(1, pages))]
        self.pictures = [f"img/i{each:03}.{list(KINDS)[each % 4]}" for each in range(PICTURES)]
        self.backdrops = [f"img/back{each:03}.{list(KINDS)[each % 4]}" for each in range(BACKDROPS)]
        self.named = set(self.pages)

    def words(self, count: int) -> list[str]:
        """Return so many words."""
        return self.rng.choices(self.text, k=count)

    def write(self, path: str, data: bytes) -> None:
        """Write a file of the site."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def name(self, path: str) -> str:
        """Return *path* and count it as needed by the current page or style sheet, so a crawl fetches it."""
        self.named.add(path)
        return path

    def link(self, number: int, target: int) -> str:
        """Return a reference from one page to another in one of the usual spellings."""
        here, there = self.pages[number], self.pages[target]
        relative = relpath(there, here.rpartition("/")[0] or ".")
        spelling = "/" if target == 0 else relative if self.rng.random() < 0.5 else f"/{there}"
        return spelling + (f"#s{self.rng.randint(1, 5)}" if self.rng.random() < 0.1 else "")

    def elsewhere(self) -> str:
        """Return a reference that is out of scope or not a URL."""
        foreign = (
            f"http://ext{self.rng.randint(1, 40)}.example.org/{self.words(1)[0]}?id={self.rng.randint(1, 99)}&amp;x=1"
        )
        others = (f"#s{self.rng.randint(1, 5)}", f"mailto:{self.rng.randint(1, 99)}@example.org", "javascript:void(0)")
        return self.rng.choices((foreign, *others), weights=(60, 25, 10, 5))[0]

    def references(self, number: int) -> list[str]:
        """Return all references of a page in their order."""
        count, pages = self.rng.randint(26, 34), len(self.pages)
        targets = [child for child in range(CHILDREN * number + 1, CHILDREN * (number + 1) + 1) if child < pages]
        targets += [self.rng.randrange(pages) for _ in range(round(count * 0.7) - len(targets))]
        found = [self.link(number, target) for target in targets]
        found += [self.elsewhere() for _ in range(count - len(found))]
        self.rng.shuffle(found)
        return found

    def paragraph(self, references: list[str]) -> str:
        """Return text with the *references* in it."""
        words = self.words(WORDS_EACH)
        for form in self.rng.sample(("<em>{}</em>", "<b>{}</b>", "{},", "{}.", "{} &amp; co", "{}&nbsp;%"), k=3):
            where = self.rng.randrange(WORDS_EACH)
            words[where] = form.format(words[where])
        for reference in references:
            where = self.rng.randrange(WORDS_EACH)
            words[where] = f'<a href="{reference}" title="{self.words(1)[0]}">{words[where]}</a>'
        return f'<p class="text">{" ".join(words)}.</p>\n'

    def page(self, number: int) -> str:
        """Return a page with navigation, three pictures and fifteen paragraphs."""
        references = self.references(number)
        style = self.name(f"css/s{number % STYLES}.css")
        script = self.name(f"js/m{number % SCRIPTS}.js")
        title = " ".join(self.words(5)).capitalize()
        menu = "".join(
            f'<li class="menu-item"><a class="menu-link" href="{each}">{" ".join(self.words(2))}</a></li>\n'
            for each in references[:NAVIGATION]
        )
        paragraphs = [self.paragraph(references[NAVIGATION + part :: PARAGRAPHS]) for part in range(PARAGRAPHS)]
        for place, picture in zip((1, 6, 11), self.rng.sample(self.pictures, k=3), strict=True):
            paragraphs[place] += (
                f'<figure><img src="/{self.name(picture)}" alt="{" ".join(self.words(4))}" width="400" height="300" '
                f'loading="lazy"><figcaption>{" ".join(self.words(7))}</figcaption></figure>\n'
            )
        sections = "".join(
            f'<section id="s{part + 1}"><h2>{" ".join(self.words(4))}</h2>\n{"".join(three)}</section>\n'
            for part, three in enumerate(zip(*[iter(paragraphs)] * 3, strict=True))
        )
        return (
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
            f'<meta name="description" content="{" ".join(self.words(14))}">\n<link rel="stylesheet" href="/{style}">\n'
            f'<script src="/{script}" defer></script>\n</head>\n<body data-id="{number}">\n'
            f"<nav><ul>\n{menu}</ul></nav>\n<main><h1>{title}</h1>\n{sections}</main>\n"
            f"<footer>{' '.join(self.words(30))}</footer>\n</body>\n</html>\n"
        )

    def style(self, number: int) -> str:
        """Return a style sheet that names two pictures; the last ones import another, which names one more."""
        path = f"css/s{number}.css"
        rules = "".join(
            f".c{each}-{self.rng.choice(SYLLABLES)} {{ margin: {each}px; color: #{self.rng.randrange(1 << 24):06x} }}\n"
            for each in range(90)
        )
        first, second = self.backdrops[2 * number : 2 * number + 2]
        rules += f"body {{ background: url(../{first}) }}\n.h {{ background-image: url('/{second}') }}\n"
        imported = f"css/sub{number}.css" if number >= STYLES - IMPORTED else ""
        if imported:
            self.write(imported, f'.x {{ background: url("/{self.pictures[number]}") }}\n'.encode())
        if path in self.named:
            self.named.update((first, second))
        if path in self.named and imported:
            self.named.update((imported, self.pictures[number]))
        return (f'@import url("sub{number}.css");\n' if imported else "") + rules

    def script(self) -> str:
        """Return a script that names nothing."""
        names = self.rng.choices(SYLLABLES, k=self.rng.randint(100, 500))
        return "".join(f"function {name}{line}(a, b) {{ return a * {line} + b; }}\n" for line, name in enumerate(names))


def make(folder: Path, pages: int, seed: int = 5) -> list[str]:
    """Write the site below *folder*; return the path of each URL that a complete crawl fetches, sorted.

    Sites of another *seed* have other content.
    """
    site = Site(folder, pages, seed)
    for path in (*site.pictures, *site.backdrops):  # incompressible, as pictures are
        start = KINDS[path.rpartition(".")[2]]
        site.write(path, start + site.rng.randbytes(site.rng.randint(5, 60) * 1024))
    for number, path in enumerate(site.pages):
        site.write(path, site.page(number).encode())
    for number in range(STYLES):
        site.write(f"css/s{number}.css", site.style(number).encode())
    for number in range(SCRIPTS):
        site.write(f"js/m{number}.js", site.script().encode())
    return sorted("/" if path == "index.html" else f"/{path}" for path in site.named)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--pages", type=int, default=5000)
    given = arguments.parse_args()
    print("\n".join(make(given.folder, given.pages)))
