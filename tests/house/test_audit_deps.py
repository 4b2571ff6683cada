"""What we depend on is compared with what registries say of it; what they do not tell is said to be not checked."""

import base64
import hashlib
import io
import shutil
import tarfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from msgspec import json

from tools.audit_deps import Report, audit, fits
from tools.lock import RUN, Pin, entries, pins
from tools.vendored import FOLDER, Vendored, vendored


class Registry:
    """Both in one, on loopback. It says of every package that all is well, until a test says otherwise."""

    def __init__(self, lock: Path) -> None:
        self.lock = lock
        self.pages = dict[str, bytes]()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        self.publish_all()

    def publish_all(self) -> None:
        for pin in pins(self.lock):
            self.publish(pin)
            self.tell_faults(pin)
        for package in vendored():
            self.publish_files(package)
        self.pages["/-/npm/v1/security/advisories/bulk"] = b"{}"

    def publish(self, pin: Pin, *, wheel: str = "py3-none-any", withdrawn: str = "") -> None:
        name = f"{pin.name}-{pin.version}-{wheel}.whl"
        links = (f'<a href="{name}#sha256={each}"{withdrawn}>{name}</a>' for each in pin.hashes)
        self.pages[f"/simple/{pin.name}/"] = "\n".join(links).encode()

    def tell_faults(self, pin: Pin, *faults: dict[str, Any]) -> None:
        self.pages[f"/pypi/{pin.name}/{pin.version}/json"] = json.encode({"vulnerabilities": faults})

    def publish_files(self, package: Vendored) -> None:
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:gz") as files:
            for ours, theirs in package.files.items():
                files.add(FOLDER / ours, f"package/{theirs}")
        digest = base64.b64encode(hashlib.sha512(archive.getvalue()).digest()).decode()
        place = f"/{package.package}.tgz"
        self.pages[place] = archive.getvalue()
        dist = {"tarball": f"{self.url}{place}", "integrity": f"sha512-{digest}"}
        self.pages[f"/{package.package}/{package.version}"] = json.encode({"dist": dist})

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        pages = self.pages

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = pages.get(self.path)
                self.send_response(404 if found is None else 200)
                self.end_headers()
                self.wfile.write(found or b"")

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.do_GET()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Nobody reads it."""

        return Handler


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """The first of our own; the others are like them."""
    lock = tmp_path / "lock.txt"
    lock.write_text("\n".join(entries(RUN.read_text())[:3]))
    return lock


@pytest.fixture
def registry(lock: Path) -> Iterator[Registry]:
    registry = Registry(lock)
    yield registry
    registry.close()


def audited(registry: Registry, folder: Path = FOLDER) -> list[Report]:
    return audit(registry.url, registry.url, [registry.lock], folder)


def wrong(registry: Registry, folder: Path = FOLDER) -> list[str]:
    return [words for report in audited(registry, folder) for words in report.wrong]


def a_pin() -> Pin:
    return pins(RUN)[0]


def test_where_all_is_well_everything_was_checked(registry: Registry):
    reports = audited(registry)
    assert [(report.wrong, report.not_told) for report in reports] == [([], [])] * 4
    assert [report.checked for report in reports] == [3, 3, len(vendored()), 1]


def test_a_known_fault_is_told_with_the_version_that_repairs_it(registry: Registry):
    registry.tell_faults(a_pin(), {"id": "PYSEC-2026-1", "fixed_in": ["9.9"]}, {"id": "old", "withdrawn": "2026"})
    assert wrong(registry) == [f"{a_pin().name} {a_pin().version}: PYSEC-2026-1, repaired in 9.9"]


def test_a_version_that_was_withdrawn_is_told(registry: Registry):
    registry.publish(a_pin(), withdrawn=' data-yanked="a mistake"')
    assert "was withdrawn" in wrong(registry)[0]


def test_a_hash_that_nobody_published_is_told(registry: Registry):
    registry.pages[f"/simple/{a_pin().name}/"] = b""
    assert "were never published" in wrong(registry)[0]


def test_a_machine_without_a_wheel_is_told(registry: Registry):
    registry.publish(a_pin(), wheel="cp39-abi3-manylinux_2_28_x86_64")
    told = ", ".join(f"cp3{minor} on aarch64" for minor in (11, 12, 13, 14))
    assert wrong(registry) == [f"{a_pin().name} {a_pin().version} has no wheel for {told}"]


def test_a_vendored_file_that_was_changed_is_told(registry: Registry, tmp_path: Path):
    shutil.copytree(FOLDER, tmp_path / "vendor")
    (tmp_path / "vendor" / "htmx.js").write_text("fetch('//elsewhere')")
    assert wrong(registry, tmp_path / "vendor") == [
        f"htmx.js is not dist/htmx.min.js of htmx.org {vendored()[0].version}"
    ]


def test_what_a_registry_does_not_tell_is_not_checked_and_says_so(registry: Registry):
    for pin in pins(registry.lock):
        del registry.pages[f"/pypi/{pin.name}/{pin.version}/json"]
    faults = audited(registry)[1]
    assert (faults.checked, faults.wrong) == (0, [])
    assert str(faults).startswith("NOT CHECKED: pins have no known fault.")


def test_one_that_is_not_told_is_counted(registry: Registry):
    del registry.pages[f"/simple/{a_pin().name}/"]
    assert "1 NOT CHECKED" in str(audited(registry)[0])


def test_without_a_registry_nothing_is_called_well(lock: Path):
    reports = audit("http://127.0.0.1:9", "http://127.0.0.1:9", [lock])
    assert all(str(report).startswith("NOT CHECKED") for report in reports)


@pytest.mark.parametrize(
    ("wheel", "serves"),
    [
        ("a-1-py3-none-any.whl", True),
        ("a-1-py2.py3-none-any.whl", True),
        ("a-1-py312-none-any.whl", True),
        ("a-1-py314-none-any.whl", False),
        ("a-1-cp313-cp313-manylinux_2_17_aarch64.manylinux2014_aarch64.whl", True),
        ("a-1-cp313-cp313-musllinux_1_2_x86_64.whl", False),
        ("a-1-cp312-cp312-manylinux_2_17_aarch64.whl", False),
        ("a-1-cp38-abi3-manylinux_2_17_aarch64.whl", True),
        ("a-1-cp314-abi3-manylinux_2_17_aarch64.whl", False),
        ("a-1-cp313-cp313-macosx_11_0_arm64.whl", False),
    ],
)
def test_a_wheel_serves_who_its_name_says(wheel: str, serves: bool):
    assert fits([wheel], "cp313", "aarch64") is serves
