"""Every setting of a queue as an option, drawn from the one table of the domain: names, ranges, words and meanings."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, cast

import typer
from msgspec import inspect

from mergeyard.cli.session import Session, with_parameters
from mergeyard.domain.config import Config
from mergeyard.service.meanings import MEANINGS

PANEL = "Settings"


def taking_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command all settings as options, and passes those on that were named."""

    @wraps(command)
    def run(session: Session, **given: Any) -> None:
        wishes = {option.name: given.pop(option.name) for option in OPTIONS}
        command(session, {name: value for name, value in wishes.items() if value is not None}, **given)

    first, _, *own = signature(command).parameters.values()
    return with_parameters(run, [first, *own, *OPTIONS])


def option(name: str, kind: inspect.Type, default: Any) -> Parameter:
    asked, more, words = _asked(name, kind)
    told = f"{MEANINGS[name]} {words}Default: {_spelled(default)}."
    info = typer.Option(f"--{name.replace('_', '-')}", help=told, rich_help_panel=PANEL, show_choices=False, **more)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[asked | None, info])


def _asked(name: str, kind: inspect.Type) -> tuple[Any, dict[str, Any], str]:
    """The type of an option, how it is taken, and what its help must say about that."""
    match kind:
        case inspect.BoolType():
            return str, {"parser": read_switch, "metavar": "on|off"}, ""
        case inspect.IntType(ge=least, le=most):
            return int, {"parser": reading_numbers(least or 0, most or 0), "metavar": f"{least}-{most}"}, ""
        case inspect.EnumType(cls=words):
            spelled = ", ".join(word.value for word in words)
            return words, {"case_sensitive": False, "metavar": "WORD"}, f"One of {spelled}. "
        case inspect.StrType():
            return str, {"metavar": "TEXT"}, ""
        case inspect.UnionType(types=(inspect.VarTupleType(), inspect.NoneType())):
            return list[str], {"metavar": "NAME"}, "Repeat it for several. "
        case _:
            raise TypeError(f"no option can say {name}, which is {kind}")


def reading_numbers(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise typer.BadParameter(f"{text} is no whole number from {least} to {most}.")
        return int(text)

    return number


def read_switch(text: str) -> bool:
    match text.lower():
        case "on" | "true" | "yes":
            return True
        case "off" | "false" | "no":
            return False
        case _:
            raise typer.BadParameter(f"{text} is neither on nor off.")


def _spelled(default: Any) -> str:
    match default:
        case None:
            return "the repository chooses"
        case bool():
            return "on" if default else "off"
        case _:
            return str(default)


OPTIONS = [
    option(field.name, field.type, field.default)
    for field in cast(inspect.StructType, inspect.type_info(Config)).fields
]
