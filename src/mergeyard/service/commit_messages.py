"""The words of the commits that the queue creates: their messages, the template of squashed commits, their authors.

Titles, descriptions, names and commit messages come from authors of pull requests. So everything here is bounded, has
no command to skip CI, and contains the queue's own trailers exactly once, at its end.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain

from msgspec import Struct

from mergeyard.domain.config import MAX_TEMPLATE_LENGTH
from mergeyard.domain.ids import PullRequestNumber, RunId, Sha
from mergeyard.ports.forge import PullRequestText
from mergeyard.ports.git import Commit, Signature
from mergeyard.service.git_names import OWN_TRAILER_LINE, RUN_TRAILER, format_trailers

MAX_TITLE_CHARS = 200
MAX_SUBJECT_CHARS = 300
MAX_TITLE_INPUT_CHARS = 1_000
"""Longer titles, names and paths are cut before any regular expression runs on them."""
MAX_LINE_CHARS = 2_000
MAX_MESSAGE_CHARS = 64 * 1024
"""Of a description, and of the original message of a rebased commit; a longer one is cut and ends with an ellipsis."""
MAX_RENDERED_CHARS = 4 * MAX_MESSAGE_CHARS
"""Of a whole message: a template can contain the description several times."""
MAX_PEOPLE = 100
"""Co-authors, and people who signed off."""
MAX_TRAILERS_CHARS = 16 * 1024
"""At the end of a commit message: only there it names co-authors. People can sign off anywhere in it."""
MAX_SIGN_OFF_LINES = 1_000
"""Of one commit message, also those that repeat another one."""
MAX_ADDRESS_CHARS = 254
NO_TITLE = "(no title)"

# These expressions run on untrusted text on the event loop, so each must take linear time.
_BRACKETED = re.compile(r"\[([^\[\]()]*)\]")
_SEPARATORS = re.compile(r"[\W_]+")
_SKIP_WORDS = re.compile(r"(?<=\*{3})no_ci(?=\*{3})|skip-checks(?=\s*:)|(?<=--)(?:skip-ci|ci-skip)", re.IGNORECASE)
_WITHOUT_JOINS = str.maketrans({"_": " ", "-": " "})
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
_ADDRESS = re.compile(rf"[^\s<>\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]{{1,{MAX_ADDRESS_CHARS}}}")
_ACCOUNT_ID = re.compile(r"^[0-9]{1,20}[+-](?=[^@]{1,100}@users\.noreply\.)")
_NO_REPLY = re.compile(r"@(?:users\.)?noreply\.", re.IGNORECASE)
_MENTION = re.compile(r"(?<![\w`/.@+-])@[A-Za-z0-9][A-Za-z0-9_/-]{0,100}")
_CO_AUTHOR = re.compile(r"^co-authored-by:[ \t]*(\S.{0,1000})$", re.IGNORECASE | re.MULTILINE)
_SIGN_OFF = re.compile(r"^signed-off-by:[ \t]*(\S.{0,1000})$", re.IGNORECASE | re.MULTILINE)
_TRAILER = re.compile(r"(?:[A-Za-z0-9]+-[A-Za-z0-9-]+|(?i:cc|closes|fixes|link|refs|resolves)):[ \t]+\S.*", re.ASCII)
"""A word with a hyphen, or a usual one: a paragraph such as `Note: …` is text. Only what git accepts as well: one other
line would hide all trailers of its block."""
_TRAILER_LINE = re.compile(rf"{_TRAILER.pattern}|[ \t]+\S.*|\(cherry picked from commit .*", re.ASCII)
"""In the last block of a message; also a line that continues the one before, and what git itself adds."""
_END_OF_MESSAGE = re.compile(r"---(?=\s|$)|# -+ >8 -+")
"""Where tools for patches, and git itself, see the end of a message: trailers after such a line would not count."""
_TEMPLATE_PART = re.compile(r"\{\{|\}\}|\{([^{}\n]{0,50})\}|[{}]")


def sanitize_line(text: str) -> str:
    """One line without control characters and without commands to skip CI."""
    return _neutralize(" ".join(_CONTROL.sub(" ", text[:MAX_TITLE_INPUT_CHARS]).split()))


def base_run_message(run: RunId) -> str:
    return f"Test the target branch itself\n\n{RUN_TRAILER}: {run}\n"


def merge_message(number: PullRequestNumber, title: str, run: str, number_prefix: str = "#") -> str:
    """On GitLab without a sign before the number: `#12` is an issue there, and for `!12` GitLab leaves a note in the
    merge request whenever a commit is pushed to a test branch."""
    name = f"Merge pull request #{number}" if number_prefix == "#" else f"Merge request {number}"
    return f"{name}: {_cut_title(title)}\n\n{format_trailers(number, run)}"


def rebase_message(number: PullRequestNumber, message: str, run: str, head: Sha) -> str:
    """The original message. Trailers at its end and our own become one block, because git sees only the last block."""
    text = _clean_message(message) or "(no message)"
    before, _, last = text.rpartition("\n\n")
    has_trailers = before and not last[0].isspace() and all(map(_TRAILER_LINE.fullmatch, last.split("\n")))
    separator = "\n" if has_trailers else "\n\n"
    return f"{text}{separator}{format_trailers(number, run, head)}"


class Squash(Struct, frozen=True, kw_only=True):
    """What is known about a pull request that becomes one commit."""

    number: PullRequestNumber
    head: Sha
    text: PullRequestText
    commits: Sequence[Commit]
    """Its own, oldest first, without merge commits; at least one."""
    branch: str = ""
    base: str = ""
    url: str = ""
    number_prefix: str = "#"

    @property
    def author(self) -> Signature:
        """The author of the pull request; of its first commit if the Git host names no author with an address."""
        name, address = _clean_name(self.text.author_name), self.text.author_email
        if not name or not _ADDRESS.fullmatch(address):
            name, address = self.commits[0].author.name, self.commits[0].author.email
        return Signature(name, address, self.commits[-1].author.date)


TEMPLATE_FIELDS: dict[str, Callable[[Squash], str]] = {
    "title": lambda squash: _cut_title(squash.text.title),
    "number": lambda squash: str(squash.number),
    "reference": lambda squash: (
        f"#{squash.number}" if squash.number_prefix == "#" else f"merge request {squash.number}"
    ),
    "body": lambda squash: _format_description(squash.text.body),
    "author": lambda squash: _clean_name(squash.author.name),
    "branch": lambda squash: sanitize_line(squash.branch),
    "base": lambda squash: sanitize_line(squash.base),
    "url": lambda squash: sanitize_line(squash.url),
    "co_authors": lambda squash: "\n".join(list_co_authors(squash)),
    "sign_offs": lambda squash: "\n".join(list_sign_offs(squash.commits)),
    "commits": lambda squash: "\n".join(f"- {subject}" for subject in _list_subjects(squash.commits)),
}
"""The fields of a template, which has their names in braces."""
LONG_FIELDS = ("body", "commits")
"""They are cut to what the other fields leave, so that a message keeps the trailers at its end."""
MAX_FIELDS_USED = 50
DEFAULT_TEMPLATE = "{title} ({reference})\n\n{body}\n\n{co_authors}\n{sign_offs}"


def find_template_problem(template: str) -> str:
    """What is wrong with a template and what to do; empty: nothing."""
    if len(template) > MAX_TEMPLATE_LENGTH:
        return f"expected at most {MAX_TEMPLATE_LENGTH:,} characters"
    if _CONTROL.search("".join(template.splitlines())):
        return "expected text without control characters"
    names = list[str]()
    for part in _TEMPLATE_PART.finditer(template):
        if part[1] is not None:
            names.append(part[1])
        elif part[0] not in ("{{", "}}"):
            line = template.count("\n", 0, part.start()) + 1
            return f"line {line} has a single {part[0]}; write {part[0] * 2} for the character"
    unknown = next((name for name in names if name not in TEMPLATE_FIELDS), None)
    if unknown is not None:
        return f"unknown field {{{sanitize_line(unknown)}}}; known are {', '.join(TEMPLATE_FIELDS)}"
    if len(names) > MAX_FIELDS_USED:
        return f"expected at most {MAX_FIELDS_USED} fields"
    return ""


def squash_message(squash: Squash, run: str, *templates: str) -> str:
    """The first template that is not empty counts. Its first line that has text becomes the subject.

    Co-authors, sign-offs and other trailers at the end become one block with the queue's own, because git sees only the
    last block.
    """
    template = next((each for each in templates if each.strip() and not find_template_problem(each)), DEFAULT_TEMPLATE)
    text = _clean_message(_render(template, squash), MAX_RENDERED_CHARS) or _clean_message(squash.text.title)
    subject, _, rest = (text or NO_TITLE).partition("\n")
    paragraphs, trailers = _split_trailers(rest, _list_own_addresses(squash))
    body = "\n\n".join((_cut(subject, MAX_SUBJECT_CHARS), *paragraphs, ""))
    block = "".join(f"{each}\n" for each in trailers)
    return _neutralize(body + block) + format_trailers(squash.number, run, squash.head)


def list_co_authors(squash: Squash) -> list[str]:
    """Everyone but the author who wrote a commit or is named as a co-author in one."""
    own, found = _list_own_addresses(squash), dict[str, str]()
    for text in _list_people(squash.commits, _list_authors):
        person = _parse_person(text)
        if person and _address_key(person[1]) not in own:
            found.setdefault(_address_key(person[1]), f"Co-authored-by: {person[0]} <{person[1]}>")
            if len(found) == MAX_PEOPLE:
                break
    return list(found.values())


def list_sign_offs(commits: Sequence[Commit]) -> list[str]:
    found = dict[str, str]()
    for text in _list_people(commits, _find_sign_offs):
        person = sanitize_line(text)
        found.setdefault(person.casefold(), f"Signed-off-by: {person}")
        if len(found) == MAX_PEOPLE:
            break
    return list(found.values())


def _list_own_addresses(squash: Squash) -> set[str]:
    """The addresses of the author. Two people can have the same name, so it counts only if the Git host hides the
    address of the author: then the first address that a commit shows with this name is also the author's."""
    name, own = _clean_name(squash.author.name).casefold(), [squash.author.email]
    if _NO_REPLY.search(own[0]):
        named = (commit.author.email for commit in squash.commits if _clean_name(commit.author.name).casefold() == name)
        own += [address for address in named if not _NO_REPLY.search(address)][:1]
    return set(map(_address_key, own))


