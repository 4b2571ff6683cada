"""`mergeyard queue`: creates, configures and inspects queues."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, Literal, cast

import typer
from msgspec import inspect
from rich.text import Text

from mergeyard.cli.connection_options import find_queues, parse_repo_name, set_signature
from mergeyard.cli.output import (
    build_table,
    exit_with_usage_error,
    plain_text,
    print_message,
    print_output,
    print_table,
    show_queue,
    show_queues,
    show_spinner,
    style_queue_state,
)
from mergeyard.cli.session import Session, with_session
from mergeyard.client import Queue, Queues, Settings
from mergeyard.client.transport import to_camel_case
from mergeyard.domain.config import SETTING_DESCRIPTIONS, SETTINGS_WITHOUT_EFFECT, Config

SETTINGS_PANEL = "Settings"


def with_setting_options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: adds all settings as options to a command, and passes it the given ones."""

    @wraps(command)
    def run(session: Session, **arguments: Any) -> None:
        values = {option.name: arguments.pop(option.name) for option in SETTING_OPTIONS}
        command(session, {name: value for name, value in values.items() if value is not None}, **arguments)

    first, _, *own = signature(command).parameters.values()
    return set_signature(run, [first, *own, *SETTING_OPTIONS])


def build_option(name: str, kind: inspect.Type, default: Any) -> Parameter:
    option_type, typer_arguments, choices = _describe_option(name, kind)
    help_text = f"{SETTING_DESCRIPTIONS[name]} {choices}Default: {format_setting(default)}."
    info = typer.Option(
        f"--{name.replace('_', '-')}",
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

    QUEUED counts pull requests, RUNNING counts test runs in progress.
    """
    repo = None if session.repo is None else parse_repo_name(session.repo)
    queues = find_queues(session.client, repo, session.branch)
    session.show(Queues(queues=tuple(queues)), lambda: show_queues(read_counts(session, queues)))


MAX_COUNTED_QUEUES = 100
CONCURRENT_READS = 8


def read_counts(session: Session, queues: Sequence[Queue]) -> list[Queue]:
    """The first queues with their pull requests, each by a request of its own."""
    counted, others = queues[:MAX_COUNTED_QUEUES], queues[MAX_COUNTED_QUEUES:]
    if others:
        print_message(
            f"Only the first {MAX_COUNTED_QUEUES} queues are shown with numbers: choose others with --repo or --branch."
        )

    def read(queue: Queue) -> Queue:
        return session.read_if_possible(lambda: session.client.get_queue(queue.queue_name)) or queue

    with show_spinner("Reading"), ThreadPoolExecutor(CONCURRENT_READS) as pool:
        return [*pool.map(read, counted), *others]


@app.command()
@with_session
def show(session: Session) -> None:
    """Show a queue with all of its pull requests."""
    show_result(session, session.client.get_queue(session.queue))


@app.command("settings")
@with_session
def show_settings(
    session: Session,
    diff: Annotated[bool, typer.Option("--diff", help="Only those that differ from their defaults.")] = False,
) -> None:
    """Show all settings of a queue, with their defaults.

    Each is named like its option of `mergeyard queue update`.
    """
    values = read_settings(session.client.get_queue(session.queue))
    shown = {name: value for name, value in values.items() if not diff or value != SETTING_DEFAULTS[name]}

    def render() -> None:
        table = build_table("setting", "value", "default")
        for name, value in shown.items():
            default = format_setting(SETTING_DEFAULTS[name])
            table.add_row(name.replace("_", "-"), plain_text(format_setting(value)), plain_text(default))
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

    The first time, the server fetches the repository, which can take a while.
    """
    with show_spinner("Creating the queue"):
        queue = session.client.create_queue(session.new_queue, **settings)
    show_result(session, queue)


@app.command()
@with_session
@with_setting_options
def update(session: Session, settings: Settings, delete_required_statuses: DeleteStatusesOption = False) -> None:
    """Change the given settings, and show what changed; all others stay as they are."""
    if delete_required_statuses:
        settings["required_statuses"] = None
    if not settings:
        advice = "Pass a setting, such as --concurrency 8; `mergeyard queue settings` lists all of them."
        exit_with_usage_error(f"Nothing to change. {advice}")
    before = session.read_if_possible(lambda: session.client.get_queue(session.queue))
    after = session.client.update_queue(session.queue, **settings)
    session.show(after, lambda: show_changes(before, after, list(settings)))


def show_changes(before: Queue | None, after: Queue, names: Sequence[str]) -> None:
    """`before` is None for a token that can change the queue but not read it."""
    old, new = {} if before is None else read_settings(before), read_settings(after)
    changed = [name for name in names if name not in old or old[name] != new[name]]
    lines = [
        f"{name.replace('_', '-')}: {format_setting(old[name])} → {format_setting(new[name])}"
        if name in old
        else f"{name.replace('_', '-')}: {format_setting(new[name])}"
        for name in changed
    ]
    unchanged = f"Nothing changed. Already so: {', '.join(name.replace('_', '-') for name in names)}."
    print_output(*map(plain_text, lines or [unchanged]))
    if after.state == "SWITCHING_MODES":
        print_message("The queue switches its mode when the pull requests under test have merged or failed.")


@app.command()
@with_session
def delete(session: Session) -> None:
    """Delete a queue that is empty."""
    deleted = session.client.delete_queue(session.queue)
    session.show(deleted, lambda: print_message(f"Deleted the queue for {session.queue}."))


ReasonOption = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="Why, for everyone who sees the queue; at most 500 characters."),
]


@app.command()
@with_session
def pause(session: Session, reason: ReasonOption = None) -> None:
    """Pause a queue: nothing enters, starts or merges until it is resumed.

    Returns when no merge is in progress.
    """
    next_step = "Nothing enters, starts or merges until `mergeyard queue resume`. Test runs in progress continue."
    change_state(session, "PAUSED", "Pausing", next_step, reason)


@app.command()
@with_session
def resume(session: Session) -> None:
    """Resume a queue, and remove the reason of its pause."""
    change_state(session, "RUNNING", "Resuming", "The queue admits, tests and merges pull requests again.")


@app.command()
@with_session
def drain(session: Session, reason: ReasonOption = None) -> None:
    """Drain a queue: finish what is in it, and accept nothing new."""
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
