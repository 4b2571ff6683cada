"""`mergeyard targets` and `mergeyard check`: what a CI reports, which are impacted targets and results of checks."""

import re
import subprocess
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal, assert_never

import typer

from mergeyard.cli.output import encode_json, exit_with_message, exit_with_usage_error, print_message, show_spinner
from mergeyard.cli.pull_requests import parse_number
from mergeyard.cli.session import Session, with_session
from mergeyard.client import ImpactedTargetsResult
from mergeyard.domain import pull_requests
from mergeyard.domain.ids import Sha
from mergeyard.service.repo_config import CONFIG_FILE, InvalidConfig, PathTargets, UnmatchedPolicy, parse_config


class CheckoutError(Exception):
    """The checkout lacks something; the message says what to do."""


class Checkout:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def resolve_commit(self, revision: str) -> Sha:
        arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        failure = f"This checkout has no commit {revision}: fetch it, or choose another one."
        return Sha(self._git(*arguments, failure=failure).decode().strip())

    def list_changed_paths(self, base: Sha, head: Sha) -> set[str]:
        """Paths that the head changed since the merge base; a moved file counts with both of its names."""
        failure = (
            f"{head[:12]} and {base[:12]} have no common history in this checkout. "
            "Fetch both with their full history; a shallow clone is not enough."
        )
        merge_bases = self._git("merge-base", "--all", base, head, failure=failure).decode().split()
        return {path for start in merge_bases for path in self._paths_between(start, head)}

    def read_file(self, commit: Sha, path: str) -> bytes | None:
        listing = ("ls-tree", "-z", "--full-tree", commit, "--", path)
        if not self._git(*listing, failure=f"Git cannot list {commit[:12]}."):
            return None
        return self._git("cat-file", "blob", f"{commit}:{path}", failure=f"Git cannot read {path} of {commit[:12]}.")

    def _paths_between(self, old: str, new: str) -> list[str]:
        options = ("-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=none")
        printed = self._git("diff-tree", *options, old, new, failure=f"Git cannot compare {old[:12]} with {new[:12]}.")
        return printed.decode(errors="surrogateescape").split("\0")[:-1]

    def _git(self, *arguments: str, failure: str) -> bytes:
        """`failure`: the start of the message if git fails."""
        try:
            result = subprocess.run(["git", *arguments], cwd=self._folder, capture_output=True, check=False)
        except FileNotFoundError:
            raise CheckoutError("Git is not installed: install it.") from None
        if result.returncode:
            raise CheckoutError(f"{failure} {result.stderr.decode(errors='replace').strip()}")
        return result.stdout


ANY_FOLDERS_PATTERN = "(?:[^/]+/)*"
ANYTHING_BELOW_PATTERN = ".+"
WILDCARD_PATTERNS = {"*": "[^/]*", "?": "[^/]"}


def compile_globs(globs: Iterable[str]) -> re.Pattern[str]:
    """A pattern whose full match is every path that one of the globs covers."""
    return re.compile("|".join(map(to_regex, globs)), re.DOTALL)


def to_regex(glob: str) -> str:
    *folders_part, last = collapse_double_stars((f"{glob}**" if glob.endswith("/") else glob).split("/"))
    folders = (ANY_FOLDERS_PATTERN if part == "**" else f"{component_to_regex(part)}/" for part in folders_part)
    return "".join(folders) + (ANYTHING_BELOW_PATTERN if last == "**" else component_to_regex(last))


def collapse_double_stars(parts: list[str]) -> list[str]:
    """Consecutive `**` match the same as one, but make a regular expression far slower."""
    return [
        part for is_double_star, group in groupby(parts, "**".__eq__) for part in (["**"] if is_double_star else group)
    ]


def component_to_regex(part: str) -> str:
    return "".join(WILDCARD_PATTERNS.get(character) or re.escape(character) for character in re.sub(r"\*+", "*", part))


