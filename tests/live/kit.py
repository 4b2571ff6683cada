"""Runs the story at a Git host and at the fake at the same time, and compares."""

import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

from msgspec import Struct

from tests.live.client import Budget, BudgetSpent, NotRun, RequestRefused
from tests.live.fakes.gitea import fake_gitea
from tests.live.fakes.github import fake_github
from tests.live.fakes.gitlab import fake_gitlab
from tests.live.gitea import LiveGitea
from tests.live.github import LiveGithub
from tests.live.gitlab import LiveGitlab
from tests.live.hosts import Access, LiveHost
from tests.live.measurements import GITHUB_STEPS, GITLAB_STEPS
from tests.live.report import Report, compare
from tests.live.scratch import open_stage
from tests.live.stage import LOCAL, PUBLIC, Step, StepResult, Waits, close_story, run_step
from tests.live.story import STORY

MAX_REQUESTS, MAX_MINUTES = 1_500, 40
"""At a fake, which answers at once, a whole story takes up to 400 requests. A real Git host needs more: the kit reads
again until an answer has settled."""
PAUSE_S = 1.0
"""Between two writes at a host that is not on this machine."""
OPENING, CLOSING, FAKE = "Create the repository", "The whole story", "The run at the fake"
ALWAYS = ("protect", "merge")
"""These create the queue and a first merge, which all other steps need."""


class Kind(Struct, frozen=True):
    """A kind of Git host."""

    driver: Callable[[Access, str, Path, Budget], LiveHost]
    fake: Callable[[Path, Access], AbstractContextManager[Access]]
    steps: dict[str, tuple[str, Step]]


KINDS = {
    "github": Kind(LiveGithub, fake_github, STORY | GITHUB_STEPS),
    "gitlab": Kind(LiveGitlab, fake_gitlab, STORY | GITLAB_STEPS),
    "gitea": Kind(LiveGitea, fake_gitea, STORY),
}


class Plan(Struct, frozen=True, kw_only=True):
    """What to run, where."""

    kind: str
    access: Access
    repository: str = ""
    """The name of a scratch repository; empty creates one."""
    steps: tuple[str, ...] = ()
    """Empty: all."""
    keep: bool = False
    public_url: str = ""
    port: int = 0
    minutes: int = MAX_MINUTES

    @property
    def is_local(self) -> bool:
        return self.access.web_url.startswith(("http://127.0.0.1", "http://localhost"))


def run(plan: Plan, show: Callable[[str], None] = print) -> tuple[Report, list[str]]:
    """Returns the report, and the secrets that it must not contain. An error of the fake is a failed step, because the
    answers of the Git host are worth more."""
    kind, run_id = KINDS[plan.kind], uuid4().hex[:8]
    name = plan.repository or f"mergeyard-live-{run_id}"
    steps = {key: step for key, step in kind.steps.items() if not plan.steps or key in (*ALWAYS, *plan.steps)}
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mergeyard-live-")))
        for side in ("real", "fake", "fake-data"):
            (root / side).mkdir()
        real, fakes = list[StepResult](), list[StepResult]()
        fake_budget = Budget(MAX_REQUESTS, plan.minutes * 60, 0)

        def run_fake() -> None:
            with kind.fake(root / "fake-data", plan.access) as access:
                host = kind.driver(access, name, root / "fake", fake_budget)
                chosen = {"keep": False, "public_url": plan.public_url, "port": 0}
                _run_side(host, root / "fake", LOCAL, run_id, steps, fakes, chosen=chosen)

        threads = stack.enter_context(ThreadPoolExecutor(1))
        fake = threads.submit(run_fake)
        budget = Budget(MAX_REQUESTS, plan.minutes * 60, 0 if plan.is_local else PAUSE_S)
        try:
            host = kind.driver(plan.access, name, root / "real", budget)
            waits = LOCAL if plan.is_local else PUBLIC
            chosen = {"keep": plan.keep, "public_url": plan.public_url, "port": plan.port}
            _run_side(host, root / "real", waits, run_id, steps, real, chosen=chosen, show=show)
        except BaseException:
            fake_budget.stopped.set()
            raise
        if (error := fake.exception()) is not None:
            real.append(StepResult(title=FAKE, observations=[], failed=f"{type(error).__name__}: {error}"))
        compared = compare(real, fakes)
    report = Report(
        host=host.title,
        address=plan.access.web_url,
        account=host.describe_account(),
        steps=compared,
        requests=budget.used,
        cleanup=host.cleanup,
    )
    return report, [*plan.access.secrets, *host.extra_secrets]


def _run_side(
    host: LiveHost,
    folder: Path,
    waits: Waits,
    run_id: str,
    steps: dict[str, tuple[str, Step]],
    results: list[StepResult],
    *,
    chosen: Mapping[str, Any],
    show: Callable[[str], None] = lambda _: None,
) -> None:
    """Adds to the results."""
    try:
        with open_stage(host, folder, waits, run_id, **chosen) as (stage, created):
            results.append(StepResult(title=OPENING, observations=created))
            for title, step in steps.values():
                results.append(run_step(stage, title, step))
                show(f"{title}: {results[-1].failed or results[-1].not_measured or 'done'} ({results[-1].seconds:g} s)")
            results.append(run_step(stage, CLOSING, close_story))
    finally:
        show(host.cleanup)


STARTING_ERRORS = (NotRun, RequestRefused, BudgetSpent)
"""Errors with a message for the person who started the kit."""
