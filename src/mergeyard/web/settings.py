"""The pages that create a queue and change its settings. Settings are validated one by one, and saved only if all are
valid."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, cast

from msgspec import NODEFAULT, Struct, inspect
from msgspec.structs import replace
from starlette.responses import RedirectResponse, Response

from mergeyard.domain.access import Token
from mergeyard.domain.config import MAX_LABEL_LENGTH, SETTING_DESCRIPTIONS, SETTINGS_WITHOUT_EFFECT, Config
from mergeyard.domain.ids import TEST_BRANCH_PREFIX, QueueKey, Repo
from mergeyard.domain.queue import Queue
from mergeyard.service import git_names
from mergeyard.service.audit_log import encode_actor
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.web.formats import parse_integer, queue_url
from mergeyard.web.rendering import PageRequest
from mergeyard.web.user_sessions import Form

GROUPS = {
    "Queue": ("mode", "concurrency", "bisection_concurrency"),
    "Batches": ("batch", "batching_min_size", "batching_max_wait_time_minutes"),
    "Tests": (
        "required_statuses",
        "testing_timeout_minutes",
        "test_retries",
        "can_optimistically_merge",
        "pending_failure_depth",
        "optimization_mode",
        "speculation",
    ),
    "Merging": ("merge_method", "landing", "direct_merge_mode", "not_ready_timeout_hours"),
    "Git host": (
        "comments_enabled",
        "commands_enabled",
        "label_commands_enabled",
        "enqueueing_label",
        "status_check_enabled",
        "create_prs_for_testing_branches",
    ),
}
LABELS = {
    "concurrency": "Concurrent runs",
    "bisection_concurrency": "Concurrent bisection runs",
    "batch": "Batching",
    "batching_min_size": "Batch size",
    "batching_max_wait_time_minutes": "Maximum wait for a batch, in minutes",
    "can_optimistically_merge": "Optimistic merging",
    "optimization_mode": "Skip the suspect's final test",
    "speculation": "Speculation",
    "testing_timeout_minutes": "Run timeout, in minutes",
    "test_retries": "Retries",
    "landing": "Landing",
    "direct_merge_mode": "Direct merge",
    "create_prs_for_testing_branches": "Draft pull requests for test branches",
    "comments_enabled": "Comments",
    "commands_enabled": "Commands in comments",
    "status_check_enabled": "Status check on the Git host",
    "not_ready_timeout_hours": "Not ready timeout, in hours",
    "label_commands_enabled": "Submit by label",
    "enqueueing_label": "Name of the label",
}
"""Labels that differ from the setting's name."""
HELP_TEXTS = {
    **SETTING_DESCRIPTIONS,
    "bisection_concurrency": "How many runs can bisect failed batches, in addition to the runs of active batches.",
    "required_statuses": "The checks that must pass, one per line. Leave it empty to use the repository's own choice.",
}
"""The meanings, with other texts where the general one does not fit a form."""
CHOICE_LABELS = {
    "single": "one queue",
    "parallel": "lanes by impacted targets",
    "merge_commit": "merge commit",
    "bisection_skip_redundant_tests": "skip it",
    "tested_commit": "push the tested commit",
    "provider_merge": "let the Git host merge",
    "off": "no",
    "always": "whenever possible",
}
ON = "on"
"""The value that a browser sends for a ticked checkbox."""


class FieldKind(StrEnum):
    SWITCH = "switch"
    NUMBER = "number"
    CHOICE = "choice"
    TEXT = "text"
    LINES = "lines"


class InvalidSettingError(Exception):
    """The message tells the user which values are valid."""


class Setting(Struct, frozen=True, kw_only=True):
    name: str
    label: str
    meaning: str
    kind: FieldKind
    default: str
    choices: Mapping[str, str]
    minimum: int | None
    maximum: int | None

    def parse(self, text: str) -> Any:
        match self.kind:
            case FieldKind.SWITCH:
                return text == ON
            case FieldKind.NUMBER:
                number = parse_integer(text, self.minimum or 0, self.maximum or 0)
                if number is None:
                    raise InvalidSettingError(f"Give a whole number from {self.minimum} to {self.maximum:,}.")
                return number
            case FieldKind.LINES:
                return tuple(dict.fromkeys(_split_lines(text))) or None
            case FieldKind.CHOICE:
                if text not in self.choices:
                    raise InvalidSettingError(f"Choose one of: {', '.join(self.choices.values())}.")
                return text
            case FieldKind.TEXT:
                if not 1 <= len(text) <= MAX_LABEL_LENGTH:
                    raise InvalidSettingError(f"Give it a name of 1 to {MAX_LABEL_LENGTH} characters.")
                return text


