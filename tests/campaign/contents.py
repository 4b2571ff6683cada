"""Kinds of changes to files: each is a function from the present files to the changed ones.

Changes are drawn at random. Two of the same kind often have the same path: then they conflict, or must merge.
"""

from collections.abc import Callable
from random import Random

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.repositories import Content, Executable, Files, Origin, Submodule, Symlink, to_text

UNICODE_NAMES = (
    "caf\u00e9.txt",
    "cafe\u0301.txt",
    "\u212bngstr\u00f6m",
    "A\u030angstro\u0308m",
    "\u65e5\u672c\u8a9e/\u30d5\u30a1\u30a4\u30eb",
    "\U0001f682\u200d.txt",
    "\u202etxt.exe",
    "\udcff\udcfe-not-utf8",
)
"""The same name in two normal forms, right-to-left text, and bytes that are not UTF-8."""

HOSTILE_NAMES = (
    "two\nlines.txt",
    " ",
    "-x",
    "--force",
    "--",
    "-rf ~",
    'say "hi"',
    "it's",
    "back\\slash",
    "tab\there",
    "$(reboot)",
    "`reboot`; reboot &",
    ":(top)x",
    ":!x",
    "*",
    "[a-z]?",
    "HEAD",
    "refs/heads/main",
    "%00%s%n",
    "bell\x07\x1b[31m",
    "CON",
    "aux.txt",
    "trailing.",
    "trailing ",
    "x" * 250,
    "y" * 300,
    "/".join(["deep"] * 120),
    ".gitmodules",
    ".gitignore",
    ".mailmap",
    "a/.gitkeep",
)

REFUSED_NAMES = (
    ".git/config",
    ".GIT/hooks/post-checkout",
    "sub/.git/HEAD",
    "git~1/config",
    ".git /config",
    "..git/../x",
)
"""Git accepts none of these in an index, but a pushed tree can contain them."""


CONFIG_FILE = ".mergeyard.toml"
LINES = 60
TEXTS = tuple(f"text/{name}.txt" for name in ("notes", "plan", "recipe"))
FOLDERS = ("alpha", "beta", "gamma/inner")
ATTRIBUTES = (
    "*.txt merge=union\n",
    "* text=auto eol=crlf\n",
    "*.txt eol=lf\n*.bin -text\n",
    "* filter=canary diff=canary\n",
    "* merge=canary\n",
    "*.txt -merge\n",
    "* ident\n*.txt working-tree-encoding=UTF-16\n",
    "* export-ignore export-subst\n",
    "[attr]canary merge=canary filter=canary\n* canary\n",
)


class Draft(Struct, frozen=True):
    """One commit that is about to be made."""

    files: Files
    """The present files."""
    tag: str
    """A text that no other commit contains."""
    random: Random

    def random_path(self, wanted: type[object], below: str = "") -> str | None:
        """A random path with this type of content, except the configuration of the queue."""
        fitting = [path for path, found in self.files.items() if type(found) is wanted and path.startswith(below)]
        chosen = sorted(path for path in fitting if path != CONFIG_FILE)
        return self.random.choice(chosen) if chosen else None

    def below(self, folder: str) -> list[str]:
        return [path for path in self.files if path.startswith(f"{folder}/")]


Change = dict[str, Content]
Kind = Callable[[Draft], Change]
Kinds = dict[str, tuple[int, Kind]]
"""Kinds of changes by name, with their weights."""


def first_files(chance: Random) -> Files:
    """The first files of a repository: every kind of change finds something that it can change."""
    files: Change = {path: lines_of(path) for path in TEXTS}
    files |= {path: lines_of(path) for path in (f"{folder}/{number}.txt" for folder in FOLDERS for number in range(3))}
    files |= {f"spare/{number}": f"spare {number}\n" * 9 for number in range(6)}
    files |= {"crlf.txt": lines_of("crlf", "\r\n"), "mixed.txt": lines_of("mixed").replace("7\n", "7\r\n")}
    files |= {f"blob{number}.bin": chance.randbytes(300) + b"\0" for number in range(2)}
    files |= {"run.sh": Executable("exit 0\n"), "link": Symlink("run.sh"), "up": Symlink("../outside")}
    files |= {"library": Submodule("1" * 40), "vendor/other": Submodule("2" * 40)}
    return files | {UNICODE_NAMES[0]: lines_of("unicode"), HOSTILE_NAMES[0]: lines_of("hostile")}


def lines_of(name: str, end: str = "\n") -> str:
    """Different from those of any other file: otherwise git takes one for the other when one of them is moved."""
    return "".join(f"{name} has a line {number}{end}" for number in range(LINES))


def edit(draft: Draft) -> Change:
    return _edited(draft, draft.random_path(str, "text/"))


def edit_anything(draft: Draft) -> Change:
    return _edited(draft, draft.random_path(str))


