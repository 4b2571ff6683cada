"""`mergeyard queue`: creates, configures and inspects queues."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, Literal, cast

import typer
from msgspec import inspect
from rich.table import Table
from rich.text import Text

from mergeyard.cli.connection_options import WebOption, YesOption, find_queues, parse_repo_name, set_signature
from mergeyard.cli.output import (
    STATE_STYLES,
    build_facts_table,
    build_table,
    confirm,
    cut_title,
    exit_with_usage_error,
    format_estimate,
    format_next_merge,
    format_reason,
    format_time,
    label_state,
    plain_text,
    print_message,
    print_output,
    print_table,
    show_spinner,
    style_queue_state,
    style_state,
)
from mergeyard.cli.session import Session, page_of_queue, with_session
from mergeyard.client import EnqueuedPullRequest, Queue, Queues, Settings
from mergeyard.client.transport import to_camel_case
from mergeyard.domain.config import SETTING_DESCRIPTIONS, SETTINGS_WITHOUT_EFFECT, Config
from mergeyard.domain.states import Reason

SETTINGS_PANEL = "Settings"


def with_setting_options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: adds all settings as options to a command, and passes it the given ones."""

    @wraps(command)
    def run(session: Session, **arguments: Any) -> None:
        values = {option.name: arguments.pop(option.name) for option in SETTING_OPTIONS}
        command(session, {name: value for name, value in values.items() if value is not None}, **arguments)

    first, _, *own = signature(command).parameters.values()
    return set_signature(run, [first, *own, *SETTING_OPTIONS])


def to_option_name(setting: str) -> str:
    return setting.replace("_", "-")


def build_option(name: str, kind: inspect.Type, default: Any) -> Parameter:
    option_type, typer_arguments, choices = _describe_option(name, kind)
    help_text = f"{SETTING_DESCRIPTIONS[name]} {choices}Default: {format_setting(default)}."
    info = typer.Option(
        f"--{to_option_name(name)}",
        help=help_text,
        rich_help_panel=SETTINGS_PANEL,
        show_choices=False,
        **typer_arguments,
    )
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[option_type | None, info])


def _describe_option(name: str, kind: inspect.Type) -> tuple[Any, dict[str, Any], str]:
    """The Python type of an option, its Typer arguments, and an addition to its help."""
    match kind:
        case inspect.BoolType():
            return str, {"parser": parse_switch, "metavar": "on|off"}, ""
        case inspect.IntType(ge=minimum, le=maximum):
            return (
                int,
                {"parser": build_number_parser(minimum or 0, maximum or 0), "metavar": f"{minimum}-{maximum}"},
                "",
            )
        case inspect.EnumType(cls=choices):
            listed = ", ".join(choice.value for choice in choices)
            return choices, {"case_sensitive": False, "metavar": "WORD"}, f"One of {listed}. "
        case inspect.StrType():
            return str, {"metavar": "TEXT"}, ""
        case inspect.UnionType(types=(inspect.VarTupleType(), inspect.NoneType())):
            return list[str], {"metavar": "NAME"}, "Repeat it for several. "
        case _:
            raise TypeError(f"setting {name} has the unsupported type {kind}")


def build_number_parser(minimum: int, maximum: int) -> Callable[[str], int]:
    def parse_number(text: str) -> int:
        if not text.isdecimal() or not minimum <= int(text) <= maximum:
            raise typer.BadParameter(f"{text} is not a whole number from {minimum} to {maximum}.")
        return int(text)

    return parse_number


def parse_switch(text: str) -> bool:
    match text.lower():
        case "on" | "true" | "yes":
            return True
        case "off" | "false" | "no":
            return False
        case _:
            raise typer.BadParameter(f"{text} is neither on nor off: write on or off.")


def format_setting(value: Any) -> str:
    match value:
        case None:
            return "as configured in the repository"
        case bool():
            return "on" if value else "off"
        case tuple() | list():
            return ", ".join(map(str, cast(Sequence[object], value)))
        case _:
            return str(value)


SETTING_OPTIONS = [
    build_option(field.name, field.type, field.default)
    for field in cast(inspect.StructType, inspect.type_info(Config)).fields
    if field.name not in SETTINGS_WITHOUT_EFFECT
]


app = typer.Typer(name="queue", no_args_is_help=True, help="Create, configure and inspect queues.")

DeleteStatusesOption = Annotated[
    bool, typer.Option("--delete-required-statuses", help="Use the required checks of the repository again.")
]


@app.command("list")
@with_session
def list_command(session: Session) -> None:
    """List the queues that the token can read, or those of --repo and --branch.

    QUEUED, TESTING and NOT READY count pull requests. TESTING is a part of QUEUED. REASON shows why a queue is
    paused or draining, and its problems.

    Examples:
        mergeyard queue list
        mergeyard queue list --repo github.com/acme/app --json
    """
    repo = None if session.repo is None else parse_repo_name(session.repo)
    queues = find_queues(session.client, repo, session.branch)
    session.show(Queues(queues=tuple(queues)), lambda: show_queues(queues))


