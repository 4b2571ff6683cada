"""Which values a setting accepts, and which problems are reported for others."""

from pathlib import Path

import pytest

from mergeyard.settings import Settings
from mergeyard.settings.parsing import SIMPLE_KEYS, SettingInput, SettingsProblem, describe_expected, parse_value


def given(key: str, value: object) -> SettingInput:
    return SettingInput(key=key, value=value, location="here", base_dir=Path("etc"), is_typed=True)


def problem(key: str, value: object) -> str:
    with pytest.raises(SettingsProblem, match=r"^here: ") as raised:
        parse_value(given(key, value))
    return str(raised.value).removeprefix("here: ")


@pytest.mark.parametrize("key", SIMPLE_KEYS)
def test_every_setting_has_a_description_of_what_it_expects(key: str):
    assert describe_expected(key)


@pytest.mark.parametrize("key", sorted({*SIMPLE_KEYS} - {"data_dir", "database_url", "public_url"}))
def test_the_defaults_are_valid(key: str):
    assert parse_value(given(key, getattr(Settings(), key))) == getattr(Settings(), key)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("host", ""),
        ("host", "a b"),
        ("host", "http://x"),
        ("port", -1),
        ("port", 65_536),
        ("port", True),
        ("port", 1.5),
        ("data_dir", ""),
        ("data_dir", "a\0b"),
        ("log_level", "loud"),
        ("open_metrics", 1),
        ("committer_name", ""),
        ("committer_name", "..."),
        ("committer_name", "a <b"),
        ("committer_name", "a\n"),
        ("committer_email", "a b"),
        ("committer_email", "<a@b>"),
        ("committer_email", "a@b\n"),
        ("runner_limit", 0),
        ("runner_sandbox", "docker"),
        ("runner_network", "yes"),
        ("runner_paths", "opt"),
        ("runner_paths", "/opt:"),
        ("runner_max_disk_mb", 0),
        ("runner_max_processes", 0),
        ("public_url", "queue.example.com"),
        ("public_url", "ftp://queue.example.com"),
        ("public_url", "http://"),
        ("public_url", "http://[::1"),
        ("public_url", "http://a:99999"),
        ("public_url", "http://a b"),
        ("public_url", "http://a/?b=c"),
        ("public_url", "http://a/\n"),
    ],
)
def test_an_invalid_value_is_refused_with_what_was_expected(key: str, value: object):
    assert problem(key, value).startswith(f"expected {describe_expected(key)}, not {value!r}"[:60])


def test_a_long_value_is_cut():
    assert len(problem("port", "9" * 10_000)) < 200


# Databases

EXPECTED = "expected postgresql://USER:PASSWORD@HOST/NAME, or sqlite:///PATH with the path of a file"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_database_server_url_is_kept_unchanged(scheme: str):
    address = f"{scheme}://queue:hunter2@db:5433/queue?sslmode=require"
    assert parse_value(given("database_url", address)) == address


@pytest.mark.parametrize("rest", ["", "u:hunter2@db", "u:hunter2@db/", "u:hunter2@db:0/q", "u:hunter2@db:port/q"])
def test_a_database_server_without_a_database_is_refused_without_its_password(rest: str):
    message = problem("database_url", f"postgresql://{rest}")
    assert message == "expected postgresql://USER:PASSWORD@HOST/NAME"


@pytest.mark.parametrize("address", ["mysql://u:hunter2@db", "sqlite://", "sqlite:///", "hunter2", "sqlite:///a\0b"])
def test_an_invalid_database_url_is_refused_without_repeating_it(address: str):
    assert problem("database_url", address) == EXPECTED


def test_a_database_url_of_the_wrong_type_is_not_repeated_either():
    assert "hunter2" not in problem("database_url", ["postgresql://u:hunter2@db"])


def test_a_database_in_memory_is_refused():
    assert "loses the queue" in problem("database_url", "sqlite:///:memory:")


# Roles and addresses


def test_an_unknown_role_is_refused():
    assert problem("role", "boss") == "expected one of all, api, worker, not 'boss'"


def test_a_public_address_loses_its_last_slash():
    assert parse_value(given("public_url", "https://example.com/queue/")) == "https://example.com/queue"


def test_a_public_address_with_a_password_is_refused_and_not_repeated():
    assert "hunter2" not in problem("public_url", "https://me:hunter2@example.com")
    assert "hunter2" not in problem("public_url", "ftp://me:hunter2@example.com")
