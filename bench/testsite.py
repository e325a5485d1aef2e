"""A synthetic site for benchmarks, the same on each run: `python bench/testsite.py --pages 2000 FOLDER`."""

import argparse
import random
from pathlib import Path

WORDS = 4000
IMAGES, STYLES, SCRIPTS = 300, 10, 5


def make(folder: Path, pages: int) -> int:
    """Write the site below *folder*; how many URLs a complete crawl fetches, robots.txt aside."""
    rng = random.Random(5)
    words = ["".join(rng.choices("aeioubcdfghklmnprstvz", k=rng.randint(2, 9))) for _ in range(WORDS)]
    _assets(folder, rng, words)
    for number in range(pages):
        _write(folder / _path(number), _page(number, pages, rng, words).encode())
    return pages + IMAGES + STYLES + SCRIPTS


def _path(number: int) -> str:
    return "index.html" if number == 0 else f"p/{number // 250:03}/page-{number:05}.html"


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _assets(folder: Path, rng: random.Random, words: list[str]) -> None:
    for number in range(IMAGES):  # incompressible, as pictures are
        _write(folder / f"img/i{number:03}.png", b"\x89PNG\r\n\x1a\n" + rng.randbytes(rng.randint(5, 60) * 1024))
    for number in range(STYLES):
        rules = "".join(f".{rng.choice(words)} {{ margin: {rng.randint(0, 40)}px }}\n" for _ in range(90))
        _write(folder / f"css/s{number}.css", f"{rules}body {{ background: url(/img/i{number:03}.png) }}\n".encode())
    for number in range(SCRIPTS):
        lines = "".join(
            f"function {rng.choice(words)}{line}(a) {{ return a * {rng.random()} }}\n" for line in range(300)
        )
        _write(folder / f"js/m{number}.js", lines.encode())


def _page(number: int, pages: int, rng: random.Random, words: list[str]) -> str:
    children = [child for child in range(8 * number + 1, 8 * number + 9) if child < pages]
    targets = ["/" + _path(child) for child in children]
    targets += ["/" + _path(rng.randrange(pages)) for _ in range(21 - len(children))]
    targets += [
        f"http://ext{rng.randint(1, 40)}.example.org/{rng.choice(words)}?id={rng.randint(1, 99)}" for _ in range(5)
    ]
    targets += [f"#s{rng.randint(1, 5)}" for _ in range(3)] + ["mailto:someone@example.org"]
    rng.shuffle(targets)
    paragraphs = []
    for target in targets:
        text = rng.choices(words, k=46)
        text[rng.randrange(46)] = f'<a href="{target}" title="{rng.choice(words)}">{rng.choice(words)}</a>'
        paragraphs.append(f'<p class="text">{" ".join(text)}.</p>\n')
    images = "".join(f'<img src="/img/i{rng.randrange(IMAGES):03}.png" alt="{rng.choice(words)}">\n' for _ in range(3))
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{rng.choice(words)} {number}</title>\n'
        f'<link rel="stylesheet" href="/css/s{number % STYLES}.css">\n'
        f'<script src="/js/m{number % SCRIPTS}.js" defer></script></head>\n'
        f"<body><main><h1>{rng.choice(words)}</h1>\n{images}{''.join(paragraphs)}</main></body></html>\n"
    )


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--pages", type=int, default=2000)
    given = arguments.parse_args()
    print(make(given.folder, given.pages), "URLs")
