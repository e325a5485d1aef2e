"""Where the settings of a new crawl come from, and whether a crawl can use them."""

import os
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from archiver import url
from archiver.cli.config.named_files import with_file_paths
from archiver.cli.config.seeds import read_seeds
from archiver.cli.config.setting_options import given_settings
from archiver.cli.options import verbosity
from archiver.cli.terminal import complain, say
from archiver.collection.dedup_sources import indexes_of
from archiver.collection.disk_space import LAST_RESERVE, DiskSpace
from archiver.collection.layout import Layout
from archiver.collection.settings_file import read_settings, settings_text
from archiver.config.addresses import LOCAL_KEYS
from archiver.config.fetch_settings import NetworkSettings, TlsSettings
from archiver.config.profiles import VARIABLE, Source, from_environment, layered, misspelt, profile
from archiver.config.seeds import combine_seed_settings, conflict
from archiver.config.settings import Settings, SettingsByHost, all_values_of, replaced_values, with_values
from archiver.config.tls import TLS_KEYS
from archiver.crawl.secrets import read_secrets
from archiver.errors import ArchiveError, ConfigError
from archiver.storage import config_home


@dataclass(frozen=True, slots=True)
class GivenSettings:
    """What the user gives beside seeds: a profile, a settings file, environment variables and options."""

    options: Mapping[str, Any]  # by name of field
    config: Path | None = None
    profile: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    keys: Container[str] | None = None  # of the variables, only those of these settings count

    def now(self) -> Source:
        """Return what also replaces the settings of a crawl that goes on."""
        origins = {name: f"--{name.replace('_', '-')}" for name in self.options}
        return layered((from_environment(self.variables, self.keys), Source(self.options, origins)))

    def whole(self) -> Source:
        """Return all of it."""
        sources = [] if self.profile is None else [profile(self.profile, own_profiles())]
        if self.config is not None:
            sources.append(Source.of(read_settings(self.config), f"--config {self.config}"))
        return layered((*sources, self.now()))


def given_by_user(rest: dict[str, Any], keys: Container[str] | None = None) -> GivenSettings:
    """Return the settings that options and environment variables give; with *keys*, of the variables only these.

    Says which variables count, and which ones are misspelt.
    """
    variables = {name: value for name, value in os.environ.items() if name.startswith(VARIABLE)}
    if verbosity(rest) >= 0:
        for name, meant in misspelt(variables):
            complain(f"{name} is not a setting and is ignored; did you mean {meant}?")
        if found := sorted(from_environment(variables, keys).origins.values()):
            say(f"archiver: settings of environment variables: {', '.join(found)}")
    return GivenSettings(given_settings(rest), rest.get("config"), rest.get("profile"), variables, keys)


def user_folder() -> Path | None:
    """Return the folder of this user's own settings, None without a home folder."""
    try:
        return config_home() / "archiver"
    except RuntimeError:
        return None


def user_defaults() -> Source:
    """Return the user's own defaults: those of config.toml in `user_folder`."""
    folder = user_folder()
    if folder is None or not (folder / "config.toml").exists():
        return Source({}, {})
    path = folder / "config.toml"
    values = read_settings(path)
    if "seeds" in values:
        raise ConfigError(f"{path}: seeds: these are the defaults of all your crawls; give seeds to archiver crawl")
    return Source.of(values, str(path))


def own_profiles() -> dict[str, str]:
    """Return the texts of the user's own profiles, by name: profiles/NAME.toml in `user_folder`."""
    folder = user_folder()
    paths = [] if folder is None else sorted((folder / "profiles").glob("*.toml"))
    return {path.stem: settings_text(path) for path in paths}


def new_settings(urls: Sequence[str], lists: Sequence[str], *sources: Source) -> tuple[Settings, Mapping[str, str]]:
    """Return the settings of a new crawl from *sources*, and by name of field where those come from that are known."""
    found = layered(sources)
    values = found.values
    seeds = read_seeds(urls, lists, values.get("seeds", ()))
    dropped = set(values.get("seeds", ())) - set(seeds.urls)  # seeds of the file; they are not crawled
    kept = (one for one in values.get("seed", ()) if one.url not in dropped)
    own = combine_seed_settings(kept, seeds.own)
    settings = with_values(Settings(), {**values, "seeds": seeds.urls, "seed": own})
    if settings.warc.recording:
        raise ConfigError("recording: archiver record alone sets it; leave it out")
    check_seed_settings(settings, "")
    check_proxies(settings)
    check_network_choices(settings)
    return settings, found.origins


