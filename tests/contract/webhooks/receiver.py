"""A receiver on loopback that records requests and sends a fixed response, over TLS if it has a certificate."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext, create_default_context

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nthanks"


class Receiver:
    def __init__(self, answer: bytes, *, endless: bool = False) -> None:
        self.requests = list[bytes]()
        self.port = 0
        self._answer = answer
        self._endless = endless

    async def receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if b"content-length" in line.lower())
            self.requests.append(head + await reader.readexactly(length))
            writer.write(self._answer)
            while self._endless:
                writer.write(b"x")
                await asyncio.sleep(0.01)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def a_receiver(
    answer: bytes = OK, *, identity: SSLContext | None = None, endless: bool = False
) -> AsyncGenerator[Receiver]:
    receiver = Receiver(answer, endless=endless)
    server = await asyncio.start_server(receiver.receive, "127.0.0.1", 0, ssl=identity)
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver


def an_identity(name: str, folder: Path) -> tuple[SSLContext, SSLContext]:
    """TLS contexts of a server with this name, and of a client that trusts it."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "identity.pem"
    plain = serialization.NoEncryption()
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + secret)
    server = SSLContext(PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return server, create_default_context(cafile=str(file))
