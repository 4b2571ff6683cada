"""A Git host whose certificate a private authority issued: the API client and git both verify it."""

import ipaddress
import ssl
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from msgspec import Struct

from mergeyard.adapters.clock import WallClock
from mergeyard.adapters.forges import http
from mergeyard.adapters.forges.gitea.host import GiteaHost
from mergeyard.adapters.forges.http import ForgeConfig
from mergeyard.domain.ids import Repo
from mergeyard.ports.forge import HostUnavailable
from mergeyard.ports.git import Git, GitError
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin

MAIN = "refs/heads/main"
REPO = Repo("git.local", "acme", "app")


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


class SecureHost(Struct, frozen=True):
    """The files of a folder over TLS: a repository as git can read it from any web server, and one API call."""

    url: str
    ca_file: Path

    def connect(self, ca_file: Path | None = None) -> GiteaHost:
        config = ForgeConfig(
            name=REPO.host, web_url=self.url, api_url=f"{self.url}/api", token="secret", ca_file=ca_file
        )
        return GiteaHost(config, WallClock())


def issue_certificates(folder: Path) -> tuple[Path, Path]:
    """The certificate of an authority, and the key and certificate that it issued for a server on loopback."""
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca_name, name = (
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)]) for text in ("Private CA", "loopback")
    )
    now = datetime.now(UTC)
    base = (
        x509.CertificateBuilder()
        .issuer_name(ca_name)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
    )
    authority = (
        base.subject_name(ca_name)
        .public_key(ca_key.public_key())
        .serial_number(1)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    server = (
        base.subject_name(name)
        .public_key(key.public_key())
        .serial_number(2)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    ca_file, server_file = folder / "ca.pem", folder / "server.pem"
    ca_file.write_bytes(authority.public_bytes(Encoding.PEM))
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    server_file.write_bytes(secret + server.public_bytes(Encoding.PEM))
    return ca_file, server_file


@pytest.fixture
def secure(tmp_path: Path) -> Generator[SecureHost]:
    (tmp_path / "public" / "api" / "repos" / "acme").mkdir(parents=True)
    (tmp_path / "public" / "acme").mkdir()
    (tmp_path / "public" / "api" / "repos" / "acme" / "app").write_text("{}")
    origin = Origin.create(tmp_path / "public" / "acme" / "app.git")
    origin.commit("main", {"a.txt": "1"})
    origin.run("update-server-info")
    ca_file, server_file = issue_certificates(tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=tmp_path / "public"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server_file)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield SecureHost(f"https://127.0.0.1:{server.server_address[1]}", ca_file)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def check_api(host: GiteaHost) -> None:
    try:
        assert await host.has_repository(REPO)
    finally:
        await host.close()


async def check_git(git: Git, host: GiteaHost) -> None:
    mirror = await git.mirror(str(REPO), await host.remote(REPO))
    assert list(await mirror.remote_refs(MAIN)) == [MAIN]


@asynchronous
async def test_the_configured_authority_is_trusted_by_the_api_client_and_by_git(secure: SecureHost, git: Git):
    await check_api(secure.connect(secure.ca_file))
    await check_git(git, secure.connect(secure.ca_file))


@asynchronous
async def test_an_authority_that_is_not_configured_is_not_trusted(secure: SecureHost, git: Git):
    with pytest.raises(HostUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
        await check_api(secure.connect())
    with pytest.raises(GitError, match="certificate"):
        await check_git(git, secure.connect())


def test_the_certificates_of_the_system_are_trusted_by_default(monkeypatch: pytest.MonkeyPatch):
    """As git does. A store that is a folder has no certificate in memory before the first connection."""
    for variable in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(variable, raising=False)
    http.load_certificates.cache_clear()
    try:
        loaded = http.load_certificates(None)
    finally:
        http.load_certificates.cache_clear()
    assert loaded.get_ca_certs() == ssl.create_default_context().get_ca_certs()


@pytest.mark.parametrize("is_relative", [False, True])
@asynchronous
async def test_the_file_of_the_environment_is_used_by_the_api_client_and_by_git(
    secure: SecureHost, git: Git, monkeypatch: pytest.MonkeyPatch, is_relative: bool
):
    other = Path(__file__).parents[2] / "support" / "no_public_authority.pem"
    monkeypatch.delenv("GIT_SSL_CAINFO", raising=False)
    monkeypatch.chdir(secure.ca_file.parent)
    monkeypatch.setenv("SSL_CERT_FILE", secure.ca_file.name if is_relative else str(secure.ca_file))
    http.load_certificates.cache_clear()
    try:
        await check_api(secure.connect())
        await check_git(git, secure.connect())
        with pytest.raises(HostUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            await check_api(secure.connect(other))
        with pytest.raises(GitError, match="certificate"):
            await check_git(git, secure.connect(other))
        monkeypatch.setenv("GIT_SSL_CAINFO", str(other))
        with pytest.raises(GitError, match="certificate"):
            await check_git(git, secure.connect())
    finally:
        http.load_certificates.cache_clear()