ALL_KEYWORD = "ALL"
MAX_TARGET_BYTES = 1024
"""The API's limit for one name."""


def compute_impacted_targets(paths: Iterable[str], path_targets: PathTargets) -> pull_requests.ImpactedTargets:
    patterns = {target: compile_globs(globs) for target, globs in path_targets.globs.items()}

    def impact_of(path: str) -> pull_requests.ImpactedTargets:
        matching = [target for target, pattern in patterns.items() if pattern.fullmatch(path)]
        return to_impacted_targets(matching) if matching else impact_of_unmatched(path, path_targets.unmatched)

    return pull_requests.union_impacted_targets(map(impact_of, paths))


def to_impacted_targets(names: Iterable[str]) -> pull_requests.ImpactedTargets:
    """ALL among other names means all targets."""
    targets = pull_requests.impacted_targets_from_names(*names)
    return pull_requests.ALL_TARGETS if ALL_KEYWORD in targets.names else targets


def impact_of_unmatched(path: str, unmatched: UnmatchedPolicy) -> pull_requests.ImpactedTargets:
    match unmatched:
        case UnmatchedPolicy.ALL:
            return pull_requests.ALL_TARGETS
        case UnmatchedPolicy.IGNORE:
            return pull_requests.NO_TARGETS
        case UnmatchedPolicy.PATH:
            name = escape_unprintable(path)
            return to_impacted_targets([name]) if len(name.encode()) <= MAX_TARGET_BYTES else pull_requests.ALL_TARGETS
        case _:
            assert_never(unmatched)