def check_seed_settings(settings: Settings, where: str) -> None:
    """Refuse seeds of one host with different settings for it: only those of one would have an effect."""
    if wrong := conflict(settings.scope.seed):
        raise ConfigError(where + wrong)


def check_proxies(settings: Settings) -> None:
    """Refuse proxies that cannot be used together, and environment variables that are no proxies."""
    if all_values_of(settings, "proxy"):
        from archiver.fetch.proxy import ProxyRoutes

        ProxyRoutes(SettingsByHost(settings))


def check_network_choices(settings: Settings) -> None:
    """Refuse addresses from which no connection can leave, and addresses of hosts that a proxy would look up."""
    if settings.network != NetworkSettings() or any(key in LOCAL_KEYS for _, key, _ in replaced_values(settings)):
        from archiver.fetch.network import check_network

        check_network(settings)


def check_views(settings: Settings) -> None:
    """Refuse to show pages in a browser where that is not possible."""
    if settings.browser.browser != "off":
        from archiver.crawl.views.stage import check_browser

        check_browser(settings)


def check_secrets(settings: Settings) -> None:
    """Refuse secrets, client certificates and certificate authorities that cannot be read."""
    secrets = read_secrets(settings)
    if settings.tls != TlsSettings() or any(key in TLS_KEYS for _, key, _ in replaced_values(settings)):
        from archiver.fetch.tls import check_tls

        check_tls(secrets.filled(settings))


def usable_in(directory: Path, settings: Settings) -> Settings:
    """Return *settings* with absolute paths. Raises `ConfigError` if *directory* has no room, or a secret is missing.

    Nothing has happened then.
    """
    settings = with_absolute_paths(settings, directory)
    check_disk_space(directory, settings)
    check_secrets(settings)
    return settings


def with_absolute_paths(settings: Settings, directory: Path) -> Settings:
    """Return *settings* with absolute paths, and the digest of their hooks.

    Raises `ConfigError` if another archive or the hooks cannot be used.
    """
    others = tuple(str(Path(path).absolute()) for path in settings.dedup.dedup_from)
    if settings.dedup.dedup == "on":
        indexes_of(others, directory)
    moved = with_file_paths(with_values(settings, {"dedup_from": others}))
    if moved.hooks.hooks is None:
        return moved
    from archiver.crawl.hooks.hooks import hooks_of

    with hooks_of(moved) as hooks:
        return with_values(moved, {"hooks": hooks and hooks.source.file})


def check_disk_space(directory: Path, settings: Settings) -> None:
    """Refuse to start a crawl that would stop at once because the disk is full. One that can pause needs little."""
    share = LAST_RESERVE if settings.limits.on_low_disk == "pause" else 1.0
    layout = Layout(directory)
    if shortage := DiskSpace(layout, settings.limits.min_free_disk).shortage(share):
        elsewhere = "" if layout.settings.exists() else ", choose another disk with -o,"
        raise ArchiveError(f"{shortage}; free space{elsewhere} or give a smaller --min-free-disk")


LOCAL_DOMAINS = ("localhost", "local", "lan", "internal", "home.arpa", "test", "invalid", "example")  # RFC 6761, 8375


def contact_warning(settings: Settings) -> str:
    """Return a warning if a public site is crawled without a contact; "" otherwise."""
    fetch = settings.fetch
    given = " ".join((fetch.user_agent, *fetch.header))
    if fetch.contact or "@" in given or "://" in given:
        return ""
    public = next((url.host(seed) for seed in settings.seeds if not _is_local(url.host(seed))), None)
    if public is None:
        return ""
    return (
        f"the owner of {public} cannot tell who is crawling; give a URL or mail address where they can reach you: "
        "--contact you@example.org"
    )


def _is_local(host: str) -> bool:
    """Return whether *host* is this machine or in a private network."""
    try:
        return not ip_address(host.strip("[]")).is_global
    except ValueError:
        labels = host.rstrip(".")
        return "." not in labels or labels.endswith(tuple(f".{name}" for name in LOCAL_DOMAINS))
