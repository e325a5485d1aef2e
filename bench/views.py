"""Measure --browser: an application whose pages scripts build, and a site of static pages with scripts.

    python bench/views.py --pages 200 --rounds 3

nginx serves both. The application is crawled with the browser alone, because there is nothing to find without it: each
page needs data and a picture whose URLs its script makes. The static site is crawled without the browser and with it,
at --rate, as a site is crawled in practice; its scripts ask for nothing.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import archives
import testsite
from clients import archiver
from measure import Run, in_turn, measure, middle, ratios, spread, table
from serving import files

APPLICATION, WITHOUT, WITH = "application, --browser auto", "static, --browser off", "static, --browser auto"
SHELL = "<!doctype html><title>Application</title><div id=app></div><script src=/app.js></script>"
SCRIPT = """
const get = async name => (await fetch("/" + ["a", "pi"].join("") + "/" + name)).json()
const show = text => { document.getElementById("app").innerHTML = text }
const start = async () => {
    const item = location.pathname.match(/item.(\\d+)/)
    if (!item) return show((await get("list.json")).map(n => `<a href="/item/${n}.html">Item ${n}</a>`).join(" "))
    const found = await get(`item-${item[1]}.json`)
    document.title = found.title
    show(`<h1>${found.title}</h1><img src="/picture/${found.picture}">`)
}
start()
"""
PLAIN = b"<script>document.documentElement.dataset.ready = '1'</script>"


def application(folder: Path, pages: int) -> list[str]:
    """Write an application of so many pages below *folder*, and return the paths of all its URLs."""
    written = {"index.html": SHELL, "app.js": SCRIPT, "api/list.json": str([*range(pages)])}
    for number in range(pages):
        written[f"item/{number}.html"] = SHELL
        written[f"api/item-{number}.json"] = f'{{"title": "Item {number}", "picture": "p{number}.gif"}}'
        written[f"picture/p{number}.gif"] = f"GIF89a {number}"
    for path, text in written.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return ["/", *(f"/{path}" for path in written if path != "index.html")]


def static(folder: Path, pages: int) -> list[str]:
    """Write a site of static pages below *folder*, each with a script, and return the paths of all its URLs."""
    paths = testsite.make(folder, pages)
    for file in folder.rglob("*.html"):
        file.write_bytes(file.read_bytes() + PLAIN)
    return paths


def main() -> None:
    """Crawl in turn; print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=200, help="of each site")
    parser.add_argument("--rate", default="5", help="requests per second to the static site")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        built = application(folder / "application", given.pages)
        plain = static(folder / "static", given.pages)
        with (
            files(folder / "application", folder / "one") as moving,
            files(folder / "static", folder / "two") as still,
        ):

            def run(address: str, paths: Sequence[str], *options: str) -> Run:
                wanted = [address.rstrip("/") + path for path in paths]
                done = measure(archiver(address, options=options), folder / "client")
                return replace(done, done=len(wanted), fault=done.fault or archives.missing(folder / "client", wanted))

            ways = {
                APPLICATION: partial(run, moving, built, "--browser", "auto"),
                WITHOUT: partial(run, still, plain, "--rate", given.rate),
                WITH: partial(run, still, plain, "--rate", given.rate, "--browser", "auto"),
            }
            runs = in_turn(ways, given.rounds)
    rows = [
        (
            name,
            f"{middle([one.wall for one in each]):.1f}",
            f"{given.pages / middle([one.wall for one in each]):.2f}" if name == APPLICATION else "",
            spread(ratios(runs, WITH, WITHOUT, lambda one: one.wall)) if name == WITH else "",
            "; ".join({one.fault for one in each if one.fault}),
        )
        for name, each in runs.items()
    ]
    title = f"sites of {given.pages} pages, medians of {given.rounds} rounds"
    table(title, ("crawl", "seconds", "pages shown per s", "times the seconds without", "faults"), rows)


if __name__ == "__main__":
    main()