class SettingField(Struct, frozen=True, kw_only=True):
    """A setting with its current text, its text when the form was rendered, and its error."""

    setting: Setting
    value: str
    previous: str
    error: str = ""

    @property
    def is_changed(self) -> bool:
        return self.value != self.previous


def fields_from_config(config: Config) -> list[SettingField]:
    values = [(setting, encode_value(getattr(config, setting.name))) for setting in SETTINGS.values()]
    return [SettingField(setting=setting, value=value, previous=value) for setting, value in values]


def fields_from_form(form: Form) -> list[SettingField]:
    return [
        _validate(each, _normalize(form.get(each.name)), _normalize(form.get(f"was_{each.name}")))
        for each in SETTINGS.values()
    ]


def collect_changes(fields: list[SettingField]) -> dict[str, Any]:
    """Only the settings that this user changed, so that a concurrent change of another setting is not reverted."""
    return {field.setting.name: _parse_field(field) for field in fields if field.is_changed}


def encode_value(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return ON if value else ""
        case tuple():
            return "\n".join(cast(tuple[str, ...], value))
        case _:
            return str(value)


def _validate(setting: Setting, value: str, was: str) -> SettingField:
    """An unchanged value is not validated: it is not saved, and a stored value may be older than the current limits."""
    field = SettingField(setting=setting, value=value, previous=was)
    try:
        if field.is_changed:
            setting.parse(value)
    except InvalidSettingError as error:
        return replace(field, error=str(error))
    return field


def _parse_field(field: SettingField) -> Any:
    value, value_type = field.setting.parse(field.value), TYPES[field.setting.name]
    return value_type.cls(value) if isinstance(value_type, inspect.EnumType) else value


def _normalize(text: str) -> str:
    return "\n".join(_split_lines(text))


def _split_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _build_setting(field: inspect.Field) -> Setting:
    value_type = field.type
    integer = value_type if isinstance(value_type, inspect.IntType) else None
    values = [str(each.value) for each in value_type.cls] if isinstance(value_type, inspect.EnumType) else []
    assert field.default is not NODEFAULT
    return Setting(
        name=field.name,
        label=LABELS.get(field.name) or field.name.replace("_", " ").capitalize(),
        meaning=HELP_TEXTS[field.name],
        kind=_choose_kind(value_type),
        default=encode_value(field.default),
        choices={value: CHOICE_LABELS.get(value, value) for value in values},
        minimum=None if integer is None else integer.ge,
        maximum=None if integer is None else integer.le,
    )


def _choose_kind(value_type: inspect.Type) -> FieldKind:
    match value_type:
        case inspect.BoolType():
            return FieldKind.SWITCH
        case inspect.IntType():
            return FieldKind.NUMBER
        case inspect.EnumType():
            return FieldKind.CHOICE
        case inspect.StrType():
            return FieldKind.TEXT
        case _:
            return FieldKind.LINES


def _inspect_config() -> tuple[inspect.Field, ...]:
    info = inspect.type_info(Config)
    assert isinstance(info, inspect.StructType)
    return tuple(field for field in info.fields if field.name not in SETTINGS_WITHOUT_EFFECT)


SETTINGS = {field.name: _build_setting(field) for field in _inspect_config()}
TYPES = {field.name: field.type for field in _inspect_config()}


SETTING_BY_ERROR = {Code.INVALID_REQUEST: "landing", Code.MODE_SWITCH_IN_PROGRESS: "mode"}
"""The setting that shows the service's error."""


async def show_settings(page: PageRequest) -> Response:
    key = page.resolve_queue()
    queue = (await page.service.registry.get(key)).queue
    return _render_settings(page, key, queue, fields_from_config(queue.config))


async def save_settings(page: PageRequest) -> Response:
    key, fields = page.resolve_queue(), fields_from_form(page.form)
    queue = (await page.service.registry.get(key)).queue
    if not any(field.error for field in fields):
        fields = await _save_fields(page, key, fields)
    if any(field.error for field in fields):
        return _render_settings(page, key, queue, fields)
    count = sum(field.is_changed for field in fields)
    return RedirectResponse(f"{queue_url(key, 'settings')}?saved={count}", 303)


async def _save_fields(page: PageRequest, key: QueueKey, fields: list[SettingField]) -> list[SettingField]:
    """Returns the fields, with the service's error at the setting that it concerns."""
    changes, actor = collect_changes(fields), encode_actor(page.user.token)
    try:
        await page.service.queues.update(key, changes, None, actor, lambda _: b"", None)
    except RequestRefused as refused:
        if refused.code not in SETTING_BY_ERROR:
            raise
        name = SETTING_BY_ERROR[refused.code]
        return [replace(each, error=refused.detail) if each.setting.name == name else each for each in fields]
    return fields


def _render_settings(page: PageRequest, key: QueueKey, queue: Queue, fields: list[SettingField]) -> Response:
    by_name = {field.setting.name: field for field in fields}
    invalid_fields = [field for field in fields if field.error]
    return page.render_form(
        "settings.html",
        invalid_fields,
        key=key,
        queue=queue,
        groups={title: [by_name[name] for name in names] for title, names in GROUPS.items()},
        invalid_fields=invalid_fields,
        saved=page.query.get("saved", "")[:4] if page.request.method == "GET" else "",
    )


FIELD_BY_ERROR = {
    Code.HOST_NOT_ALLOWED: "host",
    Code.INVALID_REPO: "repo",
    Code.REPOSITORY_NOT_FOUND: "repo",
    Code.QUEUE_ALREADY_EXISTS: "branch",
    Code.BRANCH_NOT_FOUND: "branch",
    Code.INVALID_BRANCH: "branch",
}
"""The form field that shows the error."""


async def show_create_queue(page: PageRequest) -> Response:
    return _render_create_queue(page, {})


async def create_queue(page: PageRequest) -> Response:
    try:
        key = _parse_key(page)
        await page.service.queues.create(key, Config(), encode_actor(page.user.token), lambda _: b"", None)
    except RequestRefused as refused:
        if refused.code not in FIELD_BY_ERROR:
            raise
        return _render_create_queue(page, {FIELD_BY_ERROR[refused.code]: refused.detail})
    return RedirectResponse(queue_url(key, "settings"), 303)


def _parse_key(page: PageRequest) -> QueueKey:
    owner, _, name = page.form.get("repo").rpartition("/")
    if not (git_names.is_owner(owner) and git_names.is_repository_name(name)):
        raise RequestRefused(Code.INVALID_REPO, "Give the owner and the name of the repository, such as acme/app.")
    branch = page.form.get("branch")
    if not git_names.is_target_branch(branch):
        raise RequestRefused(
            Code.INVALID_BRANCH, f"Give a valid branch name, not below {TEST_BRANCH_PREFIX}, such as main."
        )
    repo = page.service.repositories.canonical_repo(Repo(page.form.get("host"), owner, name), page.user.token)
    if not page.user.token.can_access(repo):
        raise RequestRefused(Code.REPOSITORY_NOT_FOUND, f"{repo} does not exist: check its owner and name.")
    return QueueKey(repo, branch)


def _render_create_queue(page: PageRequest, errors: Mapping[str, str]) -> Response:
    hosts = _list_visible_hosts(page.user.token, page.service.repositories.hosts)
    return page.render_form("create_queue.html", errors, hosts=hosts, values=page.form.to_dict(), errors=errors)


def _list_visible_hosts(token: Token, hosts: Iterable[str]) -> list[str]:
    """A token that is limited to repositories sees only the hosts of these repositories."""
    visible = {repo.host for repo in token.repos}
    return sorted(host for host in hosts if not visible or host in visible)