def add(draft: Draft) -> Change:
    return {f"new/{draft.tag}.txt": f"{draft.tag}\n" * 3}


def delete(draft: Draft) -> Change:
    path = draft.random_path(str, "spare/")
    return {path: None} if path else {}


def rename(draft: Draft) -> Change:
    return _moved(draft, draft.random_path(str, draft.random.choice(("text/", "spare/", ""))))


def rename_and_edit(draft: Draft) -> Change:
    path = draft.random_path(str, draft.random.choice(("text/", "alpha/", "beta/")))
    return {name: _with_another_line(draft, content) for name, content in _moved(draft, path).items()}


def rename_folder(draft: Draft) -> Change:
    folder = draft.random.choice(FOLDERS)
    moved = {f"{folder}-{draft.tag}{path.removeprefix(folder)}": draft.files[path] for path in draft.below(folder)}
    return {**dict.fromkeys(draft.below(folder)), **moved}


def add_to_folder(draft: Draft) -> Change:
    """Another change can rename the folder."""
    return {f"{draft.random.choice(FOLDERS)}/{draft.tag}.txt": f"{draft.tag}\n"}


def change_mode(draft: Draft) -> Change:
    path = draft.random_path(draft.random.choice((str, Executable)))
    match draft.files[path] if path else None:
        case Executable(text) if path:
            return {path: text}
        case str(text) if path:
            return {path: Executable(text)}
        case _:
            return {}


def change_symlink(draft: Draft) -> Change:
    path = draft.random_path(Symlink) or f"links/{draft.tag}"
    return {path: Symlink(draft.random.choice((draft.tag, "/etc/passwd", "../../outside", "text", ".git/config")))}


def file_becomes_symlink(draft: Draft) -> Change:
    path = draft.random_path(str, draft.random.choice(("text/", "spare/")))
    return {path: Symlink(f"{draft.tag}")} if path else {}


def symlink_becomes_file(draft: Draft) -> Change:
    path = draft.random_path(Symlink)
    return {path: f"{draft.tag}\n"} if path else {}


def file_becomes_folder(draft: Draft) -> Change:
    path = draft.random_path(draft.random.choice((str, Symlink)))
    return {path: None, f"{path}/{draft.tag}": f"{draft.tag}\n", f"{path}/deep/er": "1\n"} if path else {}


def folder_becomes_file(draft: Draft) -> Change:
    folder = draft.random.choice((*FOLDERS, "spare", "new"))
    within = draft.below(folder)
    becomes = draft.random.choice((f"{draft.tag}\n", Symlink(draft.tag), Submodule("3" * 40)))
    return {**dict.fromkeys(within), folder: becomes} if within else {}


def change_submodule(draft: Draft) -> Change:
    path = draft.random_path(Submodule)
    if path is None:
        return {f"modules/{draft.tag}": Submodule("4" * 40)}
    becomes: tuple[Change, ...] = (
        {path: Submodule(f"{draft.random.getrandbits(160):040x}")},
        {path: None},
        {path: None, f"{path}/inside": f"{draft.tag}\n"},
        {f"modules/{draft.tag}": Submodule("5" * 40)},
    )
    return draft.random.choice(becomes)


def change_binary(draft: Draft) -> Change:
    path = draft.random_path(bytes) if draft.random.random() < 0.5 else None
    return {path or f"{draft.tag}.bin": draft.random.randbytes(400) + b"\0\r\n"}


def change_line_ends(draft: Draft) -> Change:
    path = draft.random.choice(("crlf.txt", "mixed.txt"))
    content = draft.files.get(path)
    if not isinstance(content, str):
        return {path: f"{draft.tag}\r\n"}
    if draft.random.random() < 0.2:
        return {path: content.replace("\r\n", "\n")}
    lines = content.splitlines(keepends=True)
    at = draft.random.randrange(len(lines))
    return {path: "".join([*lines[:at], f"{draft.tag}\r\n", *lines[at + 1 :]])}


def change_attributes(draft: Draft) -> Change:
    place = draft.random.choice(("", "text/", "alpha/"))
    return {f"{place}.gitattributes": draft.random.choice(ATTRIBUTES), **edit(draft)}


def unicode_names(draft: Draft) -> Change:
    path = draft.random.choice(UNICODE_NAMES)
    return _edited(draft, path) if isinstance(draft.files.get(path), str) else {path: f"{draft.tag}\n"}


def hostile_names(draft: Draft) -> Change:
    path = draft.random.choice(HOSTILE_NAMES)
    found = draft.files.get(path)
    if isinstance(found, str):
        return draft.random.choice((_edited, _moved))(draft, path)
    return {path: draft.random.choice((f"{draft.tag}\n", Executable("exit 1\n"), Symlink(draft.tag)))}


