"""Which server a command calls, which token it sends, and how the servers are stored."""

import stat
from pathlib import Path

import pytest

from mergeyard.cli import servers
from mergeyard.cli.servers import Server, ServerError, StoredServer, StoredServers, find_server, read_token
from mergeyard.cli.session import ServerSession

WORK, HOME = StoredServer("https://work.example.com", "my_work"), StoredServer("http://localhost:8080", "my_home")


@pytest.fixture(autouse=True)
def config_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("SERVER", "URL", "TOKEN", "TOKEN_FILE"):
        monkeypatch.delenv(f"MERGEYARD_{name}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config"


@pytest.fixture
def stored() -> StoredServers:
    stored = StoredServers("work", {"work": WORK, "localhost:8080": HOME})
    servers.write_servers(stored)
    return stored


def found(url: str | None = None, name: str | None = None) -> tuple[str, str]:
    """The URL and the token that a command uses."""
    server = find_server(url, name)
    assert server is not None
    return server.url, read_token(server, None)


# The file


def test_only_the_user_can_read_the_file_and_its_folder(config_home: Path, stored: StoredServers):
    file = config_home / "mergeyard" / "servers.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert servers.read_servers() == stored
    file.chmod(0o644)
    servers.write_servers(stored)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.usefixtures("stored")
def test_a_file_that_is_a_link_stays_one(config_home: Path, tmp_path: Path):
    file, real = config_home / "mergeyard" / "servers.toml", tmp_path / "dotfiles.toml"
    file.rename(real)
    file.symlink_to(real)
    servers.write_servers(StoredServers("home", {"home": HOME}))
    assert file.is_symlink()
    assert "my_home" in real.read_text()


def test_without_a_variable_the_file_is_in_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert servers.locate_file() == tmp_path / ".config" / "mergeyard" / "servers.toml"


def test_a_relative_folder_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A checkout could contain it, with the address of another server."""
    monkeypatch.setenv("XDG_CONFIG_HOME", "config")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert servers.locate_file() == tmp_path / ".config" / "mergeyard" / "servers.toml"


@pytest.mark.parametrize("content", ["default = ", "servers = 3", "[servers.x]\nurl = 'u'", "\udcff"])
def test_an_invalid_file_is_named_with_the_way_out(config_home: Path, content: str):
    file = config_home / "mergeyard" / "servers.toml"
    file.parent.mkdir(parents=True)
    file.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(ServerError, match="is not valid") as refused:
        servers.read_servers()
    assert "sign in again with `mergeyard login URL`" in refused.value.hint


def test_a_folder_that_cannot_be_written_is_named(config_home: Path, stored: StoredServers):
    (config_home / "mergeyard" / "servers.toml").unlink()
    (config_home / "mergeyard").rmdir()
    (config_home / "mergeyard").write_text("a file")
    with pytest.raises(ServerError, match=r"Cannot write .*servers\.toml") as refused:
        servers.write_servers(stored)
    assert "XDG_CONFIG_HOME" in refused.value.hint


@pytest.mark.parametrize(
    ("url", "exposed"),
    [
        ("http://queue.example.com", True),
        ("http://localhost.example.com:8080", True),
        ("http://10.0.0.1", True),
        ("http://xn--a", True),
        ("https://queue.example.com", False),
        ("http://localhost:8080", False),
        ("http://127.0.0.1:8080", False),
        ("http://[::1]:8080", False),
    ],
)
def test_a_token_over_plain_http_is_exposed_except_on_this_machine(url: str, exposed: bool):
    assert servers.is_exposed(url) == exposed


# The choice


@pytest.mark.usefixtures("stored")
def test_options_come_before_variables_and_the_default_last(monkeypatch: pytest.MonkeyPatch):
    assert found() == (WORK.url, WORK.token)
    monkeypatch.setenv("MERGEYARD_SERVER", "localhost:8080")
    assert found() == (HOME.url, HOME.token)
    monkeypatch.setenv("MERGEYARD_URL", "https://other.example.com/")
    monkeypatch.setenv("MERGEYARD_TOKEN", " my_other\n")
    assert found() == ("https://other.example.com", "my_other")
    assert found(name="work") == (WORK.url, WORK.token)
    assert found(url="https://third.example.com") == ("https://third.example.com", "my_other")
    with pytest.raises(ServerError, match="both choose a server"):
        find_server("https://third.example.com", "work")


@pytest.mark.usefixtures("stored")
def test_a_token_of_the_environment_is_not_sent_to_a_stored_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("MERGEYARD_TOKEN", "my_other")
    assert found() == (WORK.url, WORK.token)
    assert ServerSession().has_token
    assert capsys.readouterr().err == "MERGEYARD_TOKEN is not used: it needs --url or MERGEYARD_URL.\n"
    (tmp_path / "token").write_text("my_file")
    monkeypatch.setenv("MERGEYARD_TOKEN_FILE", str(tmp_path / "token"))
    assert found() == (WORK.url, WORK.token)
    assert found(url="https://other.example.com") == ("https://other.example.com", "my_file")


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("url", ["https://other.example.com", "http://work.example.com", "https://work.example.com:1"])
def test_a_stored_token_is_sent_to_no_other_server(url: str):
    server = find_server(url, None)
    assert server is not None
    with pytest.raises(ServerError, match="No token is given") as refused:
        read_token(server, None)
    assert f"`mergeyard login {url}`" in refused.value.hint


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    "url", ["https://work.example.com", "https://WORK.example.com:443/", "HTTPS://work.example.com:443"]
)
def test_the_url_of_a_stored_server_finds_its_token(url: str):
    assert found(url=url) == (WORK.url, WORK.token)


@pytest.mark.parametrize(
    "url",
    [
        "https://ada:secret@work.example.com",
        r"https://work.example.com\@evil.example",
        "https://a.example/?b",
        "https://a.example/#b",
    ],
)
def test_a_url_that_hides_a_password_or_another_host_is_refused(url: str):
    with pytest.raises(ServerError, match="has no user name, no query and no fragment") as refused:
        find_server(url, None)
    assert "secret" not in f"{refused.value} {refused.value.hint}"


def test_a_name_that_is_not_stored_is_refused_with_those_that_are(stored: StoredServers):
    with pytest.raises(ServerError, match="No stored server has the name wrk") as refused:
        find_server(None, "wrk")
    assert ", ".join(stored.servers) in refused.value.hint


def test_an_empty_token_file_is_refused(tmp_path: Path):
    (tmp_path / "token").write_text("\n")
    server = Server(name="x", url="https://x.example.com", is_named_by_url=True)
    for file, message in ((tmp_path / "token", "contains no token"), (tmp_path, "Cannot read the token")):
        with pytest.raises(ServerError, match=message):
            read_token(server, file)


def test_a_session_knows_whether_a_server_is_configured(config_home: Path, monkeypatch: pytest.MonkeyPatch):
    assert not ServerSession().is_configured
    assert ServerSession(url="https://queue.example.com").is_configured
    assert ServerSession(server="gone").is_configured
    monkeypatch.setenv("MERGEYARD_URL", "https://queue.example.com")
    assert ServerSession().is_configured
    monkeypatch.delenv("MERGEYARD_URL")
    monkeypatch.setenv("MERGEYARD_SERVER", "gone")
    assert ServerSession().is_configured  # so that no command silently uses a database instead
    assert not ServerSession().has_token
    monkeypatch.delenv("MERGEYARD_SERVER")
    servers.write_servers(StoredServers("work", {"work": WORK}))
    assert ServerSession().is_configured
    (config_home / "mergeyard" / "servers.toml").write_text("broken")
    assert not ServerSession().is_configured
