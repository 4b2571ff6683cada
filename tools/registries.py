"""Reads from the registries a package's archives, its vulnerabilities, and its published files."""

import base64
import hashlib
import io
import re
import tarfile
from collections.abc import Sequence
from html import unescape
from typing import Any

import httpx2
from msgspec import Struct

from tools.lock import Pin
from tools.vendored import Vendored

LINK = re.compile(r"<a\s([^>]*)>([^<]+)</a>", re.IGNORECASE)
HASH = re.compile(r"#sha256=([0-9a-f]{64})")


class DataUnavailable(Exception):
    """The registry cannot be reached, or does not provide this data."""


class Archive(Struct, frozen=True):
    name: str
    sha256: str
    withdrawn: bool


class Vulnerability(Struct, frozen=True):
    package: str
    id: str
    summary: str


class PythonRegistry:
    def __init__(self, client: httpx2.Client, url: str) -> None:
        self._client = client
        self._url = url

    def archives(self, pin: Pin) -> list[Archive]:
        """Returns all archives that were ever published under the name, of every version."""
        text = require_success(self._client.get(f"{self._url}/simple/{pin.name}/")).text
        links = ((unescape(attributes), name) for attributes, name in LINK.findall(text))
        return [
            Archive(name.strip(), found[1], "data-yanked" in attributes)
            for attributes, name in links
            if (found := HASH.search(attributes))
        ]

    def vulnerabilities(self, pin: Pin) -> list[Vulnerability]:
        """Returns the known vulnerabilities of that exact version."""
        details = require_success(self._client.get(f"{self._url}/pypi/{pin.name}/{pin.version}/json")).json()
        if "vulnerabilities" not in details:
            raise DataUnavailable(f"{self._url} does not report vulnerabilities")
        known = (advisory for advisory in details["vulnerabilities"] if not advisory.get("withdrawn"))
        return [
            Vulnerability(f"{pin.name} {pin.version}", advisory["id"], _describe_fix(advisory.get("fixed_in")))
            for advisory in known
        ]


class JavascriptRegistry:
    def __init__(self, client: httpx2.Client, url: str) -> None:
        self._client = client
        self._url = url

    def published(self, package: Vendored) -> dict[str, bytes]:
        """Returns the files of its archive, by their paths in it."""
        about: Any = require_success(self._client.get(f"{self._url}/{package.package}/{package.version}")).json()
        archive = require_success(self._client.get(about["dist"]["tarball"])).content
        algorithm, _, digest = about["dist"]["integrity"].partition("-")
        if base64.b64encode(hashlib.new(algorithm, archive).digest()).decode() != digest:
            raise DataUnavailable(f"the archive of {package.package} is not the one that was published")
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            return {
                member.name.removeprefix("package/"): content.read()
                for member in files
                if (content := files.extractfile(member))
            }

    def vulnerabilities(self, packages: Sequence[Vendored]) -> list[Vulnerability]:
        versions = {package.package: [package.version] for package in packages}
        known: Any = require_success(
            self._client.post(f"{self._url}/-/npm/v1/security/advisories/bulk", json=versions)
        ).json()
        return [
            Vulnerability(name, str(advisory["id"]), advisory["title"])
            for name, advisories in known.items()
            for advisory in advisories
        ]


def require_success(response: httpx2.Response) -> httpx2.Response:
    if not response.is_success:
        raise DataUnavailable(f"{response.request.url} returned {response.status_code}")
    return response


def _describe_fix(versions: Sequence[str] | None) -> str:
    return f"fixed in {', '.join(versions)}" if versions else "not fixed in any version"
