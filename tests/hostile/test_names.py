"""Names that look like paths, options or markup are names, or nothing: on pages, in commands, at the host."""

import asyncio
import re
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest
from msgspec import json
from typer.testing import CliRunner

from mergeyard.adapters.host_plain.opening import Opening, open_pull
from mergeyard.cli import app
from tests.hostile.conftest import Target
from tests.support.api import QUEUE
from tests.support.repositories import Symlink

HOSTILE = [
    "..", ".", "-x", "--all", "--upload-pack=touch pwned", "../../etc/passwd", "..%2f..%2fetc", "/etc/passwd", "//evil",
    "a..b", "a.lock", "@{-1}", "@", "HEAD@{0}", "main^{tree}", "main:README", "refs/heads/../x", "refs/heads/main",
    "a b", "a\nb", "a\r\nset-cookie: x=y", "a\0b", "\x1b[31m", "\u202egnp", "\ufeff", "\uff41cme", "e\u0301",
    "x" * 7000, "%00", "%", "%zz", "{{7*7}}", "${jndi:ldap://evil}", "<script>alert(1)</script>", "' OR 1=1 --",
    '"', "\\", "CON", "~root", "$(touch pwned)", "`touch pwned`", "|touch pwned", ":(glob)**", "0" * 36, "1e9", "-1",
    "9" * 30, "\U0001f411",
]  # fmt: skip
PAGES = [
    "/{}",
    "/queues/{}",
    "/queues/git.local/{}/app:main",
    "/queues/git.local/acme/{}:main",
    "/queues/git.local/acme/app:{}",
    "/queues/{}/acme/app:main",
    "/settings/git.local/acme/app:{}",
    "/health/git.local/acme/app:{}",
    "/health?length={0}&by={0}",
    "/live/git.local/acme/app:{}",
    "/pulls/git.local/acme/app/{}",
    "/pulls/git.local/{}/app/1",
    "/pulls/git.local/acme/app/1?branch={0}&stay={0}&first={0}",
    "/runs/{}",
    "/runs/{0}/output/{0}",
    "/runs/{0}/checks/{0}",
    "/actions?queue={0}&number={0}",
    "/static/{}",
    "/docs/{}",
    "/hooks/{0}/{0}",
    "/sign-in?next={}",
    "/administration/tokens/{}/revoke",
    "/administration/webhooks/{0}",
    "/administration/webhooks/{0}/events/{0}",
    "/administration/audit?queue={0}",
    "/administration/audit?number={0}",
    "/administration/audit?actor={0}",
    "/administration/audit?kind={0}",
    "/administration/audit?since={0}&until={0}",
    "/administration/audit?before={0}",
    "/administration/audit.csv?actor={0}",
    "/v1/{}",
    "/v1/getMergeQueueMetrics?repo={0}&repoHost={0}",
]
SOME = [
    "..",
    "a\r\nset-cookie: x=y",
    "a\0b",
    "%zz",
    "\u202egnp",
    "<script>alert(1)</script>",
    "{{7*7}}",
    "9" * 30,
    "x" * 7000,
]
ALL = pytest.param(HOSTILE, marks=pytest.mark.long, id="all")
some_or_all = pytest.mark.parametrize("names", [pytest.param(SOME, id="some"), ALL])
STATUS = {
    "createQueue": {},
    "getQueue": {},
    "reportCommitStatus": {"sha": "1" * 40, "context": "unit", "state": "error"},
}
ECHOED = re.compile(r"<script>alert|49</|pwned</")


@pytest.fixture(scope="module")
def visitor(target: Target) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=target.url, headers={"x-api-token": target.token}, timeout=20) as visitor:
        assert visitor.post("/sign-in", data={"token": target.token, "next": "/"}).status_code == 303
        yield visitor


@some_or_all
def test_a_page_asked_for_by_any_name_is_shown_or_is_not_there(visitor: httpx.Client, names: list[str]):
    for page in PAGES:
        for name in names:
            told = visitor.get(page.format(quote(name, safe="")))
            assert told.status_code < 500, (page, name, told.text)
            assert "x" not in told.cookies, (page, name)
            assert not ECHOED.search(told.text), (page, name)


@some_or_all
def test_a_queue_of_any_name_is_refused_or_is_not_there(target: Target, names: list[str]):
    for name in names:
        for repo in (QUEUE["repo"] | {where: name} for where in ("host", "owner", "name")):
            for endpoint in STATUS:
                status = (
                    {"sha": "1" * 40, "context": "unit", "state": "success"} if endpoint.startswith("report") else {}
                )
                told = target.ask(endpoint, {"repo": repo, "targetBranch": "main"} | status)
                assert told.status_code in {400, 404}, (endpoint, repo, told.text)


@some_or_all
def test_a_pull_request_may_be_called_anything(target: Target, names: list[str]):
    origin = target.premises.origin
    origin.branch("named", upon="main", files={"named": "1"})
    origin.set("refs/pull/900/head", origin.tip("named"))
    for name in names:
        meta = {"title": name, "author": name, "base": name, "branch": name, "draft": True, "state": "open"}
        origin.set("refs/pull/900/meta", origin.blob(json.encode(meta)))
        told = target.ask("submitPullRequest", QUEUE | {"pr": {"number": 900}})
        assert told.status_code in {200, 502}, (name, told.text)
        target.ask("cancelPullRequest", QUEUE | {"pr": {"number": 900}})


PLACES = [("..", "repos"), (".", "app"), ("acme/..", "app"), ("acme", "../acme/app"), ("acme", "app.git"), ("acme", "")]


@pytest.mark.parametrize(("owner", "name"), PLACES)
def test_a_repository_is_found_below_the_root_and_nowhere_else(target: Target, owner: str, name: str):
    told = target.ask("createQueue", QUEUE | {"repo": QUEUE["repo"] | {"owner": owner, "name": name}})
    assert told.json()["code"] in {"invalid_repo", "repository_not_found"}


def test_a_configuration_that_points_elsewhere_is_not_followed(target: Target):
    origin, premises = target.premises.origin, target.premises
    origin.branch("linked", upon="main", files={".mergeyard.toml": Symlink("/etc/passwd")})
    queue = QUEUE | {"targetBranch": "linked"}
    assert target.ask("createQueue", queue).status_code == 200
    origin.branch("by-link", upon="linked", files={"linked": "1"})
    number = asyncio.run(open_pull(origin.path, Opening(head="by-link", base="linked")))
    target.ask("submitPullRequest", queue | {"pr": {"number": number}})

    def why() -> str:
        told = target.ask("getSubmittedPullRequest", queue | {"pr": {"number": number}}).json()
        return told["reason"]["code"] if told["state"] == "failed" else ""

    assert premises.eventually(why) == "no_required_statuses"


@some_or_all
def test_a_command_takes_no_name_for_an_option_or_a_place(target: Target, names: list[str]):
    origin = target.premises.origin
    before = origin.refs()
    for name in names:
        told = CliRunner().invoke(app, ["pr", "open", "--repo-path", origin.url, f"--head={name}", f"--base={name}"])
        assert told.exit_code != 0, name
        assert isinstance(told.exception, SystemExit), (name, told.exception)
        assert "\x1b" not in told.output
    assert origin.refs() == before
