"""The pages that create a queue and change its settings. Settings are validated one by one, and saved only if all are
valid."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, cast

from msgspec import NODEFAULT, Struct, inspect
from msgspec.structs import replace
from starlette.responses import RedirectResponse, Response

from mergeyard.domain.access import Scope, Token
from mergeyard.domain.config import (
    MAX_LABEL_LENGTH,
    MAX_TEMPLATE_LENGTH,
    SETTING_DESCRIPTIONS,
    SETTINGS_WITHOUT_EFFECT,
    Config,
)
from mergeyard.domain.ids import TEST_BRANCH_PREFIX, QueueKey, Repo
from mergeyard.domain.pull_requests import RequiredSource
from mergeyard.domain.queue import Queue
from mergeyard.engine import run_validity
from mergeyard.service import git_names
from mergeyard.service.audit_log import encode_actor
from mergeyard.service.commit_messages import find_template_problem
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.web.formats import parse_integer, queue_url
from mergeyard.web.rendering import PageRequest
from mergeyard.web.user_sessions import Form

GROUPS = {
    "Required checks": ("required_statuses",),
    "General": ("mode", "concurrency", "bisection_concurrency"),
    "Batching": ("batch", "batching_min_size", "batching_max_wait_time_minutes"),
    "Testing": (
        "testing_timeout_minutes",
        "test_retries",
        "can_optimistically_merge",
        "pending_failure_depth",
        "optimization_mode",
        "speculation",
    ),
    "Merging": (
        "merge_method",
        "landing",
        "move_head_branches",
        "head_branch_fallback",
        "delete_head_branches",
        "squash_template",
        "direct_merge_mode",
        "not_ready_timeout_hours",
    ),
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
    "required_statuses": "Required checks",
    "batch": "Batching",
    "batching_min_size": "Batch size",
    "batching_max_wait_time_minutes": "Maximum batch wait (minutes)",
    "can_optimistically_merge": "Optimistic merging",
    "optimization_mode": "Final bisection test",
    "testing_timeout_minutes": "Test timeout (minutes)",
    "test_retries": "Retries",
    "landing": "Merge by",
    "head_branch_fallback": "If it cannot be moved",
    "squash_template": "Squash message",
    "direct_merge_mode": "Direct merge",
    "create_prs_for_testing_branches": "Draft pull requests for test branches",
    "comments_enabled": "Status comment",
    "commands_enabled": "Commands in comments",
    "status_check_enabled": "Commit status",
    "not_ready_timeout_hours": "Not ready timeout (hours)",
    "label_commands_enabled": "Queue by label",
    "enqueueing_label": "Label name",
}
"""Labels that differ from the setting's name."""
HELP_TEXTS = {
    **SETTING_DESCRIPTIONS,
    "bisection_concurrency": "How many test runs of bisections can be in progress, in addition to those above.",
    "required_statuses": (
        "The checks that must pass, one per line. Leave it empty to use .mergeyard.toml or branch protection."
    ),
}
"""The meanings, with other texts where the general one does not fit a form."""
CHOICE_LABELS = {
    "single": "One sequence",
    "parallel": "Lanes by impacted targets",
    "chain": "Assume that all ahead pass",
    "best_first": "Likeliest outcomes first",
    "merge_commit": "Merge commit",
    "squash": "Squash",
    "rebase": "Rebase",
    "bisection_skip_redundant_tests": "Skip it",
    "tested_commit": "Push the tested commit",
    "provider_merge": "Merge at the Git host",
    "off": "Never",
    "always": "Whenever possible",
    "close": "Merge, then close the pull request with a link",
}
OTHER_CHOICE_LABELS = {("optimization_mode", "off"): "Run it"}
"""Labels of values that mean something else for this setting."""
SWITCHES = {
    "batching_min_size": "batch",
    "batching_max_wait_time_minutes": "batch",
    "bisection_concurrency": "batch",
    "optimization_mode": "batch",
    "pending_failure_depth": "can_optimistically_merge",
    "enqueueing_label": "label_commands_enabled",
}
"""A setting that has no effect while another one is off, and that other one."""
REQUIRED_SOURCES = {
    RequiredSource.MERGE_INSTANCE: "this queue's settings",
    RequiredSource.SERVICE_CONFIG: ".mergeyard.toml",
    RequiredSource.BRANCH_PROTECTION: "branch protection at the Git host",
}
RECENT_CHECK = "recent_check"
"""The boxes that add a check seen lately to the required ones."""
ON, OFF = "on", "off"
"""The value that a browser sends for a ticked checkbox, and the one that turns it off in the address of a page."""


