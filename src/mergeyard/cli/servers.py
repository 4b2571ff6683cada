"""The servers that a user signed in to, with their tokens, and which server a command calls."""

import json
import os
import re
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path

import httpx2
from msgspec import DecodeError, Struct, ValidationError, convert, field

from mergeyard.cli.output import sanitize

SERVER_VARIABLE, URL_VARIABLE = "MERGEYARD_SERVER", "MERGEYARD_URL"
TOKEN_FILE_VARIABLE, TOKEN_VARIABLE = "MERGEYARD_TOKEN_FILE", "MERGEYARD_TOKEN"
NAME_PATTERN = re.compile(r"[\w.:-]+", re.ASCII)


class ServerError(Exception):
    """The server or its token cannot be determined. The message says why, `hint` what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class StoredServer(Struct, frozen=True):
    url: str
    token: str


class StoredServers(Struct, frozen=True):
    """The contents of `servers.toml`."""

    default: str | None = None
    servers: Mapping[str, StoredServer] = field(default_factory=dict[str, StoredServer])

    def find_name(self, url: str) -> str | None:
        """The name under which this URL is stored."""
        return next((name for name, server in self.servers.items() if server.url == url), None)


def locate_file() -> Path:
    """A relative folder is ignored, as the standard of that variable demands: any checkout could contain it."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    folder = folder if os.path.isabs(folder) else os.path.expanduser("~/.config")
    return Path(folder) / "mergeyard" / "servers.toml"


def read_servers() -> StoredServers:
    file = locate_file()
    try:
        return convert(tomllib.loads(file.read_text(encoding="utf-8")), StoredServers)
    except (FileNotFoundError, NotADirectoryError):
        return StoredServers()
    except OSError as error:
        raise ServerError(f"Cannot read {file} ({error.strerror}).", "Check who owns the file.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, DecodeError, ValidationError) as error:
        advice = "Correct the file, or delete it and sign in again with `mergeyard login URL`."
        raise ServerError(f"{file} is not valid ({error}).", advice) from None


def write_servers(stored: StoredServers) -> Path:
    """Only the user can read the file. It replaces the old one as a whole, so that a failure leaves that one."""
    file = locate_file().resolve()
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, encoding="utf-8", delete=False) as new:
            try:
                new.write(encode_servers(stored))
                new.flush()
                os.replace(new.name, file)
            except BaseException:  # also Ctrl-C: the file contains tokens
                os.unlink(new.name)
                raise
    except OSError as error:
        advice = "Make the folder writable, or choose another one with XDG_CONFIG_HOME."
        raise ServerError(f"Cannot write {file} ({error.strerror}).", advice) from None
    return file


def encode_servers(stored: StoredServers) -> str:
    """Names, URLs and tokens have no characters that TOML and JSON write differently."""
    default = [] if stored.default is None else [f"default = {json.dumps(stored.default)}"]
    tables = [
        f"\n[servers.{json.dumps(name)}]\nurl = {json.dumps(server.url)}\ntoken = {json.dumps(server.token)}"
        for name, server in stored.servers.items()
    ]
    return "\n".join([*default, *tables]) + "\n"


class Server(Struct, frozen=True, kw_only=True):
    """The server that a command calls."""

    name: str
    url: str
    is_named_by_url: bool
    """Only together with a URL is a token from the environment used: that token belongs to no stored server."""


def is_valid_name(name: str) -> bool:
    return NAME_PATTERN.fullmatch(name) is not None


def normalize_url(url: str) -> str:
    """An invalid URL stays as it is: the client refuses it. A password in a URL would be shown in messages, and a name
    before an @ can look like the name of another server."""
    try:
        parsed = httpx2.URL(url)
        parsed = httpx2.URL(str(parsed))  # again, because the port 443 is only removed after https in lower case
    except httpx2.InvalidURL:
        return url
    if parsed.userinfo or parsed.query or parsed.fragment:
        advice = "Write it as https://queue.example.com."
        raise ServerError("The URL of a server has no user name, no query and no fragment.", advice)
    return str(parsed).rstrip("/")


def name_server(url: str) -> str:
    """`queue.example.com`, or `localhost:8080`."""
    try:
        return httpx2.URL(url).netloc.decode("ascii") or url
    except httpx2.InvalidURL:
        return url


def is_exposed(url: str) -> bool:
    """Whether a token travels to this server over a network without encryption."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        return False
    try:
        is_local = ip_address(parsed.host).is_loopback
    except ValueError:
        is_local = parsed.host == "localhost"
    return parsed.scheme == "http" and not is_local


def find_server(url: str | None, name: str | None) -> Server | None:
    """The server that the options, the variables or the stored default choose, in this order."""
    if url and name:
        raise ServerError("--url and --server both choose a server.", "Pass one of the two.")
    url = url or ("" if name else os.environ.get(URL_VARIABLE))
    if url:
        url = normalize_url(url)
        return Server(name=name_server(url), url=url, is_named_by_url=True)
    stored = read_servers()
    name = name or os.environ.get(SERVER_VARIABLE) or stored.default
    if not name:
        return None
    server = stored.servers.get(name)
    if server is None:
        known = ", ".join(map(sanitize, stored.servers)) or "none yet"
        advice = f"Servers that you signed in to: {known}. Add one with `mergeyard login URL`."
        raise ServerError(f"No stored server has the name {sanitize(name)}.", advice)
    return Server(name=name, url=server.url, is_named_by_url=False)


def read_token(server: Server, token_file: Path | None) -> str:
    """The token for this server: of the option, of the environment, or the stored one, which is sent to no other
    server than the one that it was stored for."""
    environment: Mapping[str, str] = os.environ if server.is_named_by_url else {}
    if token_file is None and environment.get(TOKEN_FILE_VARIABLE):
        token_file = Path(environment[TOKEN_FILE_VARIABLE])
    if token_file is not None:
        return read_token_file(token_file)
    token = environment.get(TOKEN_VARIABLE, "").strip()
    if token:
        return token
    stored = read_servers()
    name = stored.find_name(server.url) if server.is_named_by_url else server.name
    if name is None:
        advice = f"Sign in with `mergeyard login {sanitize(server.url)}`, or set {TOKEN_VARIABLE} to a token."
        raise ServerError(f"No token is given for {sanitize(server.url)}.", advice)
    return stored.servers[name].token


def read_token_file(file: Path) -> str:
    """`-` is standard input."""
    try:
        token = (sys.stdin.read() if str(file) == "-" else file.read_text()).strip()
    except (OSError, UnicodeDecodeError) as error:
        advice = "Pass another file with --token-file."
        raise ServerError(f"Cannot read the token from {file} ({error}).", advice) from None
    if not token:
        raise ServerError(f"{file} contains no token.", "Pass another file with --token-file.")
    return token
