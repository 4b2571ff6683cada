"""Which values fit a setting, and what is said about those that do not."""

from pathlib import Path

import pytest

from mergeyard.settings import Settings
from mergeyard.settings.fitting import expected, fit
from mergeyard.settings.sources import SIMPLE_KEYS, Complaint, Given


def given(key: str, value: object) -> Given:
    return Given(key=key, value=value, where="here", beside=Path("etc"), has_types=True)


def complaint(key: str, value: object) -> str:
    outcome = fit(given(key, value))
    assert isinstance(outcome, Complaint)
    assert outcome.words.startswith("here: ")
    return outcome.words.removeprefix("here: ")


@pytest.mark.parametrize("key", SIMPLE_KEYS)
def test_there_are_words_for_what_every_setting_expects(key: str):
    assert expected(key)


@pytest.mark.parametrize("key", sorted({*SIMPLE_KEYS} - {"data_dir", "database_url", "public_url"}))
def test_the_defaults_fit(key: str):
    assert fit(given(key, getattr(Settings(), key))) == getattr(Settings(), key)


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
def test_what_does_not_fit_is_refused_with_what_was_expected(key: str, value: object):
    assert complaint(key, value).startswith(f"expected {expected(key)}, not {value!r}"[:60])


def test_a_long_value_is_cut():
    assert len(complaint("port", "9" * 10_000)) < 200


# Databases

EXPECTED = "expected postgresql://USER:PASSWORD@HOST/NAME, or sqlite:///PATH with the path of a file"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_database_server_is_taken_as_it_is(scheme: str):
    address = f"{scheme}://queue:hunter2@db:5433/queue?sslmode=require"
    assert fit(given("database_url", address)) == address


@pytest.mark.parametrize("rest", ["", "u:hunter2@db", "u:hunter2@db/", "u:hunter2@db:0/q", "u:hunter2@db:port/q"])
def test_a_database_server_without_a_database_is_refused_without_its_password(rest: str):
    words = complaint("database_url", f"postgresql://{rest}")
    assert words == "expected postgresql://USER:PASSWORD@HOST/NAME"


@pytest.mark.parametrize("address", ["mysql://u:hunter2@db", "sqlite://", "sqlite:///", "hunter2", "sqlite:///a\0b"])
def test_what_is_no_database_is_refused_without_repeating_it(address: str):
    assert complaint("database_url", address) == EXPECTED


def test_a_database_of_the_wrong_type_is_not_repeated_either():
    assert "hunter2" not in complaint("database_url", ["postgresql://u:hunter2@db"])


def test_a_database_in_memory_is_refused_because_it_forgets():
    assert "would forget" in complaint("database_url", "sqlite:///:memory:")


# Roles and addresses


def test_a_role_that_never_was_is_refused():
    assert complaint("role", "boss") == "expected one of all, api, worker, not 'boss'"


def test_a_public_address_loses_its_last_slash():
    assert fit(given("public_url", "https://example.com/queue/")) == "https://example.com/queue"


def test_a_public_address_with_a_password_is_refused_and_not_repeated():
    assert "hunter2" not in complaint("public_url", "https://me:hunter2@example.com")
    assert "hunter2" not in complaint("public_url", "ftp://me:hunter2@example.com")
