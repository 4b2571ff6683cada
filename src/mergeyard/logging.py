"""Configures logging: readable lines on a terminal, JSON lines elsewhere, without secrets."""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Literal, TextIO, cast

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import EventDict, Processor, WrappedLogger

Format = Literal["auto", "human", "json"]
Level = Literal["debug", "info", "warning", "error"]

REDACTED = "***"
SECRET_NAMES = {"token", "secret", "password", "authorization"}
TOKEN_PATTERN = re.compile(r"my_[0-9A-Za-z]{16,}")
"""Shorter than a complete token, so that a truncated one is redacted too; longer than any name in our code."""
CREDENTIALS_PATTERN = re.compile(r"://[^\s/@]+@")
CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""Also invisible characters and those that change the writing direction."""
MULTILINE_KEYS = {"exception", "stack"}
ACCESS_LOGGER = "uvicorn.access"
ACCESS_FIELDS = ("client", "method", "path", "status")
VERBOSE_LOGGERS = ("httpx2", "httpcore2")
"""They log every request that we send."""
SERVER_LOGGERS = ("uvicorn", "uvicorn.error", ACCESS_LOGGER, "asyncio")

SHARED_PROCESSORS: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configure_logging(format: Format, level: Level, stream: TextIO) -> None:  # noqa: A002 - named like the setting
    """Sends all log records to this stream, including those of libraries that use the standard library."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_build_formatter(format, stream))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in SERVER_LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
        logger.setLevel(logging.NOTSET)
    logging.getLogger(ACCESS_LOGGER).addFilter(_structure_request)
    for name in VERBOSE_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *SHARED_PROCESSORS, ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _structure_request(record: logging.LogRecord) -> bool:
    """Gives a line of the access log the form of our own lines. Without the query, which can contain the code of an
    identity provider. The standard library calls this filter once per logger, however often it is added."""
    match record.args:
        case (str() as client, str() as method, str() as path, _, int() as status):
            record.msg, record.args = "request", ()
            record.__dict__.update(zip(ACCESS_FIELDS, (client, method, path.partition("?")[0], status), strict=True))
        case _:
            pass
    return True


def _build_formatter(format: Format, stream: TextIO) -> ProcessorFormatter:  # noqa: A002
    is_human = format == "human" or (format == "auto" and stream.isatty())
    return ProcessorFormatter(
        foreign_pre_chain=[*SHARED_PROCESSORS, structlog.stdlib.ExtraAdder(ACCESS_FIELDS)],
        processors=[
            ProcessorFormatter.remove_processors_meta,
            # Must run before the console renderer, whose own tracebacks show the values of local variables.
            structlog.processors.format_exc_info,
            _redact_named_secrets,
            *(_build_console_processors(stream) if is_human else [_redact_output(structlog.processors.JSONRenderer())]),
        ],
    )


def _build_console_processors(stream: TextIO) -> list[Processor]:
    plain_traceback = structlog.dev.plain_traceback
    console = structlog.dev.ConsoleRenderer(
        colors=stream.isatty(), exception_formatter=plain_traceback, sort_keys=False
    )
    return [_escape_controls, _redact_output(console)]


# Secrets


def _redact_output(render: Processor) -> Processor:
    """Redacts the rendered line, so that no value, message or traceback is missed."""

    def render_and_redact(logger: WrappedLogger, method: str, event: EventDict) -> str:
        text = TOKEN_PATTERN.sub(f"my_{REDACTED}", str(render(logger, method, event)))
        return CREDENTIALS_PATTERN.sub(f"://{REDACTED}@", text)

    return render_and_redact


def _redact_named_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return cast(EventDict, _redact_value(event))


def _redact_value(value: object) -> object:
    """The same value with all nested values redacted whose name is that of a secret."""
    match value:
        case Mapping():
            members = cast(Mapping[object, object], value)
            return {
                name: REDACTED if _is_secret_name(name) else _redact_value(nested) for name, nested in members.items()
            }
        case list() | tuple():
            members = tuple(cast(Sequence[object], value))
            if len(members) == 2 and _is_secret_name(members[0]):  # a (name, value) pair of headers
                return (members[0], REDACTED)
            return tuple(map(_redact_value, members))
        case _:
            return value


def _is_secret_name(name: object) -> bool:
    """Whether its last part names a secret: `x-api-token` and `webhook_secret`, but not `token_id`."""
    text = name.decode("latin-1") if isinstance(name, bytes) else str(name)
    return text.lower().replace("_", "-").rpartition("-")[2] in SECRET_NAMES


# Terminals


def _escape_controls(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Escapes control characters, so that user input can neither color a terminal nor look like another log line."""
    return {name: _indent_lines(value) if name in MULTILINE_KEYS else _escape(value) for name, value in event.items()}


def _indent_lines(lines: object) -> object:
    """Indents a traceback, which may contain user input, so that none of its lines looks like a log line."""
    return "\n".join(f"    {_escape(line)}" for line in lines.split("\n")) if isinstance(lines, str) else lines


def _escape(value: object) -> object:
    if not isinstance(value, str):
        return value
    return CONTROL_CHARACTERS.sub(lambda found: ascii(found[0])[1:-1], value)