class FieldKind(StrEnum):
    SWITCH = "switch"
    NUMBER = "number"
    CHOICE = "choice"
    TEXT = "text"
    TEMPLATE = "template"
    LINES = "lines"


class InvalidSettingError(Exception):
    """The message tells the user which values are valid."""


class Setting(Struct, frozen=True, kw_only=True):
    name: str
    api_name: str
    label: str
    meaning: str
    kind: FieldKind
    default: str
    choices: Mapping[str, str]
    minimum: int | None
    maximum: int | None

    def normalize(self, text: str) -> str:
        """Browsers send other line ends than they were given."""
        if self.kind is FieldKind.TEMPLATE:
            return "\n".join(text.splitlines()).rstrip()
        return "\n".join(_split_lines(text))

    def parse(self, text: str) -> Any:
        match self.kind:
            case FieldKind.SWITCH:
                return text == ON
            case FieldKind.NUMBER:
                number = parse_integer(text, self.minimum or 0, self.maximum or 0)
                if number is None:
                    raise InvalidSettingError(f"Enter a number from {self.minimum} to {self.maximum}.")
                return number
            case FieldKind.LINES:
                return tuple(dict.fromkeys(_split_lines(text))) or None
            case FieldKind.CHOICE:
                if text not in self.choices:
                    raise InvalidSettingError(f"Choose one of: {', '.join(self.choices.values())}.")
                return text
            case FieldKind.TEXT:
                if not 1 <= len(text) <= MAX_LABEL_LENGTH:
                    raise InvalidSettingError(f"Enter a name of 1 to {MAX_LABEL_LENGTH} characters.")
                return text
            case FieldKind.TEMPLATE:
                if problem := find_template_problem(text):
                    raise InvalidSettingError(f"Correct the template: {problem}.")
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
    values = [
        (setting, setting.normalize(encode_value(getattr(config, setting.name)))) for setting in SETTINGS.values()
    ]
    return [SettingField(setting=setting, value=value, previous=value) for setting, value in values]


def fields_from_form(form: Form) -> list[SettingField]:
    """The ticked checks follow those that the user typed."""
    ticked = {"required_statuses": form.get_all(RECENT_CHECK)}
    return [
        _validate(
            each,
            each.normalize("\n".join((form.get(each.name), *ticked.get(each.name, ())))),
            each.normalize(form.get(f"was_{each.name}")),
        )
        for each in SETTINGS.values()
    ]


