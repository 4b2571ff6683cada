"""Writes what happens, for people on a terminal and as JSON lines elsewhere, and never a secret."""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Literal, TextIO, cast

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import EventDict, Processor, WrappedLogger

Format = Literal["auto", "human", "json"]
Level = Literal["debug", "info", "warning", "error"]

HIDDEN = "***"
SECRET_WORDS = {"token", "secret", "password", "authorization"}
TOKEN = re.compile(r"my_[0-9A-Za-z]{16,}")
"""Shorter than a whole token, so that one cut short is hidden too; longer than a name in our code."""
CREDENTIALS = re.compile(r"://[^\s/@]+@")
CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""Also those that turn the direction of writing around, or are not seen at all."""
WITH_LINES = {"exception", "stack"}
TALKATIVE_LOGGERS = ("httpx", "httpcore")
"""They tell of every request that we send."""
SERVER_LOGGERS = ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio")

ENRICHING: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configure(format: Format, level: Level, stream: TextIO) -> None:  # noqa: A002 - named like the setting
    """Send everything to this stream, also what libraries log in the way of the standard library."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter(format, stream))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in SERVER_LOGGERS:
        route_to_root(logging.getLogger(name))
    for name in TALKATIVE_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *ENRICHING, ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def route_to_root(logger: logging.Logger) -> None:
    logger.handlers = []
    logger.propagate = True
    logger.setLevel(logging.NOTSET)


def formatter(format: Format, stream: TextIO) -> ProcessorFormatter:  # noqa: A002
    for_people = format == "human" or (format == "auto" and stream.isatty())
    return ProcessorFormatter(
        foreign_pre_chain=ENRICHING,
        processors=[
            ProcessorFormatter.remove_processors_meta,
            # Before the console's renderer can: its own tracebacks show the values of local variables.
            structlog.processors.format_exc_info,
            hide_named_secrets,
            *(for_a_console(stream) if for_people else [hiding_tokens(structlog.processors.JSONRenderer())]),
        ],
    )


def for_a_console(stream: TextIO) -> list[Processor]:
    plain = structlog.dev.plain_traceback
    console = structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=plain, sort_keys=False)
    return [escape_controls, hiding_tokens(console)]


# Secrets


def hiding_tokens(render: Processor) -> Processor:
    """Looks at the finished line, so that no value, message or traceback goes around it."""

    def render_and_hide(logger: WrappedLogger, method: str, event: EventDict) -> str:
        return hide_tokens(str(render(logger, method, event)))

    return render_and_hide


def hide_tokens(text: str) -> str:
    return CREDENTIALS.sub(f"://{HIDDEN}@", TOKEN.sub(f"my_{HIDDEN}", text))


def hide_named_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return cast(EventDict, hide_below(event))


def hide_below(value: object) -> object:
    """The same value without what stands under a name that promises a secret, however deep."""
    match value:
        case Mapping():
            members = cast(Mapping[object, object], value)
            return {name: HIDDEN if promises_secret(name) else hide_below(below) for name, below in members.items()}
        case list() | tuple():
            members = tuple(cast(Sequence[object], value))
            if len(members) == 2 and promises_secret(members[0]):  # a header, as servers hold it
                return (members[0], HIDDEN)
            return tuple(map(hide_below, members))
        case _:
            return value


def promises_secret(name: object) -> bool:
    """Whether its last word does: `x-api-token` and `webhook_secret`, but not `token_id`."""
    text = name.decode("latin-1") if isinstance(name, bytes) else str(name)
    return text.lower().replace("_", "-").rpartition("-")[2] in SECRET_WORDS


# Terminals


def escape_controls(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """A title that somebody wrote can neither colour a terminal nor pretend to be a line of the log."""
    return {name: indented(value) if name in WITH_LINES else escaped(value) for name, value in event.items()}


def indented(lines: object) -> object:
    """What was raised has lines, and may quote what somebody wrote: none of them begins like a line of the log."""
    return "\n".join(f"    {escaped(line)}" for line in lines.split("\n")) if isinstance(lines, str) else lines


def escaped(value: object) -> object:
    if not isinstance(value, str):
        return value
    return CONTROL_CHARACTERS.sub(lambda found: ascii(found[0])[1:-1], value)
