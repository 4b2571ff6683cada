"""Rendering: lists of targets, the cache, templates and static files."""

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette

import mergeyard
from mergeyard.domain.access import Token
from mergeyard.domain.pull_requests import ALL_TARGETS, NO_TARGETS, impacted_targets_from_names
from mergeyard.domain.timestamps import Instant, later
from mergeyard.web import app, rendering
from mergeyard.web.formats import list_targets
from mergeyard.web.rendering import TimedCache
from mergeyard.web.user_sessions import CurrentUser
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock


def test_many_targets_are_shortened_to_the_first_and_a_count():
    target_list = list_targets(impacted_targets_from_names("c", "a", "b"), limit=2)
    assert (target_list.names, target_list.more) == (("a", "b"), 1)


def test_all_targets_and_no_targets_are_distinguished():
    assert list_targets(ALL_TARGETS).everything
    assert not list_targets(ALL_TARGETS).is_empty
    assert list_targets(NO_TARGETS).is_empty


@pytest.mark.parametrize("control", ["\u061c", "\u200e", "\u200f", "\u202a", "\u202e", "\u2066", "\u2069"], ids=ascii)
def test_title_of_a_page_has_no_bidi_controls(control: str):
    error = {"status": 404, "title": f"<safe{control}gnp.exe", "detail": "", "request_id": "", "may_lack_access": False}
    html = rendering.render_template("error.html", error=error, user=None, path="/", current_url="/")
    assert "<title>&lt;safegnp.exe · Mergeyard</title>" in html


@pytest.mark.parametrize(("name", "author"), [("ada", "ada"), ("ada (3f2a9c1b)", "ada"), ("ada (ci)", "ada (ci)")])
def test_user_of_single_sign_on_has_the_name_of_the_identity_provider_as_author(name: str, author: str):
    token = Token(id="1", name=name, digest=b"", created_at=Instant(0))
    assert CurrentUser(token, "").author_name == author


TTL_MS = 1000


class SlowComputation:
    """Waits until it is allowed to end, and returns another result every time."""

    def __init__(self) -> None:
        self.results = 0
        self.can_end = asyncio.Event()

    async def __call__(self) -> int:
        await self.can_end.wait()
        self.results += 1
        return self.results


@asynchronous
async def test_concurrent_callers_share_one_result_until_it_expires():
    clock, computation = ManualClock(), SlowComputation()
    cache = TimedCache[str, int](clock, TTL_MS)
    tasks = [asyncio.create_task(cache.get_or_compute("key", computation)) for _ in range(5)]
    await asyncio.sleep(0)
    computation.can_end.set()
    assert await asyncio.gather(*tasks) == [1] * 5
    clock.move_to(later(clock.now(), TTL_MS - 1))
    assert await cache.get_or_compute("key", computation) == 1
    clock.move_to(later(clock.now(), 1))
    assert await cache.get_or_compute("key", computation) == 2


@asynchronous
async def test_computations_run_one_at_a_time_and_cached_results_do_not_wait():
    clock, slow, quick = ManualClock(), SlowComputation(), SlowComputation()
    quick.can_end.set()
    cache = TimedCache[str, int](clock, TTL_MS)
    assert await cache.get_or_compute("known", quick) == 1
    task = asyncio.create_task(cache.get_or_compute("slow", slow))
    other = asyncio.create_task(cache.get_or_compute("quick", quick))
    await asyncio.sleep(0)
    assert await cache.get_or_compute("known", quick) == 1
    assert not other.done()
    slow.can_end.set()
    assert await asyncio.gather(task, other) == [1, 2]


@asynchronous
async def test_a_failed_computation_is_not_cached():
    async def give_up() -> int:
        raise TimeoutError

    cache, computation = TimedCache[str, int](ManualClock(), TTL_MS), SlowComputation()
    computation.can_end.set()
    with pytest.raises(TimeoutError):
        await cache.get_or_compute("key", give_up)
    assert await cache.get_or_compute("key", computation) == 1


CACHE_INDEFINITELY = "public, max-age=31536000, immutable"
UPGRADE_WHILE_RUNNING = """
import shutil, sys
from mergeyard.web import rendering

assert rendering.__file__.startswith(sys.argv[1]), rendering.__file__
shutil.rmtree(sys.argv[1])
print(rendering.render_template("message.html", message="Done."))
"""


@pytest.mark.long
def test_templates_are_read_at_the_start_so_that_an_upgrade_does_not_mix_versions(tmp_path: Path):
    package = tmp_path / "mergeyard"
    shutil.copytree(Path(mergeyard.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-c", UPGRADE_WHILE_RUNNING, str(package)]
    printed = subprocess.run(
        command, env={"PYTHONPATH": str(tmp_path)}, check=True, capture_output=True, text=True
    ).stdout
    assert "Done." in printed


@pytest.mark.parametrize(
    ("url", "cache_control"),
    [
        (rendering.static_url("page.js"), CACHE_INDEFINITELY),
        ("/static/page.js", "no-cache"),
        ("/static/page.js?0123456789ab", "no-cache"),
        (f"/static/page.js?{rendering.STATIC_FINGERPRINTS['style.css']}", "no-cache"),
        ("/favicon.ico", "no-cache"),
    ],
)
@asynchronous
async def test_a_static_file_is_cached_indefinitely_only_with_its_fingerprint(url: str, cache_control: str):
    transport = httpx2.ASGITransport(Starlette(routes=app.static_routes()))
    async with httpx2.AsyncClient(transport=transport, base_url="http://mergeyard.example") as client:
        response = await client.get(url)
    assert (response.status_code, response.headers["cache-control"]) == (200, cache_control)