def fields_from_query(query: Mapping[str, str], config: Config) -> list[SettingField]:
    """The named settings as in the address of the page, all others as they are now."""
    return [
        _validate(
            each.setting,
            each.setting.normalize("" if value == OFF and each.setting.kind is FieldKind.SWITCH else value),
            each.previous,
        )
        for each in fields_from_config(config)
        for value in (query.get(each.setting.name, each.previous),)
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


def _split_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _build_setting(field: inspect.Field) -> Setting:
    value_type = field.type
    integer = value_type if isinstance(value_type, inspect.IntType) else None
    values = [str(each.value) for each in value_type.cls] if isinstance(value_type, inspect.EnumType) else []
    assert field.default is not NODEFAULT
    return Setting(
        name=field.name,
        api_name=_to_camel_case(field.name),
        label=LABELS.get(field.name) or field.name.replace("_", " ").capitalize(),
        meaning=HELP_TEXTS[field.name],
        kind=_choose_kind(value_type),
        default=encode_value(field.default),
        choices={value: OTHER_CHOICE_LABELS.get((field.name, value)) or CHOICE_LABELS[value] for value in values},
        minimum=None if integer is None else integer.ge,
        maximum=None if integer is None else integer.le,
    )


def _to_camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _choose_kind(value_type: inspect.Type) -> FieldKind:
    match value_type:
        case inspect.BoolType():
            return FieldKind.SWITCH
        case inspect.IntType():
            return FieldKind.NUMBER
        case inspect.EnumType():
            return FieldKind.CHOICE
        case inspect.StrType():
            return FieldKind.TEMPLATE if value_type.max_length == MAX_TEMPLATE_LENGTH else FieldKind.TEXT
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
    """An administrator can follow a link with other values in its address, for example from the what-if page. They are
    filled in, and saved only when the administrator saves the form."""
    key = page.resolve_queue()
    queue = (await page.service.registry.get(key)).queue
    query: Mapping[str, str] = page.query if page.user.has_scope(Scope.ADMIN) else {}
    return await _render_settings(page, key, queue, fields_from_query(query, queue.config))


async def save_settings(page: PageRequest) -> Response:
    key, fields = page.resolve_queue(), fields_from_form(page.form)
    queue = (await page.service.registry.get(key)).queue
    if not any(field.error for field in fields):
        fields = await _save_fields(page, key, fields)
    if any(field.error for field in fields):
        return await _render_settings(page, key, queue, fields)
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


async def _render_settings(page: PageRequest, key: QueueKey, queue: Queue, fields: list[SettingField]) -> Response:
    by_name = {field.setting.name: field for field in fields}
    invalid_fields = [field for field in fields if field.error]
    is_admin, is_get = page.user.has_scope(Scope.ADMIN), page.request.method == "GET"
    required = run_validity.required_statuses(queue)
    shows_recent = is_get and is_admin and (not required.statuses or "checks" in page.query)
    return page.render_form(
        "settings.html",
        invalid_fields,
        key=key,
        queue=queue,
        groups={title: [by_name[name] for name in names] for title, names in GROUPS.items()},
        invalid_fields=invalid_fields,
        by_name=by_name,
        switches=SWITCHES,
        required=required,
        repository_checks=queue.target_branch.required_statuses,
        required_sources=REQUIRED_SOURCES,
        recent_checks=await _list_recent_checks(page, key, by_name["required_statuses"]) if shows_recent else None,
        saved=page.query.get("saved", "")[:4] if is_get else "",
        is_created=is_get and "created" in page.query,
        proposed=[field for field in fields if field.is_changed] if is_get else [],
    )


async def _list_recent_checks(page: PageRequest, key: QueueKey, typed: SettingField) -> list[str]:
    """Those that the form does not have yet. A host that is no longer configured has none."""
    if key.repo.host not in page.service.repositories.hosts:
        return []
    recent = await page.service.recent_checks.list(key.repo, key.branch)
    return [check for check in recent if check not in _split_lines(typed.value)]


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
    return RedirectResponse(f"{queue_url(key, 'settings')}?created=1#setting-requiredStatuses", 303)


def _parse_key(page: PageRequest) -> QueueKey:
    owner, _, name = page.form.get("repo").rpartition("/")
    if not (git_names.is_owner(owner) and git_names.is_repository_name(name)):
        raise RequestRefused(Code.INVALID_REPO, "Enter the owner and the name of the repository, for example acme/app.")
    branch = page.form.get("branch")
    if not git_names.is_target_branch(branch):
        raise RequestRefused(
            Code.INVALID_BRANCH,
            f"Enter a branch name that Git accepts, not below {TEST_BRANCH_PREFIX}, for example main.",
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
