"""What a command has that asks a server: the client, the queue that is meant, and a way to show the answer."""

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import cached_property, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import typer

from mergeyard.cli.choosing import chosen, named_repo, spelled_out
from mergeyard.cli.exits import Ends, stop_with
from mergeyard.cli.plainly import clean, in_json
from mergeyard.cli.whom import TOKEN, URL, Whom
from mergeyard.client import Client, MergeyardError, Patience, QueueName, Unreachable

QUICK = Patience(altogether=8)
"""Somebody sits there and waits."""
PATIENT = Patience(altogether=300)
"""Longer than a server takes to start again."""


class Session:
    """Asks nobody before it must: whoever only computes something needs no server."""

    def __init__(self, whom: Whom) -> None:
        self.whom = spelled_out(whom)

    @cached_property
    def client(self) -> Client:
        if not self.whom.url:
            stop_with(f"Set {URL} to where the service is, such as https://queue.example.com.", Ends.WRONG_USE)
        try:
            return Client(self.whom.url, self._token(), patience=QUICK)
        except ImportError:
            words = "The environment names a SOCKS proxy, and what speaks with one is missing"
            stop_with(f"{words}: unset ALL_PROXY, or `pip install 'httpx[socks]'`.", Ends.WRONG_USE)
        except ValueError as wrong:
            stop_with(f"{wrong} It comes from {URL} and {TOKEN}, or from --url and --token-file.", Ends.WRONG_USE)

    @cached_property
    def queue(self) -> QueueName:
        return chosen(self.client, self.whom.repo, self.whom.branch)

    @property
    def new_queue(self) -> QueueName:
        """One that is not there yet must be named."""
        if self.whom.repo is None or self.whom.branch is None:
            stop_with("Say which branch gets a queue: --repo host/owner/name --branch main.", Ends.WRONG_USE)
        return QueueName(named_repo(self.whom.repo), self.whom.branch)

    def be_patient(self) -> None:
        """Whoever waits for hours does not mind a server that starts again meanwhile."""
        self.client.patience = PATIENT

    def show(self, answer: Any, draw: Callable[[], None]) -> None:
        """For programs as it was answered, else as it is drawn for people."""
        if self.whom.as_json:
            typer.echo(in_json(answer))
        else:
            draw()

    def close(self) -> None:
        if "client" in self.__dict__:
            self.client.close()

    def _token(self) -> str:
        token = os.environ.get(TOKEN, "") if self.whom.token_file is None else _read(self.whom.token_file)
        if not token.strip():
            stop_with(f"Set {TOKEN} to a token, or name a file that holds it with --token-file.", Ends.WRONG_USE)
        return token.strip()


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options that say whom to ask, and the session that they lead to."""
    shared = msgspec.structs.fields(Whom)

    @wraps(command)
    def run(**given: Any) -> None:
        session = Session(Whom(**{field.name: given.pop(field.name) for field in shared}))
        with troubles_told(session.whom):
            try:
                command(session, **given)
            finally:
                session.close()

    own = list(signature(command).parameters.values())[1:]
    hints = get_type_hints(Whom, include_extras=True)
    options = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
        for field in shared
    ]
    return with_parameters(run, [*own, *options])


def with_parameters(run: Callable[..., None], parameters: Iterable[Parameter]) -> Callable[..., None]:
    """Typer makes arguments and options out of what a function says of itself."""
    vars(run)["__signature__"] = Signature(list(parameters))
    return run


HINTS = {
    "sha_required": "Review that head, then submit it with --sha HEAD.",
    "sha_mismatch": "Review that head, then submit it with --sha HEAD.",
}
"""What the option is called here that the API names in its refusal."""


@contextmanager
def troubles_told(whom: Whom) -> Generator[None]:
    try:
        yield
    except MergeyardError as refusal:
        flaws = [f"  {flaw.pointer}: {flaw.message}" for flaw in refusal.errors]
        hints = [HINTS[refusal.code]] if refusal.code in HINTS else []
        last = f"({refusal.code}, request {refusal.request_id})"
        stop_with("\n".join(map(clean, [refusal.detail, *flaws, *hints, last])), Ends.REFUSED)
    except Unreachable as trouble:
        stop_with(f"{clean(whom.url or '')}: {clean(str(trouble))}", Ends.UNREACHABLE)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as trouble:
        stop_with(f"The token cannot be read from {file} ({trouble}): name another with --token-file.", Ends.WRONG_USE)