def _list_authors(commit: Commit) -> list[str]:
    trailers = commit.message[-MAX_TRAILERS_CHARS:]
    return [f"{commit.author.name} <{commit.author.email}>", *_CO_AUTHOR.findall(trailers)]


def _find_sign_offs(commit: Commit) -> Iterator[str]:
    """In the whole message. It can have megabytes, in all of which a regular expression would take too long."""
    lowered, at = commit.message.replace("\u0130", "I").lower(), 0  # the only letter that becomes longer
    for _ in range(MAX_SIGN_OFF_LINES):
        at = lowered.find("signed-off-by:", at) + 1
        if at == 0:
            break
        found = _SIGN_OFF.match(commit.message, at - 1)
        yield from [found[1]] if found else []


def _list_people(commits: Sequence[Commit], list_in: Callable[[Commit], Iterable[str]]) -> dict[str, None]:
    """Each text once: a large message can repeat a line very often. Texts after the first thousand are left out."""
    people = dict[str, None]()
    for text in chain.from_iterable(map(list_in, commits)):
        people[text] = None
        if len(people) > 10 * MAX_PEOPLE:
            break
    return people


def _render(template: str, squash: Squash) -> str:
    """A line whose fields are all empty, and that has no other text, is left out."""
    names = [part[1] for part in _TEMPLATE_PART.finditer(template) if part[1]]
    values = {name: TEMPLATE_FIELDS[name](squash) for name in dict.fromkeys(names)}
    others = len(template) + sum(len(values[name]) for name in names if name not in LONG_FIELDS)
    for name in values.keys() & LONG_FIELDS:
        room = (MAX_RENDERED_CHARS - others) // sum(each in LONG_FIELDS for each in names)
        values[name] = _cut(values[name], max(room, 1))

    def fill(part: re.Match[str]) -> str:
        return part[0][0] if part[1] is None else values[part[1]]

    lines = [(line, _TEMPLATE_PART.sub(fill, line)) for line in template.splitlines()]
    return "\n".join(filled for line, filled in lines if filled.strip() or not line.strip())


