"""What people do to files: every kind of change is a function from what is there to what becomes of it.

A change is drawn by chance. Two of the same kind often meet at one path: then they conflict, or must merge.
"""

from collections.abc import Callable
from random import Random

from msgspec import Struct

from tests.campaign.names import HOSTILE, REFUSED_BY_GIT, UNICODE
from tests.support.repositories import Content, Executable, Files, Submodule, Symlink

RULES = ".mergeyard.toml"
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
    """One commit that somebody is about to make."""

    files: Files
    """As they are."""
    tag: str
    """What nobody else writes."""
    chance: Random

    def any_of(self, wanted: type[object], below: str = "") -> str | None:
        """A path with such a content; the rules of the queue are left alone."""
        fitting = [path for path, found in self.files.items() if type(found) is wanted and path.startswith(below)]
        chosen = sorted(path for path in fitting if path != RULES)
        return self.chance.choice(chosen) if chosen else None

    def below(self, folder: str) -> list[str]:
        return [path for path in self.files if path.startswith(f"{folder}/")]


Change = dict[str, Content]
Kind = Callable[[Draft], Change]
Kinds = dict[str, tuple[int, Kind]]
"""With their weights."""


def first_files(chance: Random) -> Files:
    """What a repository begins with: something of every kind, so that every kind of change finds its object."""
    files: Change = {path: lines_of(path) for path in TEXTS}
    files |= {path: lines_of(path) for path in (f"{folder}/{number}.txt" for folder in FOLDERS for number in range(3))}
    files |= {f"spare/{number}": f"spare {number}\n" * 9 for number in range(6)}
    files |= {"crlf.txt": lines_of("crlf", "\r\n"), "mixed.txt": lines_of("mixed").replace("7\n", "7\r\n")}
    files |= {f"blob{number}.bin": chance.randbytes(300) + b"\0" for number in range(2)}
    files |= {"run.sh": Executable("exit 0\n"), "link": Symlink("run.sh"), "up": Symlink("../outside")}
    files |= {"library": Submodule("1" * 40), "vendor/other": Submodule("2" * 40)}
    return files | {UNICODE[0]: lines_of("unicode"), HOSTILE[0]: lines_of("hostile")}


def lines_of(name: str, end: str = "\n") -> str:
    """Unlike those of any other file: git would take one for the other, when one of them is moved."""
    return "".join(f"{name} has a line {number}{end}" for number in range(LINES))


def edit(draft: Draft) -> Change:
    return _edited(draft, draft.any_of(str, "text/"))


def edit_anything(draft: Draft) -> Change:
    return _edited(draft, draft.any_of(str))


def add(draft: Draft) -> Change:
    return {f"new/{draft.tag}.txt": f"{draft.tag}\n" * 3}


def delete(draft: Draft) -> Change:
    path = draft.any_of(str, "spare/")
    return {path: None} if path else {}


def rename(draft: Draft) -> Change:
    return _moved(draft, draft.any_of(str, draft.chance.choice(("text/", "spare/", ""))))


def rename_and_edit(draft: Draft) -> Change:
    path = draft.any_of(str, draft.chance.choice(("text/", "alpha/", "beta/")))
    return {name: _with_another_line(draft, content) for name, content in _moved(draft, path).items()}


def rename_folder(draft: Draft) -> Change:
    folder = draft.chance.choice(FOLDERS)
    moved = {f"{folder}-{draft.tag}{path.removeprefix(folder)}": draft.files[path] for path in draft.below(folder)}
    return {**dict.fromkeys(draft.below(folder)), **moved}


def add_to_folder(draft: Draft) -> Change:
    """Somebody else may rename it meanwhile."""
    return {f"{draft.chance.choice(FOLDERS)}/{draft.tag}.txt": f"{draft.tag}\n"}


def change_mode(draft: Draft) -> Change:
    path = draft.any_of(draft.chance.choice((str, Executable)))
    match draft.files[path] if path else None:
        case Executable(text) if path:
            return {path: text}
        case str(text) if path:
            return {path: Executable(text)}
        case _:
            return {}


def change_symlink(draft: Draft) -> Change:
    path = draft.any_of(Symlink) or f"links/{draft.tag}"
    return {path: Symlink(draft.chance.choice((draft.tag, "/etc/passwd", "../../outside", "text", ".git/config")))}


