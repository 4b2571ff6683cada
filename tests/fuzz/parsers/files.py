"""Configuration files: `.mergeyard.toml` in a repository, and the settings of the server."""

import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from hypothesis import strategies as st

from mergeyard.service import repo_config
from mergeyard.service.repo_config import InvalidConfig, RepositoryConfig, decode_toml
from mergeyard.settings import Settings
from mergeyard.settings.loading import SettingsError, load
from tests.fuzz.mutations import PLACEHOLDERS, corrupted, mutated, words
from tests.fuzz.properties import holds_for, outcome

REPO_CONFIG: dict[str, Any] = {
    "version": 1,
    "required_statuses": ["unit", "lint"],
    "checks": {"unit": "make test", "a name": "true"},
    "targets": {"unmatched": "path", "app": ["app/**", "lib/*.py"]},
}
PLAIN: dict[str, Any] = {"provider": "git", "root": ".", "checks": "run"}
FORGE: dict[str, Any] = {
    "provider": "gitlab",
    "url": "https://git.example.com",
    "api_url": "https://git.example.com/api",
    "checks": "api",
    "allow_untrusted_checks": True,
    "token_file": "token",
    "webhook_secret_file": "token",
    "poll_seconds": 20,
    "unreadable_rules": "unknown",
    "urgent_from": "writers",
}
OIDC: dict[str, Any] = {
    "issuer": "https://login.example.com",
    "client_id": "mergeyard",
    "client_secret_file": "token",
    "label": "Acme",
    "request_scopes": ["openid"],
    "name_claim": "email",
    "groups_claim": "a.b",
    "default_scopes": ["read"],
    "scopes": {"devs": ["submit"], "a b": ["admin"]},
}
SETTINGS: dict[str, Any] = {
    "host": "::1",
    "port": 8080,
    "data_dir": "data",
    "database_url": "postgresql://a:b@c:5432/d",
    "role": "api",
    "public_url": "https://queue.example.com",
    "log_format": "json",
    "log_level": "debug",
    "access_log": True,
    "open_metrics": True,
    "committer_name": "Ada",
    "committer_email": "ada@example.org",
    "runner_limit": 3,
    "runner_sandbox": "bwrap",
    "runner_network": True,
    "runner_paths": "/opt:/srv/tools",
    "runner_max_disk_mb": 100,
    "runner_max_processes": 100,
    "allow_private_webhooks": True,
    "sealing_key_file": "key",
    "oidc": OIDC,
    "hosts": {
        "git.local": PLAIN,
        "git.example.com": FORGE,
        "github.com": {"provider": "github", "token_file": "token"},
    },
}


def in_toml(values: Any) -> bytes:
    """Top-level keys, then the tables."""
    table = cast(dict[str, Any], values) if isinstance(values, dict) else {"values": values}
    text = "\n".join(statements(table, ""))
    for name, instead in PLACEHOLDERS.items():
        text = text.replace(json.dumps(name), instead.decode("latin-1"))
    return text.encode(errors="replace")


def statements(table: dict[str, Any], name: str) -> Iterable[str]:
    inner = {key: cast(dict[str, Any], value) for key, value in table.items() if isinstance(value, dict)}
    yield from (f"{quoted(key)} = {inline(value)}" for key, value in table.items() if key not in inner)
    for key, value in inner.items():
        full = f"{name}{quoted(key)}"
        yield f"[{full}]"
        yield from statements(value, f"{full}.")


def inline(value: Any) -> str:
    if isinstance(value, dict):
        members = cast(dict[str, Any], value).items()
        return "{" + ", ".join(f"{quoted(key)} = {inline(item)}" for key, item in members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, cast(list[Any], value))) + "]"
    return "1979-05-27" if value is None else json.dumps(value)


def quoted(key: object) -> str:
    return json.dumps(str(key))


def toml(example: Any) -> st.SearchStrategy[bytes]:
    """Cut to the maximum size of a repository's configuration; the server's settings have no limit."""
    return corrupted(mutated(st.just(example)).map(in_toml)).map(lambda content: content[: repo_config.MAX_FILE_BYTES])


TOKENS = ["version", " = ", "1", "\n", "[", "]", "{", "}", '"', "'", '"""', "'''", "#", ".", ",", "\\", "a", "checks"]
loose_toml = st.lists(st.sampled_from(TOKENS) | words, max_size=25).map(
    lambda parts: "".join(parts).encode(errors="replace")
)


@holds_for(toml(REPO_CONFIG) | loose_toml)
def repository_configuration_is_parsed_or_invalid(content: bytes) -> None:
    config = repo_config.parse_config(content)
    if isinstance(config, InvalidConfig):
        assert config.message.startswith(".mergeyard.toml")
        assert len(config.message) < 5_000
        assert config.message.isprintable() or "\n" not in config.message
        return
    assert isinstance(config, RepositoryConfig)
    assert all(config.required_statuses) or not config.required_statuses


@holds_for(toml(REPO_CONFIG) | toml(SETTINGS) | loose_toml)
def toml_is_decoded_or_refused_with_a_short_message(content: bytes) -> None:
    values = decode_toml(content)
    assert isinstance(values, dict | InvalidConfig)
    if isinstance(values, InvalidConfig):
        assert len(values.message) < 300
        assert "\n" not in values.message


@holds_for(toml(SETTINGS) | loose_toml)
def settings_are_loaded_or_refused_without_secrets(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder, "mergeyard.toml")
        file.write_bytes(content)
        Path(folder, "token").write_text("secret-of-the-forge")
        settings = outcome(lambda: load(file, {}, {}), SettingsError)
    assert isinstance(settings, Settings | SettingsError)
    assert "secret-of-the-forge" not in f"{settings!r} {settings!s}"


names = st.sampled_from(
    ["MERGEYARD_PORT", "MERGEYARD_HOST", "MERGEYARD_DATABASE_URL", "MERGEYARD_PUBLIC_URL", "MERGEYARD_X"]
)
texts = words.filter(lambda word: "\0" not in word)


@holds_for(st.dictionaries(names | texts.map(lambda word: f"MERGEYARD_{word}"), texts))
def variables_are_settings_or_errors(environment: dict[str, str]) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder, "mergeyard.toml")
        file.write_bytes(b"")
        assert outcome(lambda: load(file, environment, {}), SettingsError)
