"""`make audit-deps` compares the dependencies with the registries; what these do not answer is NOT CHECKED."""

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

from tools.audit_deps import Report, audit, has_wheel_for
from tools.lock import RUN, Pin, entries, pins
from tools.vendored import FOLDER, Vendored, vendored


class Registry:
    """PyPI and npm in one server on loopback. All packages are fine until a test changes a page."""

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
            self.publish_vulnerabilities(pin)
        for package in vendored():
            self.publish_files(package)
        self.pages["/-/npm/v1/security/advisories/bulk"] = b"{}"

    def publish(self, pin: Pin, *, wheel: str = "py3-none-any", yanked: str = "") -> None:
        name = f"{pin.name}-{pin.version}-{wheel}.whl"
        links = (f'<a href="{name}#sha256={each}"{yanked}>{name}</a>' for each in pin.hashes)
        self.pages[f"/simple/{pin.name}/"] = "\n".join(links).encode()

    def publish_vulnerabilities(self, pin: Pin, *vulnerabilities: dict[str, Any]) -> None:
        self.pages[f"/pypi/{pin.name}/{pin.version}/json"] = json.encode({"vulnerabilities": vulnerabilities})

    def publish_files(self, package: Vendored) -> None:
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:gz") as files:
            for local, published in package.files.items():
                files.add(FOLDER / local, f"package/{published}")
        digest = base64.b64encode(hashlib.sha512(archive.getvalue()).digest()).decode()
        path = f"/{package.package}.tgz"
        self.pages[path] = archive.getvalue()
        dist = {"tarball": f"{self.url}{path}", "integrity": f"sha512-{digest}"}
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
                """No log: the tests do not read it."""

        return Handler


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """The first three entries of the real lock."""
    lock = tmp_path / "lock.txt"
    lock.write_text("\n".join(entries(RUN.read_text())[:3]))
    return lock


@pytest.fixture
def registry(lock: Path) -> Iterator[Registry]:
    registry = Registry(lock)
    yield registry
    registry.close()


def run_audit(registry: Registry, folder: Path = FOLDER) -> list[Report]:
    return audit(registry.url, registry.url, [registry.lock], folder)


def problems(registry: Registry, folder: Path = FOLDER) -> list[str]:
    return [problem for report in run_audit(registry, folder) for problem in report.wrong]


def first_pin() -> Pin:
    return pins(RUN)[0]


def test_everything_is_checked_and_fine(registry: Registry):
    reports = run_audit(registry)
    assert [(report.wrong, report.unchecked) for report in reports] == [([], [])] * 4
    assert [report.checked for report in reports] == [3, 3, len(vendored()), 1]


def test_known_vulnerability_is_reported_with_the_fixed_version(registry: Registry):
    registry.publish_vulnerabilities(
        first_pin(), {"id": "PYSEC-2026-1", "fixed_in": ["9.9"]}, {"id": "old", "withdrawn": "2026"}
    )
    assert problems(registry) == [f"{first_pin().name} {first_pin().version}: PYSEC-2026-1, fixed in 9.9"]


def test_yanked_version_is_reported(registry: Registry):
    registry.publish(first_pin(), yanked=' data-yanked="a mistake"')
    assert "was withdrawn" in problems(registry)[0]


def test_unpublished_hash_is_reported(registry: Registry):
    registry.pages[f"/simple/{first_pin().name}/"] = b""
    assert "were never published" in problems(registry)[0]


def test_architecture_without_a_wheel_is_reported(registry: Registry):
    registry.publish(first_pin(), wheel="cp39-abi3-manylinux_2_28_x86_64")
    missing = ", ".join(f"cp3{minor} on aarch64" for minor in (11, 12, 13, 14, 15))
    assert problems(registry) == [f"{first_pin().name} {first_pin().version} has no wheel for {missing}"]


def test_changed_vendored_file_is_reported(registry: Registry, tmp_path: Path):
    shutil.copytree(FOLDER, tmp_path / "vendor")
    (tmp_path / "vendor" / "htmx.js").write_text("fetch('//elsewhere')")
    assert problems(registry, tmp_path / "vendor") == [
        f"htmx.js is not dist/htmx.min.js of htmx.org {vendored()[0].version}"
    ]


def test_missing_answers_of_a_registry_are_reported_as_not_checked(registry: Registry):
    for pin in pins(registry.lock):
        del registry.pages[f"/pypi/{pin.name}/{pin.version}/json"]
    vulnerabilities = run_audit(registry)[1]
    assert (vulnerabilities.checked, vulnerabilities.wrong) == (0, [])
    assert str(vulnerabilities).startswith("NOT CHECKED: pins have no known vulnerability.")


def test_single_missing_answer_is_counted(registry: Registry):
    del registry.pages[f"/simple/{first_pin().name}/"]
    assert "1 NOT CHECKED" in str(run_audit(registry)[0])


def test_nothing_is_called_fine_without_a_registry(lock: Path):
    reports = audit("http://127.0.0.1:9", "http://127.0.0.1:9", [lock])
    assert all(str(report).startswith("NOT CHECKED") for report in reports)


@pytest.mark.parametrize(
    ("wheel", "fits"),
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
def test_wheel_fits_the_platforms_in_its_name(wheel: str, fits: bool):
    assert has_wheel_for([wheel], "cp313", "aarch64") is fits