def _split_trailers(text: str, own_addresses: Collection[str]) -> tuple[list[str], list[str]]:
    """The paragraphs, and the trailers of the last ones, each once. The author is not also a co-author."""
    paragraphs, trailers = [part.strip("\n") for part in text.split("\n\n") if part.strip()], list[str]()
    while paragraphs and all(map(_TRAILER.fullmatch, paragraphs[-1].split("\n"))):
        trailers = [*paragraphs.pop().split("\n"), *trailers]
    unique = dict[str, str]()
    for trailer in trailers:
        unique.setdefault(_trailer_key(trailer), trailer)
    for address in own_addresses:
        unique.pop(f"co-authored-by {address}", None)
    return paragraphs, list(unique.values())


def _trailer_key(trailer: str) -> str:
    """A co-author is named once, also with two names."""
    match = _CO_AUTHOR.fullmatch(trailer)
    person = match and _parse_person(match[1])
    return f"co-authored-by {_address_key(person[1])}" if person else trailer.casefold()


def _address_key(address: str) -> str:
    """A no-reply address of a Git host can have the id of the account before its name."""
    return _ACCOUNT_ID.sub("", address.casefold())


def _parse_person(text: str) -> tuple[str, str] | None:
    """Of `Ada Lovelace <ada@example.org>`."""
    name, _, rest = text.partition("<")
    address, end, after = rest.partition(">")
    if not end or after.strip() or not _ADDRESS.fullmatch(address):
        return None
    name = _clean_name(name)
    return (name, address) if name else None


