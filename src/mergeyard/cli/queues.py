"""`mergeyard queue`: creates, configures and inspects queues."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, Literal, cast

import typer
from msgspec import inspect

from mergeyard.cli.connection_options import find_queues, parse_repo_name, set_signature
from mergeyard.cli.output import print_message, show_queue, show_queues, show_spinner
from mergeyard.cli.session import Session, with_session
from mergeyard.client import Queue, Queues, Settings
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
    help_text = f"{SETTING_DESCRIPTIONS[name]} {choices}Default: {_format_default(default)}."
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


def _format_default(default: Any) -> str:
    match default:
        case None:
            return "as configured in the repository"
        case bool():
            return "on" if default else "off"
        case _:
            return str(default)


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
    """List the queues that the token can read, or those of --repo and --branch."""
    repo = None if session.repo is None else parse_repo_name(session.repo)
    queues = find_queues(session.client, repo, session.branch)
    session.show(Queues(queues=tuple(queues)), lambda: show_queues(queues))


@app.command()
@with_session
def show(session: Session) -> None:
    """Show a queue with all of its pull requests."""
    show_result(session, session.client.get_queue(session.queue))


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
    """Change the given settings; all others stay as they are."""
    if delete_required_statuses:
        settings["required_statuses"] = None
    show_result(session, session.client.update_queue(session.queue, **settings))


@app.command()
@with_session
def delete(session: Session) -> None:
    """Delete a queue that is empty."""
    deleted = session.client.delete_queue(session.queue)
    session.show(deleted, lambda: print_message(f"Deleted the queue for {session.queue}."))


@app.command()
@with_session
def pause(session: Session) -> None:
    """Pause a queue: nothing enters, starts or merges until it is resumed.

    Returns when no landing is in progress.
    """
    change_state(session, "PAUSED", "Pausing")


@app.command()
@with_session
def resume(session: Session) -> None:
    """Resume a queue."""
    change_state(session, "RUNNING", "Resuming")


@app.command()
@with_session
def drain(session: Session) -> None:
    """Drain a queue: finish what is in it, and accept nothing new."""
    change_state(session, "DRAINING", "Draining")


def change_state(session: Session, state: Literal["RUNNING", "PAUSED", "DRAINING"], message: str) -> None:
    with show_spinner(message):
        queue = session.client.update_queue(session.queue, state=state)
    show_result(session, queue)


def show_result(session: Session, queue: Queue) -> None:
    session.show(queue, lambda: show_queue(queue))
