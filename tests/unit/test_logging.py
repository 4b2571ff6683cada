"""What the log looks like, to people and to machines, and what never stands in it."""

import io
import json
import logging
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
import structlog

from mergeyard.logging import Format, configure_logging
from mergeyard.service.tokens import generate_secret

SECRET = generate_secret()

both_formats = pytest.mark.parametrize("format", ["human", "json"])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


pytestmark = pytest.mark.usefixtures("logging_as_before")


def logger(name: str = "mergeyard.tests") -> Any:
    return structlog.get_logger(name)


def stream_in(format: Format) -> io.StringIO:  # noqa: A002
    stream = io.StringIO()
    configure_logging(format, "info", stream)
    return stream


def only_line(stream: io.StringIO) -> dict[str, Any]:
    (line,) = stream.getvalue().splitlines()
    return json.loads(line)


# Its looks


def test_a_line_for_machines_says_when_how_grave_what_and_from_where():
    stream = stream_in("json")
    logger("mergeyard.worker").warning("run started", run="r1", prs=[1, 2])
    line = only_line(stream)
    at = datetime.fromisoformat(line.pop("timestamp"))
    assert at.tzinfo == UTC
    assert line == {
        "level": "warning",
        "event": "run started",
        "logger": "mergeyard.worker",
        "run": "r1",
        "prs": [1, 2],
    }


@pytest.mark.parametrize("name", ["uvicorn.error", "uvicorn.access", "asyncio", "some.library"])
def test_libraries_are_routed_the_same_way(name: str):
    stream = stream_in("json")
    logging.getLogger(name).info("started %s", "well")
    line = only_line(stream)
    assert (line["event"], line["level"], line["logger"]) == ("started well", "info", name)


def test_requests_that_we_send_are_not_logged():
    stream = stream_in("json")
    with httpx2.Client(transport=httpx2.MockTransport(lambda _: httpx2.Response(200))) as client:
        client.get("https://git.example.com/api?token=secret")
    logging.getLogger("httpcore2.http11").info("receive_response_headers.complete")
    assert stream.getvalue() == ""


def test_a_server_that_set_up_its_own_loggers_is_taken_over():
    own = io.StringIO()
    server = logging.getLogger("uvicorn.access")
    server.handlers, server.propagate = [logging.StreamHandler(own)], False
    stream = stream_in("json")
    server.info("GET /")
    assert own.getvalue() == ""
    assert only_line(stream)["event"] == "GET /"


def test_people_at_a_terminal_get_colours():
    terminal = Terminal()
    configure_logging("auto", "info", terminal)
    logger().info("hello", pr=7)
    assert "\x1b[" in terminal.getvalue()
    assert "hello" in terminal.getvalue()


def test_everything_else_gets_json():
    stream = stream_in("auto")
    logger().info("hello")
    assert only_line(stream)["event"] == "hello"


def test_a_format_that_is_asked_for_is_given_anywhere():
    terminal = Terminal()
    configure_logging("json", "info", terminal)
    logger().info("hello")
    assert only_line(terminal)["event"] == "hello"
    stream = stream_in("human")
    logger().info("hello", pr=7)
    assert "\x1b" not in stream.getvalue()
    assert "pr=7" in stream.getvalue()


def test_what_is_below_the_level_is_not_written():
    stream = io.StringIO()
    configure_logging("json", "warning", stream)
    logger().info("quiet")
    logging.getLogger("uvicorn.error").info("quiet")
    assert stream.getvalue() == ""
    logger().error("loud")
    assert only_line(stream)["event"] == "loud"


def test_configuring_again_takes_effect_for_loggers_in_use():
    log = logger()
    first = stream_in("json")
    log.info("one")
    second = stream_in("json")
    log.info("two")
    assert only_line(first)["event"] == "one"
    assert only_line(second)["event"] == "two"


def test_what_is_bound_to_the_request_is_in_its_lines():
    stream = stream_in("json")
    with structlog.contextvars.bound_contextvars(request_id="r-1"):
        logger().info("hello")
        logging.getLogger("asyncio").info("hello")
    assert all(json.loads(line)["request_id"] == "r-1" for line in stream.getvalue().splitlines())


def test_a_request_in_the_access_log_has_fields_and_no_query():
    stream = stream_in("json")
    configure_logging("json", "info", stream)
    arguments = ("192.0.2.7:4711", "GET", "/sign-in/back?code=hunter2&state=x", "1.1", 303)
    logging.getLogger("uvicorn.access").info('%s - "%s %s HTTP/%s" %d', *arguments)
    line = only_line(stream)
    assert {name: line[name] for name in ("event", "client", "method", "path", "status")} == {
        "event": "request",
        "client": "192.0.2.7:4711",
        "method": "GET",
        "path": "/sign-in/back",
        "status": 303,
    }
    assert "hunter2" not in stream.getvalue()


# What never stands in it


@both_formats
def test_a_token_is_hidden_wherever_it_stands(format: Format):  # noqa: A002
    stream = stream_in(format)
    logger().info(f"got {SECRET}", value=SECRET, raw=SECRET.encode(), deep=[{"x": (SECRET,)}], cut=SECRET[:-8])
    logging.getLogger("uvicorn.access").info("GET /?t=%s", SECRET)
    assert SECRET[:20] not in stream.getvalue()
    assert stream.getvalue().count("my_***") == 6


@both_formats
def test_a_token_in_a_traceback_is_hidden_and_so_are_local_variables(format: Format):  # noqa: A002
    stream = stream_in(format)
    hunter = "hunter" + str(len(SECRET))
    try:
        raise ValueError(SECRET)
    except ValueError:
        logger().exception("failed")
        logging.getLogger("asyncio").exception("failed")
    assert stream.getvalue().count("ValueError: my_***") == 2
    assert SECRET not in stream.getvalue()
    assert hunter not in stream.getvalue()


@both_formats
@pytest.mark.parametrize(
    "name", ["token", "secret", "password", "authorization", "x-api-token", "X-Api-Token", "webhook_secret"]
)
def test_what_is_named_as_a_secret_is_hidden(format: Format, name: str):  # noqa: A002
    stream = stream_in(format)
    logger().info(
        "asked",
        **{name: "hunter2"},
        headers=[(name.encode(), b"hunter2")],
        inside={"lists": [{name: ["hunter2"]}]},
    )
    assert "hunter2" not in stream.getvalue()
    assert stream.getvalue().count("***") == 3


@both_formats
def test_a_password_in_an_address_is_hidden(format: Format):  # noqa: A002
    stream = stream_in(format)
    logger().info("connecting to postgresql://queue:hunter2@db/queue", url="https://hunter2@git.local/a")
    assert "hunter2" not in stream.getvalue()
    assert "git.local/a" in stream.getvalue()


def test_what_only_sounds_like_a_secret_is_shown():
    stream = stream_in("json")
    logger().info("my_function was here", token_id="t1", secrets_checked=3)
    line = only_line(stream)
    assert (line["event"], line["token_id"], line["secrets_checked"]) == ("my_function was here", "t1", 3)


@both_formats
def test_a_title_can_neither_colour_the_terminal_nor_forge_a_line(format: Format):  # noqa: A002
    stream = stream_in(format)
    logger().info("submitted\nforged", title="\x1b[31mred\r\nforged")
    assert len(stream.getvalue().splitlines()) == 1
    assert "\x1b" not in stream.getvalue()
