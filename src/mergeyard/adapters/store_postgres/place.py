"""Says where a database is, without the secrets that its URL holds."""

import re
from urllib.parse import parse_qs, urlsplit

from mergeyard.ports.store import StoreTrouble

SCHEMES = {"postgresql", "postgres"}
HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]*)(:\d+)?")
MALFORMED = (
    "The URL of the database cannot be understood. Write postgresql://user:password@host:port/database, "
    "and in user and password %40 for @, %2F for /, %3A for :, %3F for ? and %23 for #."
)


def place_of(url: str) -> str:
    """A sign that stands where it may not could make a part of the password look like a host, so it is refused."""
    try:
        parts = urlsplit(url)
        query = parse_qs(parts.query, strict_parsing=bool(parts.query))
    except ValueError:
        raise StoreTrouble(MALFORMED) from None
    login, _, hosts = parts.netloc.rpartition("@")
    strays = "@" in login + parts.path + parts.query or parts.fragment
    if parts.scheme not in SCHEMES or strays or not _are_hosts(hosts) or not _are_ports(query.get("port", [])):
        raise StoreTrouble(MALFORMED)
    where = hosts or query.get("host", ["the usual place"])[-1]
    return f"The database {parts.path.removeprefix('/')!r} at {where}"


def _are_hosts(hosts: str) -> bool:
    return all(HOST.fullmatch(host) for host in hosts.split(","))


def _are_ports(ports: list[str]) -> bool:
    return all(port.isdecimal() for listed in ports for port in listed.split(","))
