"""submitPullRequest as a first implementation would be: models, a plain function, and one transaction per request.

It reads the pull request from its repository with git, because the response has its head, title and author. A variant
without repositories makes these up. Neither decides anything, writes a journal or starts a test.
"""

import json
import sqlite3
import subprocess
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import local
from typing import Annotated, Any
from uuid import uuid4

from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

SCHEMA = """\
CREATE TABLE IF NOT EXISTS tokens (digest BLOB PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS submissions (
    id TEXT PRIMARY KEY,
    repo TEXT NOT NULL,
    branch TEXT NOT NULL,
    number INTEGER NOT NULL,
    state TEXT NOT NULL,
    priority INTEGER NOT NULL,
    no_batch INTEGER NOT NULL,
    submitted_by TEXT NOT NULL,
    submitted_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS submissions_of_queue ON submissions (repo, branch, state);
"""
PRIORITIES = {0: "urgent", 10: "high", 100: "medium", 200: "low"}


class Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Repo(Model):
    host: str
    owner: str
    name: str


class PullRequest(Model):
    number: int = Field(ge=1)
    sha: str | None = None


class Submit(Model):
    repo: Repo
    target_branch: str
    pr: PullRequest
    priority: int = Field(100, ge=0, le=255)
    no_batch: bool = False
    force: bool = False


class Readiness(Model):
    requires_impacted_targets: bool = False
    does_base_branch_match: bool = True
    has_impacted_targets: bool = False


class Reason(Model):
    code: str = "waiting_for_slot"
    message: str = "The pull request waits for a free slot."
    waiting_for: list[int] = []


class Submitted(Model):
    id: str
    state: str
    state_changed_at: str
    priority_value: int
    priority_name: str
    used_default_priority_name: str
    skip_the_line: bool
    force_enqueued: bool
    is_currently_submitted_to_queue: bool = True
    pr_number: int
    pr_title: str
    pr_sha: str
    pr_base_branch: str
    pr_author: str
    readiness: Readiness = Readiness()
    no_batch: bool
    mergeability: str = "mergeable"
    test_run_id: str | None = None
    verified_by_test_run: str | None = None
    position: int
    reason: Reason = Reason()
    estimated_merge_at: str | None = None
    estimated_merge_at_p90: str | None = None
    submitted_at: str
    merged_sha: str | None = None


class PullRequestData(BaseModel):
    """The data of a pull request in its repository."""

    head: str
    title: str
    author: str
    base: str


class Database(local):
    """One connection per thread."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, timeout=60, isolation_level=None)
        self.connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")


def naive_application(folder: str, secret: str, repositories: str = "") -> FastAPI:
    database = Database(Path(folder, "naive.db"))
    database.connection.executescript(SCHEMA)
    digest = sha256(secret.encode()).digest()
    database.connection.execute("INSERT OR IGNORE INTO tokens VALUES (?, 'bench')", (digest,))
    find = partial(_read, Path(repositories)) if repositories else _invent
    app = FastAPI()

    @app.post("/v1/submitPullRequest", response_model=Submitted)
    def submit(request: Submit, x_api_token: Annotated[str, Header()]) -> Any:  # pyright: ignore[reportUnusedFunction]
        data = find(request)
        connection = database.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            response = _insert(connection, request, data, x_api_token)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        return response

    return app


def _invent(request: Submit) -> PullRequestData:
    title = f"Change number {request.pr.number}"
    return PullRequestData(head=request.pr.sha or "0" * 40, title=title, author="Ada", base=request.target_branch)


def _read(repositories: Path, request: Submit) -> PullRequestData:
    folder = repositories / request.repo.owner / f"{request.repo.name}.git"
    head = _git(folder, "rev-parse", "--verify", f"refs/pull/{request.pr.number}/head").decode().strip()
    meta = json.loads(_git(folder, "cat-file", "blob", f"refs/pull/{request.pr.number}/meta"))
    return PullRequestData(head=head, title=meta["title"], author=meta["author"], base=meta["base"])


def _git(folder: Path, *arguments: str) -> bytes:
    command = ["git", f"--git-dir={folder}", *arguments]
    result = subprocess.run(command, capture_output=True, check=False)
    if result.returncode:
        raise HTTPException(404, "no such pull request")
    return result.stdout


def _insert(connection: sqlite3.Connection, request: Submit, data: PullRequestData, secret: str) -> Submitted:
    digest = sha256(secret.encode()).digest()
    token = connection.execute("SELECT name FROM tokens WHERE digest = ?", (digest,)).fetchone()
    if token is None:
        raise HTTPException(401, "unknown token")
    repo, now = f"{request.repo.host}/{request.repo.owner}/{request.repo.name}", datetime.now(UTC).isoformat()
    submission = str(uuid4())
    connection.execute(
        "INSERT INTO submissions VALUES (?, ?, ?, ?, 'pending', ?, ?, ?, ?)",
        (submission, repo, request.target_branch, request.pr.number, request.priority, request.no_batch, token[0], now),
    )
    (position,) = connection.execute(
        "SELECT count(*) FROM submissions WHERE repo = ? AND branch = ? AND state = 'pending'",
        (repo, request.target_branch),
    ).fetchone()
    name = PRIORITIES.get(request.priority, str(request.priority))
    return Submitted(
        id=submission,
        state="pending",
        state_changed_at=now,
        priority_value=request.priority,
        priority_name=name,
        used_default_priority_name=name,
        skip_the_line=request.priority == 0,
        force_enqueued=request.force,
        pr_number=request.pr.number,
        pr_title=data.title,
        pr_sha=data.head,
        pr_base_branch=data.base,
        pr_author=data.author,
        no_batch=request.no_batch,
        position=position,
        submitted_at=now,
    )
