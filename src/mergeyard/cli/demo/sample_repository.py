"""The twelve pull requests of the demo: what each changes, what its author does, and its expected outcome."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum, auto
from pathlib import Path

from msgspec import Struct

from mergeyard.adapters.host_plain.editor import NewPullRequest, open_pull_request
from mergeyard.adapters.host_plain.process import run_git
from mergeyard.client import QueueName
from mergeyard.domain.ids import PullRequestNumber, Repo
from mergeyard.domain.states import PullRequestState, Reason

REPO = Repo("git.local", "demo", "shop")
TARGET_BRANCH = "main"
QUEUE = QueueName.of(str(REPO), TARGET_BRANCH)

README_TEMPLATE = """\
# A tea shop

Computes what a cup costs and what a guest owes.

Open from {opens} to {closes}.
"""

PRICE_SCRIPT = """\
{price_of}() {{
    cat "menu/$1"
}}
"""

TOTAL_SCRIPT = """\
total() {{
    sum=0
    for tea in "$@"; do
        sum=$((sum + $({price_of} "$tea")))
    done
    echo "$sum"
}}
"""

# Both checks sleep so that the progress is visible. Not every `sleep` accepts fractions of a second.
UNIT_TEST_SCRIPT = """\
# Runs every test with all functions loaded.
sleep 1
failed=0
for test in tests/test_*.sh; do
    if (for part in till/*.sh; do . "./$part"; done; . "./$test"); then
        echo "ok      $test"
    else
        echo "not ok  $test"
        failed=1
    fi
done
exit $failed
"""

LINT_SCRIPT = """\
# Every price is a whole number, and every script can be parsed.
sleep 0.5 2>/dev/null || sleep 1
grep -vx '[0-9][0-9]*' menu/* && exit 1
for script in till/*.sh tests/*.sh; do
    sh -n "$script" || exit 1
done
"""

REPO_CONFIG = """\
version = 1

[checks]
unit = "sh tests/unit.sh"
lint = "sh tests/lint.sh"
"""

INITIAL_FILES = {
    ".mergeyard.toml": REPO_CONFIG,
    "README.md": README_TEMPLATE.format(opens=8, closes=18),
    "menu/black": "4\n",
    "menu/green": "3\n",
    "menu/mint": "3\n",
    "till/price.sh": PRICE_SCRIPT.format(price_of="price_of"),
    "till/total.sh": TOTAL_SCRIPT.format(price_of="price_of"),
    "tests/unit.sh": UNIT_TEST_SCRIPT,
    "tests/lint.sh": LINT_SCRIPT,
    "tests/test_price.sh": '[ "$(price_of black)" = 4 ]\n',
    "tests/test_total.sh": '[ "$(total green black)" = 7 ]\n',
}


def build_feature(name: str, body: str, test: str) -> dict[str, str]:
    """A function in its own file, and its test."""
    return {f"till/{name}.sh": f"{name}() {{\n    {body}\n}}\n", f"tests/test_{name}.sh": f"{test}\n"}


class ExpectedOutcome(Struct, frozen=True):
    state: str
    reason: str

    def __str__(self) -> str:
        return self.state if self.state == PullRequestState.MERGED else f"{self.state}: {self.reason}"


MERGED = ExpectedOutcome(PullRequestState.MERGED, Reason.MERGED_BY_QUEUE)
TESTS_FAILED = ExpectedOutcome(PullRequestState.FAILED, Reason.TEST_RUN_FAILED)
MERGE_CONFLICT = ExpectedOutcome(PullRequestState.FAILED, Reason.MERGE_CONFLICT)
CANCELLED = ExpectedOutcome(PullRequestState.CANCELLED, Reason.CANCELLED_BY_USER)


class AuthorAction(StrEnum):
    """What the author does in addition to submitting."""

    SUBMIT_URGENTLY = auto()
    MARK_READY = auto()
    CANCEL = auto()


class SamplePullRequest(Struct, frozen=True, kw_only=True):
    branch: str
    title: str
    author: str
    files: dict[str, str]
    expected: ExpectedOutcome = MERGED
    about: str = ""
    action: AuthorAction | None = None
    start_branch: str = TARGET_BRANCH
    alternative: int | None = None
    """The number of the pull request that can have this outcome instead: only one of the two can merge."""

    @property
    def draft(self) -> bool:
        return self.action is AuthorAction.MARK_READY


SAMPLE_PULL_REQUESTS = (
    SamplePullRequest(
        branch="honey",
        title="Put honey tea on the menu",
        author="Ada",
        files={"menu/honey": "5\n"},
    ),
    SamplePullRequest(
        branch="cups",
        title="Count the cups",
        author="Ben",
        files=build_feature("cups", 'echo "$#"', '[ "$(cups mint mint green)" = 3 ]'),
    ),
    SamplePullRequest(
        branch="change",
        title="Give change",
        author="Chi",
        files=build_feature("change", 'echo "$(($1 - $2))"', '[ "$(change 10 7)" = 3 ]'),
    ),
    SamplePullRequest(
        branch="rename",
        title="Call price_of cost_of",
        author="Dov",
        files={
            "till/price.sh": PRICE_SCRIPT.format(price_of="cost_of"),
            "till/total.sh": TOTAL_SCRIPT.format(price_of="cost_of"),
            "tests/test_price.sh": '[ "$(cost_of black)" = 4 ]\n',
        },
        about="passes alone, fails together with #6",
        alternative=6,
    ),
    SamplePullRequest(
        branch="gift",
        title="Give green tea away",
        author="Eve",
        files={"menu/green": "0\n"},
        expected=TESTS_FAILED,
        about="breaks a test",
    ),
    SamplePullRequest(
        branch="compare",
        title="Name the more expensive of two teas",
        author="Fay",
        files=build_feature(
            "more_expensive",
            '[ "$(price_of "$1")" -gt "$(price_of "$2")" ] && echo "$1" || echo "$2"',
            '[ "$(more_expensive black mint)" = black ]',
        ),
        expected=TESTS_FAILED,
        about="passes alone, fails together with #4, which removes price_of",
        alternative=4,
    ),
    SamplePullRequest(
        branch="early",
        title="Open an hour earlier",
        author="Gil",
        files={"README.md": README_TEMPLATE.format(opens=7, closes=18)},
        about="changes the same line as #8",
        alternative=8,
    ),
    SamplePullRequest(
        branch="late",
        title="Close two hours later",
        author="Hal",
        files={"README.md": README_TEMPLATE.format(opens=8, closes=20)},
        expected=MERGE_CONFLICT,
        about="changes the same line as #7",
        alternative=7,
    ),
    SamplePullRequest(
        branch="kettle",
        title="Wait until the kettle boils",
        author="Ivy",
        files=build_feature("kettle", 'while [ ! -e "$1" ]; do sleep 1; done', "kettle boiling"),
        expected=CANCELLED,
        about="its test never ends, so its author cancels it",
        action=AuthorAction.CANCEL,
    ),
    SamplePullRequest(
        branch="stamps",
        title="Every tenth cup is free",
        author="Jun",
        files=build_feature("stamps", 'echo "$(($1 / 10))"', '[ "$(stamps 20)" = 2 ]'),
        about="a draft first, then marked as ready",
        action=AuthorAction.MARK_READY,
    ),
    SamplePullRequest(
        branch="bill",
        title="Print the change on the bill",
        author="Chi",
        files=build_feature("bill", 'echo "change: $(change "$1" "$2")"', '[ "$(bill 10 7)" = "change: 3" ]'),
        about="stacked on #3 and merges after it",
        start_branch="change",
    ),
    SamplePullRequest(
        branch="known",
        title="Refuse teas that are not on the menu",
        author="Kim",
        files=build_feature("known", '[ -e "menu/$1" ]', "known mint && ! known coffee"),
        about="urgent: goes to the front of the queue",
        action=AuthorAction.SUBMIT_URGENTLY,
    ),
)
"""In the order of their numbers, starting with 1."""


TEAS = ("Assam", "Ceylon", "Sencha", "Oolong", "Rooibos", "Darjeeling", "Matcha")
MAX_LATER_PULL_REQUESTS = 500
LATER_INVALID_PRICE_EVERY = 7


def build_later_pull_requests() -> Iterator[SamplePullRequest]:
    """They follow the twelve, so that the dashboard shows a queue at work. The first one makes the tests slower, so
    that several runs are active; some have a price that the lint check refuses."""
    slower = UNIT_TEST_SCRIPT.replace("sleep 1", "sleep 4")
    yield SamplePullRequest(
        branch="careful", title="Take more time for the tests", author="Ada", files={"tests/unit.sh": slower}
    )
    for index in range(1, MAX_LATER_PULL_REQUESTS):
        tea, author = TEAS[index % len(TEAS)], SAMPLE_PULL_REQUESTS[index % len(SAMPLE_PULL_REQUESTS)].author
        price = "ask" if index % LATER_INVALID_PRICE_EVERY == 0 else "5"
        branch = f"{tea.lower()}-{index}"
        title = f"Sell {tea}, harvest {index}"
        yield SamplePullRequest(branch=branch, title=title, author=author, files={f"menu/{branch}": f"{price}\n"})


async def create_sample_repository(repository: Path) -> None:
    repository.mkdir(parents=True)
    await run_git(repository, "init", "--quiet", "--bare", "--template=", f"--initial-branch={TARGET_BRANCH}")
    await import_commits(repository, build_commit(TARGET_BRANCH, "Initial commit", "Ada", INITIAL_FILES))
    for pull_request in SAMPLE_PULL_REQUESTS:
        await open_sample_pull_request(repository, pull_request)


async def open_sample_pull_request(repository: Path, pull_request: SamplePullRequest) -> PullRequestNumber:
    await import_commits(repository, build_branch(pull_request))
    opening = NewPullRequest(
        head=pull_request.branch,
        base=TARGET_BRANCH,
        title=pull_request.title,
        author=pull_request.author,
        draft=pull_request.draft,
    )
    return await open_pull_request(repository, opening)


async def import_commits(repository: Path, stream: Iterable[str]) -> None:
    await run_git(repository, "fast-import", "--quiet", "--date-format=now", stdin="".join(stream).encode())


def build_branch(pull_request: SamplePullRequest) -> Iterator[str]:
    yield f"reset refs/heads/{pull_request.branch}\n"
    yield f"from refs/heads/{pull_request.start_branch}\n\n"
    yield from build_commit(pull_request.branch, pull_request.title, pull_request.author, pull_request.files)


def build_commit(branch: str, message: str, author: str, files: Mapping[str, str]) -> Iterator[str]:
    yield f"commit refs/heads/{branch}\n"
    yield f"committer {author} <{author.lower()}@shop.example> now\n"
    yield encode_data(message)
    for path, content in files.items():
        yield f"M 100644 inline {path}\n"
        yield encode_data(content)


def encode_data(content: str) -> str:
    return f"data {len(content.encode())}\n{content}\n"