def _list_subjects(commits: Sequence[Commit]) -> Iterator[str]:
    return (_cut_title(commit.message[:MAX_LINE_CHARS].lstrip().partition("\n")[0]) for commit in commits)


def _clean_name(name: str) -> str:
    return sanitize_line(name.replace("<", " ").replace(">", " "))[:MAX_TITLE_CHARS].strip()


def _clean_message(text: str, max_chars: int = MAX_MESSAGE_CHARS) -> str:
    """Without our own trailers, without commands to skip CI, and without a line that ends the message for git."""
    lines = (line for line in _clean_lines(text, max_chars) if not OWN_TRAILER_LINE.match(line))
    return _neutralize("\n".join(map(_escape_end, "\n".join(lines).strip().split("\n"))))


def _clean_lines(text: str, max_chars: int = MAX_MESSAGE_CHARS) -> Iterator[str]:
    """Without control characters, and without space at the ends of lines."""
    limited = _cut(text[: 2 * max_chars].strip(), max_chars)
    return (_CONTROL.sub(" ", _cut(line, MAX_LINE_CHARS)).rstrip() for line in limited.splitlines())


def _format_description(body: str) -> str:
    """Mentions become code: Git hosts notify the people that a commit mentions, and the description did so before."""
    text = "\n".join(_clean_lines(_remove_comments(body[: 2 * MAX_MESSAGE_CHARS])))
    return _MENTION.sub(lambda found: f"`{found[0]}`", text)


def _remove_comments(text: str) -> str:
    """Without the comments of HTML, in which templates of pull requests explain how to describe one."""
    parts, at = list[str](), 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        parts.append(text[at:start])
        at = end + 3
    return "".join((*parts, text[at:]))


def _escape_end(line: str) -> str:
    """A rule of three hyphens gets a fourth. A space could be lost: the Git host gets the text in two parts."""
    return f"-{line}" if _END_OF_MESSAGE.match(line) else line


def _neutralize(text: str) -> str:
    """Breaks every command to skip CI of known CI systems, so that the result contains none either.

    `[skip ci]`, `[ci_skip]`, `[skip azurepipelines]` and `[no ci]` lose their brackets; `***NO_CI***`, `skip-checks:`
    and `--skip-ci` lose the characters that join their words.
    """
    text = _BRACKETED.sub(lambda found: f"({found[1]})" if _is_skip_command(found[1]) else found[0], text)
    return _SKIP_WORDS.sub(lambda found: found[0].translate(_WITHOUT_JOINS), text)


def _is_skip_command(bracketed: str) -> bool:
    """Folds case, because GitLab's expression also takes the long s and the Kelvin sign for s and k."""
    letters = _SEPARATORS.sub("", bracketed.casefold())
    return letters.startswith("skip") or letters.endswith("skip") or letters == "noci"


def _cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


def _cut_title(title: str) -> str:
    return sanitize_line(title)[:MAX_TITLE_CHARS] or NO_TITLE
