"""Web applications are archived with `--browser auto` so that their replay asks for nothing that is missing."""

from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.applications.serving import seeds, served
from fixtures.applications.table import APPLICATIONS, Application
from fixtures.command import archiver
from fixtures.debian import NotToBeHad
from fixtures.devtools import needs_chromium, needs_namespace
from fixtures.replay_judge import JudgedPage, judged_in_pywb, judged_in_replayweb

pytestmark = [
    pytest.mark.browser,
    pytest.mark.replay,
    pytest.mark.slow,
    needs_chromium,
    needs_namespace,
]
OPTIONS = ("-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0", "--allow-private", "127.0.0.2")


def crawled(application: Application, folder: Path, *options: str) -> list[str]:
    """Crawl *application* with *options*; return its pages when its server is down."""
    try:
        with served(application, folder / "site") as server:
            urls = seeds(application, server)
            ran = archiver("crawl", *urls, *OPTIONS, *options, cwd=folder)
            assert ran.returncode == ExitCode.DONE, ran.stderr
            return urls
    except NotToBeHad as reason:
        pytest.skip(str(reason))


def check(found: list[JudgedPage], application: Application) -> None:
    assert [page.fault for page in found if page.fault] == []
    assert all(page.asked for page in found)
    assert [page.missing for page in found if page.missing and not application.lasting] == []


@pytest.mark.parametrize(
    "application",
    [pytest.param(each, marks=() if each.quick else pytest.mark.long, id=each.name) for each in APPLICATIONS.values()],
)
def test_the_replay_of_an_application_asks_for_nothing_missing(application: Application, tmp_path: Path) -> None:
    urls = crawled(application, tmp_path, "--browser", "auto")
    check(judged_in_pywb(tmp_path / "c", urls, tmp_path / "pywb"), application)
    if application.in_replayweb:
        assert archiver("pack", "c", "-o", "c.wacz", cwd=tmp_path).returncode == ExitCode.DONE
        try:
            found = judged_in_replayweb(tmp_path / "c", urls, tmp_path / "replayweb")
        except NotToBeHad as reason:
            pytest.skip(f"passed in pywb; replayweb.page: {reason}")
        check(found, application)


def test_the_judge_names_what_is_missing(tmp_path: Path) -> None:
    """Without a browser, the crawl cannot know the first list, and no script goes on without it."""
    urls = crawled(APPLICATIONS["infinite-scroll"], tmp_path)
    (page,) = judged_in_pywb(tmp_path / "c", urls, tmp_path / "profile")
    assert [url.partition("/api/")[2] for url in page.missing] == ["items?page=1&per_page=10"]
    assert not page.whole


def test_replayweb_page_asks_for_a_module_of_an_import_map_at_a_wrong_address(tmp_path: Path) -> None:
    """Not our fault: the archive has the module where the map says. See docs/explanation/replay.md."""
    (url,) = crawled(APPLICATIONS["modules"], tmp_path, "--browser", "auto")
    (page,) = judged_in_pywb(tmp_path / "c", [url], tmp_path / "pywb")
    assert (page.missing, page.fault) == ((), "")
    assert archiver("get", "c", f"{url}modules/views/list.js", cwd=tmp_path).returncode == ExitCode.DONE
    assert archiver("pack", "c", "-o", "c.wacz", cwd=tmp_path).returncode == ExitCode.DONE
    try:
        (page,) = judged_in_replayweb(tmp_path / "c", [url], tmp_path / "replayweb")
    except NotToBeHad as reason:
        pytest.skip(str(reason))
    assert page.missing == (f"{url.partition(':')[2]}views/list.js",)
