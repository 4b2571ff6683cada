"""What pages are made of: read once, compiled once, and kept by browsers only where it fits the page."""

import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

import mergeyard
from mergeyard.web import drawing, files, shipped
from tests.support.asynchronous import asynchronous

FOR_EVER = "public, max-age=31536000, immutable"
UPGRADED_WHILE_IT_RUNS = """
import asyncio, shutil, sys
from mergeyard.web import drawing, preparing

async def visited(scope, receive, send):
    assert drawing.templates.cache is not None
    assert len(drawing.templates.cache) == len(drawing.TEMPLATES)

async def others_go_on():
    visiting = asyncio.create_task(preparing.Prepared(visited)({}, None, None))
    turns = 0
    while not visiting.done():
        await asyncio.sleep(0)
        turns += 1
    await visiting
    return turns

assert drawing.__file__.startswith(sys.argv[1]), drawing.__file__
shutil.rmtree(sys.argv[1])
print(asyncio.run(others_go_on()), drawing.draw("said.html", words="Done."))
"""


def test_templates_are_read_at_the_start_and_compiled_beside_the_event_loop(tmp_path: Path):
    package = tmp_path / "mergeyard"
    shutil.copytree(Path(mergeyard.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-c", UPGRADED_WHILE_IT_RUNS, str(package)]
    printed = subprocess.run(
        command, env={"PYTHONPATH": str(tmp_path)}, check=True, capture_output=True, text=True
    ).stdout
    turns, _, drawn = printed.partition(" ")
    assert int(turns) > 10
    assert "Done." in drawn


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        (drawing.static("page.js"), FOR_EVER),
        ("/static/page.js", "no-cache"),
        ("/static/page.js?0123456789ab", "no-cache"),
        (f"/static/page.js?{shipped.FINGERPRINTS['style.css']}", "no-cache"),
        ("/favicon.ico", "no-cache"),
    ],
)
@asynchronous
async def test_a_file_is_kept_for_ever_only_by_those_who_asked_for_just_this_one(address: str, kept: str):
    transport = httpx.ASGITransport(Starlette(routes=files.routes()))
    async with httpx.AsyncClient(transport=transport, base_url="http://yard.example") as client:
        answer = await client.get(address)
    assert (answer.status_code, answer.headers["cache-control"]) == (200, kept)
