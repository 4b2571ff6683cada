"""Names that look like paths, options or markup are treated as names or refused: on pages, in commands, on the host."""

import asyncio
import re
from collections.abc import Iterator
from urllib.parse import quote

import httpx2
import pytest
from msgspec import json
from typer.testing import CliRunner

from mergeyard.adapters.host_plain.editor import NewPullRequest, open_pull_request
from mergeyard.cli import app
from tests.hostile.conftest import Target
from tests.support.api_client import QUEUE
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
    "/pulls/git.local/acme/app/1?branch={0}&submission={0}&first={0}",
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
def visitor(target: Target) -> Iterator[httpx2.Client]:
    headers = {"x-api-token": target.token, "accept": "text/html"}
    with httpx2.Client(base_url=target.url, headers=headers, timeout=20) as visitor:
        assert visitor.post("/sign-in", data={"token": target.token, "next": "/"}).status_code == 303
        yield visitor


@some_or_all
def test_page_with_any_name_is_shown_or_not_found(visitor: httpx2.Client, names: list[str]):
    for page in PAGES:
        for name in names:
            response = visitor.get(page.format(quote(name, safe="")))
            assert response.status_code < 500, (page, name, response.text)
            assert "x" not in response.cookies, (page, name)
            assert not ECHOED.search(response.text), (page, name)


@some_or_all
def test_queue_with_any_name_is_refused_or_not_found(target: Target, names: list[str]):
    for name in names:
        for repo in (QUEUE["repo"] | {where: name} for where in ("host", "owner", "name")):
            for endpoint in STATUS:
                status = (
                    {"sha": "1" * 40, "context": "unit", "state": "success"} if endpoint.startswith("report") else {}
                )
                response = target.post(endpoint, {"repo": repo, "targetBranch": "main"} | status)
                assert response.status_code in {400, 404}, (endpoint, repo, response.text)


@some_or_all
def test_pull_request_can_have_any_title_author_and_branch(target: Target, names: list[str]):
    origin = target.environment.origin
    origin.branch("named", base="main", files={"named": "1"})
    origin.set_ref("refs/pull/900/head", origin.tip("named"))
    for name in names:
        meta = {"title": name, "author": name, "base": name, "branch": name, "draft": True, "state": "open"}
        origin.set_ref("refs/pull/900/meta", origin.blob(json.encode(meta)))
        response = target.post("submitPullRequest", QUEUE | {"pr": {"number": 900}})
        assert response.status_code in {200, 502}, (name, response.text)
        target.post("cancelPullRequest", QUEUE | {"pr": {"number": 900}})


PLACES = [("..", "repos"), (".", "app"), ("acme/..", "app"), ("acme", "../acme/app"), ("acme", "app.git"), ("acme", "")]


@pytest.mark.parametrize(("owner", "name"), PLACES)
def test_repository_outside_of_the_root_is_not_found(target: Target, owner: str, name: str):
    response = target.post("createQueue", QUEUE | {"repo": QUEUE["repo"] | {"owner": owner, "name": name}})
    assert response.json()["code"] in {"invalid_repo", "repository_not_found"}


def test_configuration_that_is_a_symlink_is_not_followed(target: Target):
    origin, environment = target.environment.origin, target.environment
    origin.branch("linked", base="main", files={".mergeyard.toml": Symlink("/etc/passwd")})
    queue = QUEUE | {"targetBranch": "linked"}
    assert target.post("createQueue", queue).status_code == 200
    origin.branch("by-link", base="linked", files={"linked": "1"})
    number = asyncio.run(open_pull_request(origin.path, NewPullRequest(head="by-link", base="linked")))
    target.post("submitPullRequest", queue | {"pr": {"number": number}})

    def wait_reason() -> str:
        response = target.post("getSubmittedPullRequest", queue | {"pr": {"number": number}}).json()
        return response["reason"]["code"] if response["state"] == "not_ready" else ""

    assert environment.eventually(wait_reason) == "no_required_statuses"


@some_or_all
def test_command_never_takes_a_name_for_an_option_or_path(target: Target, names: list[str]):
    origin = target.environment.origin
    before = origin.refs()
    for name in names:
        response = CliRunner().invoke(
            app, ["pr", "open", "--repo-path", origin.url, f"--head={name}", f"--base={name}"]
        )
        assert response.exit_code != 0, name
        assert isinstance(response.exception, SystemExit), (name, response.exception)
        assert "\x1b" not in response.output
    assert origin.refs() == before