def show_queues(queues: Sequence[Queue]) -> None:
    remarks = [format_remark(queue) for queue in queues]
    has_remarks = any(remarks)
    columns = ("repository", "branch", "state", "mode", "queued", "testing", "not ready")
    table = build_table(*columns, *(["reason"] if has_remarks else []))
    for queue, remark in zip(queues, remarks, strict=True):
        cells = [plain_text(queue.repo), plain_text(queue.branch), style_health(queue), plain_text(queue.mode)]
        cells += map(plain_text, list_counts(queue))
        if has_remarks:
            cells.append(plain_text(remark))
        table.add_row(*cells)
    print_table(table, "No queues. Create one with `mergeyard queue create`.")


def style_health(queue: Queue) -> Text:
    """A queue that runs and has a problem is not marked as running: the page marks it in the same way."""
    if queue.state == "RUNNING" and queue.problems:
        return plain_text("Problem", STATE_STYLES["failed"])
    return style_state(queue.state)


def list_counts(queue: Queue) -> tuple[str, str, str]:
    counts = queue.pull_request_counts
    if counts is None:
        return ("–", "–", "–")
    return (str(counts.queued), str(counts.testing), str(counts.not_ready))


def format_remark(queue: Queue) -> str:
    """Why the queue is paused or draining, and its problems."""
    reason = [queue.state_reason] if queue.state_reason else []
    return "; ".join((*reason, *(queue.problems or ())))


@app.command()
@with_session
def show(session: Session, web: WebOption = False) -> None:
    """Show a queue with all of its pull requests.

    Examples:
        mergeyard queue show
        mergeyard queue show --queue github.com/acme/app:main --web
    """
    if web:
        session.open_page(page_of_queue(session.queue))
    else:
        show_result(session, session.client.get_queue(session.queue))


@app.command("settings")
@with_session
def show_settings(
    session: Session,
    diff: Annotated[bool, typer.Option("--diff", help="Show only settings that differ from their defaults.")] = False,
) -> None:
    """Show all settings of a queue, with their defaults.

    Each setting has the name of its option of `mergeyard queue update`.

    Examples:
        mergeyard queue settings
        mergeyard queue settings --diff
    """
    values = read_settings(session.client.get_queue(session.queue))
    shown = {name: value for name, value in values.items() if not diff or value != SETTING_DEFAULTS[name]}

    def render() -> None:
        table = build_table("setting", "value", "default")
        for name, value in shown.items():
            default = format_setting(SETTING_DEFAULTS[name])
            table.add_row(to_option_name(name), plain_text(format_setting(value)), plain_text(default))
        print_table(table, "All settings have their defaults.")

    session.show({to_camel_case(name): value for name, value in shown.items()}, render)


SETTING_DEFAULTS = {
    field.name: field.default
    for field in cast(inspect.StructType, inspect.type_info(Config)).fields
    if field.name not in SETTINGS_WITHOUT_EFFECT
}


def read_settings(queue: Queue) -> dict[str, Any]:
    return {name: getattr(queue, name) for name in SETTING_DEFAULTS}


@app.command()
@with_session
@with_setting_options
def create(session: Session, settings: Settings) -> None:
    """Create a queue for a branch.

    For the first queue of a repository, the server fetches the repository, which can take a while.

    Examples:
        mergeyard queue create --repo github.com/acme/app --branch main
        mergeyard queue create --branch main --batch on --batching-min-size 8
    """
    with show_spinner("Creating the queue"):
        queue = session.client.create_queue(session.new_queue, **settings)
    show_result(session, queue)


@app.command()
@with_session
@with_setting_options
def update(session: Session, settings: Settings, delete_required_statuses: DeleteStatusesOption = False) -> None:
    """Change the given settings of a queue, and show what changed.

    All other settings stay as they are.

    Examples:
        mergeyard queue update --concurrency 10
        mergeyard queue update --delete-required-statuses
    """
    if delete_required_statuses:
        settings["required_statuses"] = None
    if not settings:
        advice = "Pass a setting, such as --concurrency 8. `mergeyard queue settings` lists all of them."
        exit_with_usage_error("No setting is given.", hint=advice)
    before = session.read_if_possible(lambda: session.client.get_queue(session.queue))
    after = session.client.update_queue(session.queue, **settings)
    session.show(after, lambda: show_changes(before, after, list(settings)))


def show_changes(before: Queue | None, after: Queue, names: Sequence[str]) -> None:
    """`before` is None for a token that can change the queue but not read it."""
    old, new = {} if before is None else read_settings(before), read_settings(after)
    changed = [name for name in names if name not in old or old[name] != new[name]]
    lines = [
        f"{to_option_name(name)}: {f'{format_setting(old[name])} → ' if name in old else ''}{format_setting(new[name])}"
        for name in changed
    ]
    unchanged = f"Nothing changed: the queue already has these values of {', '.join(map(to_option_name, names))}."
    print_output(*map(plain_text, lines or [unchanged]))
    if after.state == "SWITCHING_MODES":
        print_message("The queue switches its mode when the pull requests under test have merged or failed.")