def escape_unprintable(path: str) -> str:
    """The path as printable text, safe for pipes and terminals."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in path)


app = typer.Typer(
    name="targets", no_args_is_help=True, help="Compute and upload impacted targets, for parallel queues."
)

PrOption = Annotated[
    int | None,
    typer.Option(
        "--pr", metavar="N", parser=parse_number, help="The number. Default: the pull request of the current branch."
    ),
]

PR_ADVICE = "Pass a number with --pr, such as --pr 12."


@app.command("from-paths")
@with_session
def from_paths(
    session: Session,
    base: Annotated[
        str, typer.Option("--base", metavar="COMMIT", help="The commit into which the pull request will be merged.")
    ] = "origin/main",
    head: Annotated[str, typer.Option("--head", metavar="COMMIT", help="The head of the pull request.")] = "HEAD",
    config: Annotated[
        Path | None, typer.Option("--config", help="A file with other globs to try. Default: those of the base.")
    ] = None,
    and_upload: Annotated[bool, typer.Option("--upload", help="Also upload the targets.")] = False,
    pr: PrOption = None,
) -> None:
    """Compute the impacted targets of this checkout from its changed paths.

    The globs in .mergeyard.toml name the targets. The command reads them from the base, so that a pull request cannot
    choose its own globs. Without --upload it calls no server.

    Examples:
        mergeyard targets from-paths --base origin/main
        mergeyard targets from-paths --base origin/main --upload --pr 12
    """
    with exit_on_checkout_errors():
        checkout = Checkout(Path.cwd())
        base_sha, head_sha = checkout.resolve_commit(base), checkout.resolve_commit(head)
        content = checkout.read_file(base_sha, CONFIG_FILE) if config is None else config.read_bytes()
        targets = compute_impacted_targets(checkout.list_changed_paths(base_sha, head_sha), parse_globs(content))
    print_targets(session, targets)
    if and_upload:
        report_upload(upload_targets(session, session.find_number(pr, PR_ADVICE), targets, head_sha))


@app.command("set")
@with_session
def set_targets(
    session: Session,
    names: Annotated[list[str] | None, typer.Argument(metavar="TARGET...", help="The targets, or ALL.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="A file with one target per line; - is standard input.")
    ] = None,
    nothing: Annotated[
        bool, typer.Option("--allow-empty", help="Allow an empty list: the pull request impacts nothing.")
    ] = False,
    sha: Annotated[
        str | None, typer.Option("--sha", help="The commit that they belong to. Default: the current head.")
    ] = None,
    pr: PrOption = None,
) -> None:
    """Upload the impacted targets of a pull request. They replace earlier ones.

    Examples:
        mergeyard targets set --pr 12 //app:server //lib:parser
        mergeyard targets set --pr 12 --file targets.txt --sha "$GIT_COMMIT"
    """
    with exit_on_checkout_errors():
        names_given = [*(names or ()), *read_lines(file)]
    if not names_given and not nothing:
        exit_with_usage_error("No target is given: pass targets, or --allow-empty if the pull request impacts nothing.")
    stored = upload_targets(session, session.find_number(pr, PR_ADVICE), to_impacted_targets(names_given), sha)
    session.show(stored, lambda: report_upload(stored))


def upload_targets(
    session: Session, number: int, targets: pull_requests.ImpactedTargets, sha: str | None
) -> ImpactedTargetsResult:
    with show_spinner("Uploading targets"):
        return session.client.set_impacted_targets(session.queue, number, encode_targets(targets), sha=sha)


def report_upload(stored: ImpactedTargetsResult) -> None:
    print_message(f"Pull request {stored.pr_number} at {stored.pr_sha[:12]} impacts {format_target_count(stored)}.")


def parse_globs(content: bytes | None) -> PathTargets:
    config = parse_config(content)
    if isinstance(config, InvalidConfig):
        exit_with_message(config.message)
    if config.path_targets is None:
        print_message(f"{CONFIG_FILE} of the base has no [targets], so every change impacts ALL.")
        return PathTargets({})
    return config.path_targets


def read_lines(file: Path | None) -> Iterable[str]:
    if file is None:
        return ()
    content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    return filter(None, map(str.strip, content.decode().split("\n")))


def encode_targets(targets: pull_requests.ImpactedTargets) -> Literal["ALL"] | list[str]:
    """As the API accepts them."""
    return "ALL" if targets.everything else sorted(targets.names)


def format_target_count(stored: ImpactedTargetsResult) -> str:
    match stored.impacted_targets:
        case "ALL":
            return "ALL targets"
        case 1:
            return "1 target"
        case number:
            return f"{number} targets"


def print_targets(session: Session, targets: pull_requests.ImpactedTargets) -> None:
    encoded = encode_targets(targets)
    if session.as_json:
        typer.echo(encode_json({"impactedTargets": encoded}))
    else:
        for name in [encoded] if isinstance(encoded, str) else encoded:
            typer.echo(name)


@contextmanager
def exit_on_checkout_errors() -> Generator[None]:
    try:
        yield
    except (CheckoutError, OSError, UnicodeDecodeError) as error:
        exit_with_message(str(error))


check_app = typer.Typer(name="check", no_args_is_help=True, help="Report results of checks.")

CheckState = Literal["success", "failure", "pending", "error"]


@check_app.command()
@with_session
def report(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the check.")],
    sha: Annotated[str, typer.Option("--sha", metavar="SHA", help="The commit that was checked.")],
    state: Annotated[CheckState, typer.Option("--state", help="The result.")],
    details_url: Annotated[
        str | None, typer.Option("--details-url", metavar="URL", help="A page with details, such as the CI job.")
    ] = None,
    description: Annotated[
        str | None, typer.Option("--description", metavar="TEXT", help="A short summary of the result.")
    ] = None,
) -> None:
    """Report the result of a check for a commit.

    For repositories whose checks are reported through the API. Other Git hosts report their checks themselves.

    Examples:
        mergeyard check report unit --sha "$GIT_COMMIT" --state success
    """
    repo = session.named_repo or session.queue.repo
    accepted = session.client.report_status(repo, sha, name, state, url=details_url, description=description)
    session.show(accepted, lambda: print_message(f"Reported {name} as {state} for {sha[:12]} of {repo}."))