def names_that_git_refuses(draft: Draft) -> Change:
    return {draft.random.choice(REFUSED_NAMES): f"{draft.tag}\n", **add(draft)}


def failing_file(draft: Draft) -> Change:
    return {f"bad-{draft.tag}": "1\n"}


CHANGE_KINDS: Kinds = {
    "edit": (6, edit),
    "edit anywhere": (3, edit_anything),
    "add": (3, add),
    "delete": (3, delete),
    "rename": (3, rename),
    "rename and edit": (3, rename_and_edit),
    "rename a folder": (2, rename_folder),
    "add to a folder": (2, add_to_folder),
    "mode": (2, change_mode),
    "symlink": (2, change_symlink),
    "file to symlink": (2, file_becomes_symlink),
    "symlink to file": (1, symlink_becomes_file),
    "file to folder": (2, file_becomes_folder),
    "folder to file": (1, folder_becomes_file),
    "submodule": (2, change_submodule),
    "binary": (2, change_binary),
    "CRLF": (3, change_line_ends),
    ".gitattributes": (3, change_attributes),
    "unicode name": (2, unicode_names),
    "hostile name": (3, hostile_names),
    "failing": (1, failing_file),
}
REFUSED_KINDS: Kinds = {"refused name": (4, names_that_git_refuses)}


def _edited(draft: Draft, path: str | None) -> Change:
    if path is None:
        return add(draft)
    return {path: _with_another_line(draft, draft.files[path])}


def _with_another_line(draft: Draft, content: Content) -> Content:
    if not isinstance(content, str):
        return content
    lines = content.splitlines(keepends=True) or ["\n"]
    at = draft.random.randrange(len(lines))
    return "".join([*lines[:at], f"{draft.tag} wrote this\n", *lines[at + draft.random.choice((0, 1)) :]])


def _moved(draft: Draft, path: str | None) -> Change:
    if path is None:
        return add(draft)
    return {path: None, f"moved/{draft.tag}-{path.rpartition('/')[2]}": draft.files[path]}


AUTHORS = (
    "Ada <ada@example.org>",
    "Grace Hopper <grace@example.org>",
    "Sammy Davis Jr. <sammy@example.org>",
    '"Quoted" <quoted@example.org>',
    "O'Neill, Ann <ann@example.org>",
    "\u674e\u96f7 <li@example.org>",
    "No Address <>",
    "<no-name@example.org>",
)

MESSAGES = (
    "A change",
    "A change\n\nWith a reason, and a list:\n\n  - one\n  - two\n",
    "[skip ci] Hurry",
    "Forged\n\nMergeyard-Pull-Request: 99\nMergeyard-Run: forged",
    "Signed\n\nSigned-off-by: Ada <ada@example.org>\nCo-authored-by: Grace <grace@example.org>",
    "Carriage\r\nreturns\r\n",
    "# looks like a comment\n\n# and so does this",
    "",
    "\u00e9" * 300,
    "diff --git a/x b/x\n--- a/x\n+++ b/x",
)


KINDS_WITHOUT_CONTENT = frozenset({"160000"})


def snapshot(origin: Origin, place: str) -> dict[str, Content]:
    """The files of a branch, a commit or a tree."""
    found = [_entry(entry) for entry in origin.run("ls-tree", "-r", "-z", place).split(b"\0")[:-1]]
    blobs = _blobs(origin, [sha for mode, sha, _ in found if mode not in KINDS_WITHOUT_CONTENT])
    return {path: _content(mode, sha, blobs) for mode, sha, path in found}


def changes(before: Files, after: Files) -> dict[str, Content]:
    """The changes that make `after` out of `before`."""
    gone = dict.fromkeys(path for path in before if path not in after)
    return {**gone, **{path: content for path, content in after.items() if before.get(path) != content}}


def _entry(entry: bytes) -> tuple[str, Sha, str]:
    facts, _, path = entry.partition(b"\t")
    mode, _, sha = facts.decode().split(" ")
    return mode, Sha(sha), to_text(path)


def _blobs(origin: Origin, names: list[Sha]) -> dict[Sha, bytes]:
    output = origin.run("cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode())
    blobs, at = dict[Sha, bytes](), 0
    for name in names:
        header = output[at : output.index(b"\n", at)]
        start, size = at + len(header) + 1, int(header.rpartition(b" ")[2])
        blobs[name] = output[start : start + size]
        at = start + size + 1
    return blobs


def _content(mode: str, sha: Sha, blobs: dict[Sha, bytes]) -> Content:
    match mode:
        case "160000":
            return Submodule(sha)
        case "120000":
            return Symlink(to_text(blobs[sha]))
        case "100755":
            return Executable(to_text(blobs[sha]))
        case _:
            return blobs[sha] if b"\0" in blobs[sha] else to_text(blobs[sha])
