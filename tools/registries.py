"""Asks the registries what they know of a package: its archives, its faults, and what was published in it."""

import base64
import hashlib
import io
import re
import tarfile
from collections.abc import Sequence
from html import unescape
from typing import Any

import httpx
from msgspec import Struct

from tools.lock import Pin
from tools.vendored import Vendored

LINK = re.compile(r"<a\s([^>]*)>([^<]+)</a>", re.IGNORECASE)
HASH = re.compile(r"#sha256=([0-9a-f]{64})")


class NotTold(Exception):
    """The registry cannot be reached, or does not answer this question."""


class Archive(Struct, frozen=True):
    name: str
    sha256: str
    withdrawn: bool


class Fault(Struct, frozen=True):
    package: str
    id: str
    words: str


class PythonRegistry:
    def __init__(self, client: httpx.Client, url: str) -> None:
        self._client = client
        self._url = url

    def archives(self, pin: Pin) -> list[Archive]:
        """All that were ever published under the name, of every version."""
        text = told(self._client.get(f"{self._url}/simple/{pin.name}/")).text
        links = ((unescape(attributes), name) for attributes, name in LINK.findall(text))
        return [
            Archive(name.strip(), found[1], "data-yanked" in attributes)
            for attributes, name in links
            if (found := HASH.search(attributes))
        ]

    def faults(self, pin: Pin) -> list[Fault]:
        """Those that are known of the very version."""
        told_of_it = told(self._client.get(f"{self._url}/pypi/{pin.name}/{pin.version}/json")).json()
        if "vulnerabilities" not in told_of_it:
            raise NotTold(f"{self._url} tells nothing of faults")
        known = (fault for fault in told_of_it["vulnerabilities"] if not fault.get("withdrawn"))
        return [Fault(f"{pin.name} {pin.version}", fault["id"], _fixed(fault.get("fixed_in"))) for fault in known]


class JavascriptRegistry:
    def __init__(self, client: httpx.Client, url: str) -> None:
        self._client = client
        self._url = url

    def published(self, package: Vendored) -> dict[str, bytes]:
        """The files of its archive, by their paths in it."""
        about: Any = told(self._client.get(f"{self._url}/{package.package}/{package.version}")).json()
        archive = told(self._client.get(about["dist"]["tarball"])).content
        algorithm, _, digest = about["dist"]["integrity"].partition("-")
        if base64.b64encode(hashlib.new(algorithm, archive).digest()).decode() != digest:
            raise NotTold(f"the archive of {package.package} is not the one that was published")
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            return {
                member.name.removeprefix("package/"): content.read()
                for member in files
                if (content := files.extractfile(member))
            }

    def faults(self, packages: Sequence[Vendored]) -> list[Fault]:
        asked = {package.package: [package.version] for package in packages}
        known: Any = told(self._client.post(f"{self._url}/-/npm/v1/security/advisories/bulk", json=asked)).json()
        return [Fault(name, str(fault["id"]), fault["title"]) for name, faults in known.items() for fault in faults]


def told(response: httpx.Response) -> httpx.Response:
    if not response.is_success:
        raise NotTold(f"{response.request.url} answered {response.status_code}")
    return response


def _fixed(versions: Sequence[str] | None) -> str:
    return f"repaired in {', '.join(versions)}" if versions else "not repaired anywhere"
