"""Runs the live conformance kit: `python -m tests.live github --owner acme --token-file token`."""

import argparse
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.forge.gitea_admin import GiteaAdmin
from tests.forge.gitea_server import GiteaServer, find_binary
from tests.live.client import UNREACHABLE
from tests.live.hosts import Access
from tests.live.kit import KINDS, MAX_MINUTES, STARTING_ERRORS, Plan, run
from tests.live.report import hide, to_json, to_markdown

VARIABLE = "MERGEYARD_LIVE_"
WEB_URLS = {"github": "https://github.com", "gitlab": "https://gitlab.com", "gitea": ""}
API_PATHS = {"github": "/api/v3", "gitlab": "/api/v4", "gitea": "/api/v1"}
FOLDER = Path(".live")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.live",
        description="Runs Mergeyard on a scratch repository of a Git host, and compares its answers with our fake.",
        epilog=f"Each option can also be an environment variable, such as {VARIABLE}OWNER or {VARIABLE}TOKEN_FILE. "
        f"{VARIABLE}TOKEN and {VARIABLE}SECOND_TOKEN hold the tokens themselves.",
    )

    def add(name: str, text: str) -> None:
        variable = VARIABLE + name.upper().replace("-", "_")
        parser.add_argument(f"--{name}", default=os.environ.get(variable, ""), help=text)

    parser.add_argument("kind", choices=KINDS, help="the kind of Git host")
    add("url", "the address of the Git host; Gitea without an address is started on this machine")
    add("api-url", "the address of its API, if it is not the usual one")
    add("owner", "the organization, group or user that owns the scratch repository")
    add("token-file", "a file with a token of a person who can create and delete repositories of the owner")
    add("second-token-file", "a file with a token of another person, for reviews and forks")
    add("app-id", "GitHub: the App that Mergeyard uses, installed on all repositories of the owner")
    add("app-key-file", "GitHub: the private key of the App")
    add("scratch-repo", "an empty repository, or one of an earlier run with --keep; without it the kit creates one")
    add("public-url", "an address at which the Git host reaches this machine; without it Mergeyard only polls")
    add("port", "the port of this machine that the public address leads to; 8080 without it")
    add("minutes", f"how long a run can take; {MAX_MINUTES} without it")
    add("ca-file", "certificates, if the Git host uses its own certificate authority")
    names = "; ".join(f"{kind}: {', '.join(KINDS[kind].steps)}" for kind in KINDS)
    add("steps", f"only these steps, separated by commas. {names}")
    parser.add_argument("--public", action="store_true", help="create a public repository, not a private one")
    parser.add_argument("--free", action="store_true", help="GitHub: the plan has no rules for private repositories")
    parser.add_argument("--premium", action="store_true", help="GitLab: the plan has approval rules")
    parser.add_argument("--keep", action="store_true", help="keep the repository")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    steps = tuple(name for name in str(options.steps).split(",") if name)
    if unknown := set(steps) - KINDS[options.kind].steps.keys():
        print(f"There is no step {', '.join(sorted(unknown))}. --help lists the steps.", file=sys.stderr)
        return 2
    with ExitStack() as stack:
        try:
            access = read_access(options, stack)
        except OSError as error:
            access = f"{error.filename} cannot be read: {error.strerror}."
        if isinstance(access, str):
            print(access, file=sys.stderr)
            return 2
        plan = Plan(
            kind=options.kind,
            access=access,
            repository=options.scratch_repo.rpartition("/")[2],
            steps=steps,
            keep=options.keep,
            public_url=options.public_url.rstrip("/"),
            port=int(options.port or 8080),
            minutes=int(options.minutes or MAX_MINUTES),
        )
        try:
            report, secrets = run(plan)
        except UNREACHABLE as error:
            why = str(error) or type(error).__name__
            hint = "If this is not its address, correct --url or --api-url."
            print(f"{access.api_url} does not answer: {why}. {hint}", file=sys.stderr)
            return 2
        except STARTING_ERRORS as error:
            print(hide(str(error), access.secrets), file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("The kit was stopped. There is no report.", file=sys.stderr)
            return 130
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / ".gitignore").write_text("*\n")
    for suffix, content in (("md", to_markdown(report, secrets)), ("json", to_json(report, secrets))):
        (FOLDER / f"{options.kind}.{suffix}").write_text(content)
    for problem in report.problems:
        print(hide(problem, secrets))
    print(report.verdict)
    print(f"The report is in {FOLDER}/{options.kind}.md and {FOLDER}/{options.kind}.json.")
    return 1 if report.problems else 0


def read_access(options: argparse.Namespace, stack: ExitStack) -> Access | str:
    """What the options say, or what is missing."""
    url = (options.url or WEB_URLS[options.kind]).rstrip("/")
    if options.kind == "gitea" and not url:
        return start_gitea(stack)
    token, second = read_secret(options.token_file, "TOKEN"), read_secret(options.second_token_file, "SECOND_TOKEN")
    if not options.owner or not token:
        return (
            f"Set --owner and --token-file, or {VARIABLE}OWNER and {VARIABLE}TOKEN. "
            "The token must be able to create and delete repositories of the owner."
        )
    if bool(options.app_id) != bool(options.app_key_file):
        return "Set --app-id and --app-key-file together."
    return Access(
        web_url=url,
        api_url=options.api_url.rstrip("/") or find_api_url(options.kind, url),
        owner=options.owner,
        token=token,
        second_token=second,
        app_id=options.app_id,
        app_key=Path(options.app_key_file).read_text() if options.app_key_file else "",
        is_private=not options.public,
        is_premium=options.premium,
        is_free=options.free and not options.public,
        ca_file=Path(options.ca_file) if options.ca_file else None,
    )


def find_api_url(kind: str, url: str) -> str:
    """GitHub has its API at an address of its own, except on a server of the customer."""
    name = url.partition("//")[2]
    is_cloud = kind == "github" and (name == "github.com" or name.endswith(".ghe.com"))
    return f"https://api.{name}" if is_cloud else url + API_PATHS[kind]


def read_secret(path: str, variable: str) -> str:
    return Path(path).read_text().strip() if path else os.environ.get(VARIABLE + variable, "")


def start_gitea(stack: ExitStack) -> Access | str:
    """A Gitea on this machine, with two accounts."""
    binary = find_binary()
    if binary is None:
        return "There is no Gitea. Run `make forge` to build one, or name one with --url."
    server = stack.enter_context(GiteaServer(binary))
    admin = GiteaAdmin(server.url, server.admin_token)
    stack.callback(admin.close)
    owner, second = (admin.token_of(name, "all") for name in ("kit-owner", "kit-second"))
    return Access(
        web_url=server.url, api_url=f"{server.url}/api/v1", owner="kit-owner", token=owner, second_token=second
    )


if __name__ == "__main__":
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
