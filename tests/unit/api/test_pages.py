"""The API documentation page loads only its own files and is safe to open."""

import re

import pytest

from mergeyard.api.pages import DOCS_FILES
from tests.support.fake_api import send_get

NO_TOKEN = {"accept": "*/*"}


@pytest.mark.parametrize("path", DOCS_FILES)
def test_every_file_of_the_page_is_served_without_a_token_and_with_security_headers(path: str):
    response = send_get(path, headers=NO_TOKEN)
    assert response.status_code == 200
    assert response.text.strip()
    assert response.headers["content-security-policy"].startswith("default-src 'self'")
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", DOCS_FILES)
def test_nothing_is_fetched_from_another_host(path: str):
    text = send_get(path, headers=NO_TOKEN).text.replace("http://www.w3.org/2000/svg", "")
    assert "http:" not in text
    assert "https:" not in text


def test_the_page_needs_only_files_that_are_served():
    page = send_get("/docs", headers=NO_TOKEN).text
    assert set(re.findall(r'(?:src|href)="(/[^"]*)"', page)) <= DOCS_FILES.keys() | {"/openapi.json"}


@pytest.mark.long
def test_the_page_has_no_inline_script_or_style():
    page = send_get("/docs", headers=NO_TOKEN).text
    assert re.findall(r"<script[^>]*>[^<]|<style|\sstyle=|\son\w+=", page) == []


def test_scripts_never_write_html():
    for path in ("/docs/docs.js", "/docs/render.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", send_get(path, headers=NO_TOKEN).text
        )