@app.command()
@with_session
def delete(session: Session, yes: YesOption = False) -> None:
    """Delete a queue that is empty.

    Examples:
        mergeyard queue delete --branch release-1
    """
    confirm(f"Delete the queue for {session.queue}?", yes)
    deleted = session.client.delete_queue(session.queue)
    session.show(deleted, lambda: print_message(f"Deleted the queue for {session.queue}."))


ReasonOption = Annotated[
    str | None,
    typer.Option(
        "--reason", metavar="TEXT", help="The reason, which every user of the queue sees; at most 500 characters."
    ),
]


@app.command()
@with_session
def pause(session: Session, reason: ReasonOption = None, yes: YesOption = False) -> None:
    """Pause a queue: nothing enters, starts or merges until it is resumed.

    The command returns when no merge is in progress.

    Examples:
        mergeyard queue pause --reason "Release freeze until Monday"
    """
    confirm(f"Pause the queue for {session.queue}? Nothing enters, starts or merges until it is resumed.", yes)
    next_step = "Nothing enters, starts or merges until `mergeyard queue resume`. Test runs in progress continue."
    change_state(session, "PAUSED", "Pausing", next_step, reason)


@app.command()
@with_session
def resume(session: Session) -> None:
    """Resume a queue, and remove the reason of its pause.

    Examples:
        mergeyard queue resume
    """
    change_state(session, "RUNNING", "Resuming", "The queue admits, tests and merges pull requests again.")


@app.command()
@with_session
def drain(session: Session, reason: ReasonOption = None, yes: YesOption = False) -> None:
    """Drain a queue: it finishes its pull requests, and admits no new ones.

    Examples:
        mergeyard queue drain --reason "Moving to another repository"
    """
    confirm(f"Drain the queue for {session.queue}? It admits no new pull requests until it is resumed.", yes)
    next_step = "The queue finishes its pull requests, and admits no new ones until `mergeyard queue resume`."
    change_state(session, "DRAINING", "Draining", next_step, reason)


def change_state(
    session: Session,
    state: Literal["RUNNING", "PAUSED", "DRAINING"],
    message: str,
    next_step: str,
    reason: str | None = None,
) -> None:
    with show_spinner(message):
        queue = session.client.update_queue(session.queue, state=state, state_reason=reason)
    title = Text.assemble(plain_text(queue.queue_name, "bold"), "  ", style_queue_state(queue))
    session.show(queue, lambda: print_output(title, plain_text(next_step)))


def show_result(session: Session, queue: Queue) -> None:
    session.show(queue, lambda: show_queue(queue))


def show_queue(queue: Queue) -> None:
    """With the most important settings; `mergeyard queue settings` shows all of them."""
    title = Text.assemble(plain_text(queue.queue_name, "bold"), "  ", style_queue_state(queue))
    pull_requests, checks = queue.enqueued_pull_requests, queue.required_statuses
    settings = {
        "mode": queue.mode,
        "concurrency": queue.concurrency,
        "batches": f"of {queue.batching_min_size}" if queue.batch else "off",
        "merge method": f"{queue.merge_method} ({queue.landing})",
        "required": "as configured in the repository" if checks is None else ", ".join(checks),
    }
    facts = {"problems": queue.problems, "next merge": format_next_merge(queue, datetime.now(UTC))} | settings
    tables = [build_facts_table(facts), *([build_pull_requests_table(pull_requests)] if pull_requests else [])]
    print_output(title, *build_obstacle(queue), *tables)


def build_obstacle(queue: Queue) -> Iterator[Text]:
    obstacle = queue.obstacle
    if obstacle is None:
        return
    yield plain_text(f"Since {format_time(obstacle.since)}: {obstacle.message}", "red")
    if obstacle.code == Reason.PROVIDER_REFUSED:
        repo = queue.queue_name.repo
        yield plain_text(f"To find what is missing: mergeyard host check {repo}")


def build_pull_requests_table(pull_requests: tuple[EnqueuedPullRequest, ...]) -> Table:
    table = build_table("position", "PR", "state", "author", "title", "merges", "reason")
    now = datetime.now(UTC)
    for pull_request in pull_requests:
        position = "–" if pull_request.position is None else str(pull_request.position)
        cells = (
            plain_text(pull_request.pr_author),
            cut_title(pull_request.pr_title),
            format_estimate(pull_request, now),
            plain_text(format_reason(pull_request.reason)),
        )
        table.add_row(
            position,
            f"#{pull_request.pr_number}",
            plain_text(label_state(pull_request), STATE_STYLES.get(pull_request.state, "")),
            *cells,
        )
    return table