def file_becomes_symlink(draft: Draft) -> Change:
    path = draft.any_of(str, draft.chance.choice(("text/", "spare/")))
    return {path: Symlink(f"{draft.tag}")} if path else {}


def symlink_becomes_file(draft: Draft) -> Change:
    path = draft.any_of(Symlink)
    return {path: f"{draft.tag}\n"} if path else {}


def file_becomes_folder(draft: Draft) -> Change:
    path = draft.any_of(draft.chance.choice((str, Symlink)))
    return {path: None, f"{path}/{draft.tag}": f"{draft.tag}\n", f"{path}/deep/er": "1\n"} if path else {}


def folder_becomes_file(draft: Draft) -> Change:
    folder = draft.chance.choice((*FOLDERS, "spare", "new"))
    within = draft.below(folder)
    becomes = draft.chance.choice((f"{draft.tag}\n", Symlink(draft.tag), Submodule("3" * 40)))
    return {**dict.fromkeys(within), folder: becomes} if within else {}


def change_submodule(draft: Draft) -> Change:
    path = draft.any_of(Submodule)
    if path is None:
        return {f"modules/{draft.tag}": Submodule("4" * 40)}
    becomes: tuple[Change, ...] = (
        {path: Submodule(f"{draft.chance.getrandbits(160):040x}")},
        {path: None},
        {path: None, f"{path}/inside": f"{draft.tag}\n"},
        {f"modules/{draft.tag}": Submodule("5" * 40)},
    )
    return draft.chance.choice(becomes)


def change_binary(draft: Draft) -> Change:
    path = draft.any_of(bytes) if draft.chance.random() < 0.5 else None
    return {path or f"{draft.tag}.bin": draft.chance.randbytes(400) + b"\0\r\n"}


def change_line_ends(draft: Draft) -> Change:
    path = draft.chance.choice(("crlf.txt", "mixed.txt"))
    content = draft.files.get(path)
    if not isinstance(content, str):
        return {path: f"{draft.tag}\r\n"}
    if draft.chance.random() < 0.2:
        return {path: content.replace("\r\n", "\n")}
    lines = content.splitlines(keepends=True)
    at = draft.chance.randrange(len(lines))
    return {path: "".join([*lines[:at], f"{draft.tag}\r\n", *lines[at + 1 :]])}


def change_attributes(draft: Draft) -> Change:
    place = draft.chance.choice(("", "text/", "alpha/"))
    return {f"{place}.gitattributes": draft.chance.choice(ATTRIBUTES), **edit(draft)}


def unicode_names(draft: Draft) -> Change:
    path = draft.chance.choice(UNICODE)
    return _edited(draft, path) if isinstance(draft.files.get(path), str) else {path: f"{draft.tag}\n"}


def hostile_names(draft: Draft) -> Change:
    path = draft.chance.choice(HOSTILE)
    found = draft.files.get(path)
    if isinstance(found, str):
        return draft.chance.choice((_edited, _moved))(draft, path)
    return {path: draft.chance.choice((f"{draft.tag}\n", Executable("exit 1\n"), Symlink(draft.tag)))}


def names_that_git_refuses(draft: Draft) -> Change:
    return {draft.chance.choice(REFUSED_BY_GIT): f"{draft.tag}\n", **add(draft)}


def something_red(draft: Draft) -> Change:
    return {f"bad-{draft.tag}": "1\n"}


KINDS: Kinds = {
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
    "red": (1, something_red),
}
REFUSED: Kinds = {"refused name": (4, names_that_git_refuses)}


def _edited(draft: Draft, path: str | None) -> Change:
    if path is None:
        return add(draft)
    return {path: _with_another_line(draft, draft.files[path])}


def _with_another_line(draft: Draft, content: Content) -> Content:
    if not isinstance(content, str):
        return content
    lines = content.splitlines(keepends=True) or ["\n"]
    at = draft.chance.randrange(len(lines))
    return "".join([*lines[:at], f"{draft.tag} wrote this\n", *lines[at + draft.chance.choice((0, 1)) :]])


def _moved(draft: Draft, path: str | None) -> Change:
    if path is None:
        return add(draft)
    return {path: None, f"moved/{draft.tag}-{path.rpartition('/')[2]}": draft.files[path]}
