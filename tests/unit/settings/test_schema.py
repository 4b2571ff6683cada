"""Values that are derived from the settings, and what is hidden when they are shown."""

from pathlib import Path

import pytest
from rich.pretty import pretty_repr

from mergeyard.settings import Settings

SECRET_ADDRESSES = [
    "postgresql://queue:hunter2@db/queue",
    "postgresql://queue:hunter2/@@db/queue",
    "postgresql://db/queue?user=queue&password=hunter2",
    "host=db password=hunter2",
]


def test_the_database_is_in_the_data_folder_unless_a_url_is_set():
    assert Settings(data_dir=Path("here")).database_path == Path("here/mergeyard.db")
    assert Settings(database_url="sqlite:////var/queue.db").database_path == Path("/var/queue.db")
    assert Settings(database_url="sqlite:///queue.db").database_path == Path("queue.db")


def test_the_public_url_is_the_listening_address_unless_set():
    assert Settings().build_public_url(4711) == "http://127.0.0.1:4711"
    assert Settings(host="::1").build_public_url(4711) == "http://[::1]:4711"
    assert Settings(public_url="https://queue.example.com").build_public_url(4711) == "https://queue.example.com"


@pytest.mark.parametrize("address", SECRET_ADDRESSES)
def test_the_password_of_a_database_is_never_shown(address: str):
    settings = Settings(database_url=address)
    assert "hunter2" not in repr(settings) + str(settings) + pretty_repr(settings)


@pytest.mark.parametrize(
    ("address", "unverified"),
    [
        ("postgresql://ada@db.example/queue", True),
        ("postgresql://ada@db.example/queue?sslmode=require", True),
        ("postgresql://ada@db.example/queue?sslmode=verify-full", False),
        ("postgresql://ada@localhost/queue", False),
        ("postgresql:///queue?host=/run/postgresql", False),
        ("postgresql:///queue?host=db.example", True),
        ("sqlite:///queue.db", False),
    ],
)
def test_a_remote_connection_without_certificate_verification_is_detected(address: str, unverified: bool):
    assert Settings(database_url=address).is_database_unverified is unverified


def test_other_settings_are_shown():
    shown = repr(Settings(database_url="sqlite:///queue.db", port=4711))
    assert "port=4711" in shown
    assert "database_url='sqlite:///queue.db'" in shown
