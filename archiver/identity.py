"""What the WARC files of a crawl say of themselves: their names, and who made them, why, and by which settings."""

import re
import socket

from archiver import __version__
from archiver.archive.layout import Layout
from archiver.archive.writer import WarcIdentity
from archiver.config.secrets import has_secrets, without_secrets
from archiver.config.settings import Settings, every_setting, key_of
from archiver.config.toml import toml_value
from archiver.fetch.client import user_agent


def identity_of(settings: Settings) -> WarcIdentity:
    """What every WARC file of this crawl says of itself."""
    return WarcIdentity(
        prefix=settings.warc.warc_prefix,
        host=re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()) or "localhost",
        size=settings.warc.warc_size,
        algorithm=settings.warc.digest,
        info=_warcinfo(without_secrets(settings)),
        private=has_secrets(settings),
    )


def next_serial(layout: Layout) -> int:
    """The number of the next WARC file: one more than any that is there."""
    numbers = (re.search(r"-\d{17}-(\d{5,})-", path.name) for path in layout.archive.iterdir())
    return max((int(found[1]) + 1 for found in numbers if found), default=0)


def _warcinfo(settings: Settings) -> tuple[tuple[str, str], ...]:
    """What each file says of the crawl: who, why, by which software, and the settings, as crawl.toml has them."""
    described = [
        ("software", f"archiver/{__version__}"),
        ("format", "WARC File Format 1.1"),
        ("conformsTo", "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"),
        ("hostname", socket.gethostname()),
        ("operator", settings.warc.operator),
        ("description", settings.warc.description),
        ("robots", settings.politeness.robots),
        ("http-header-user-agent", user_agent(settings.fetch)),
        ("http-header-from", settings.fetch.contact),
    ]
    in_force = []
    for part, entry in every_setting():
        value = getattr(getattr(settings, part), entry.name)
        write = entry.metadata["kind"].write
        values = [[write(one)] for one in value] if entry.metadata["many"] else [write(value)]
        in_force += [("setting", f"{key_of(entry)} = {toml_value(single)}") for single in values]
    seeds = [("seed", seed) for seed in settings.seeds]
    return tuple((name, value) for name, value in (*described, *in_force, *seeds) if value)
