"""What a crawl was asked for: its seeds, and the settings that are not the defaults. Read from crawl.toml."""

from dataclasses import dataclass
from pathlib import Path

from archiver.archive.layout import Layout
from archiver.config import toml
from archiver.config.secrets import without_secrets
from archiver.config.settings import Settings, every_setting, key_of, with_values
from archiver.disk import opened
from archiver.errors import ConfigError

MAX_SEEDS = 20  # named; the table of seeds has them all
_LONGEST = 16 * 1024 * 1024  # bytes of a settings file


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for."""

    seeds: tuple[str, ...] = ()  # the first of them
    more_seeds: int = 0
    settings: tuple[tuple[str, str], ...] = ()  # (key, value), as crawl.toml has them, where they are not the default
    trouble: str = ""  # why nothing is known


def read(directory: Path) -> Asked:
    """What the crawl in *directory* was asked for."""
    path = Layout(directory).settings
    try:
        with opened(path) as file:
            text = file.read(_LONGEST).decode()
        return _asked(without_secrets(with_values(Settings(), toml.parse(text, path.name))))
    except (OSError, UnicodeDecodeError):
        return Asked(trouble=f"{path.name} cannot be read")
    except ConfigError as error:
        return Asked(trouble=str(error))


def _asked(settings: Settings) -> Asked:
    defaults = Settings()
    differing: list[tuple[str, str]] = []
    for part, entry in every_setting():
        value = getattr(getattr(settings, part), entry.name)
        if value != getattr(getattr(defaults, part), entry.name):
            kind = entry.metadata["kind"]
            written = [kind.write(one) for one in value] if entry.metadata["many"] else [kind.write(value)]
            if entry.name == "dedup_from":  # nothing of this machine
                written = [Path(path).name for path in map(str, written)]
            differing.append((key_of(entry), ", ".join(map(str, written))))
    return Asked(settings.seeds[:MAX_SEEDS], max(0, len(settings.seeds) - MAX_SEEDS), tuple(differing))
