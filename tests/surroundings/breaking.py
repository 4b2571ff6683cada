"""Ways to break a mirror, each as it happens: by a lost disk block, a crash, a killed git, or somebody's hand."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

Break = Callable[[Path], object]


def truncate_objects(mirror: Path) -> None:
    """As a machine leaves it that lost power before the blocks were written."""
    for path in objects(mirror):
        path.chmod(0o644)
        path.write_bytes(b"")


def cut_packs(mirror: Path) -> None:
    for path in objects(mirror):
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_bits(mirror: Path) -> None:
    for path in objects(mirror):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.chmod(0o644)
        path.write_bytes(content)


def remove_objects(mirror: Path) -> None:
    for path in list(objects(mirror)):
        path.unlink()


def break_refs(mirror: Path) -> None:
    for path in refs(mirror):
        path.write_text("garbage\n")


def empty_refs(mirror: Path) -> None:
    for path in refs(mirror):
        path.write_text("")


def break_config(mirror: Path) -> None:
    (mirror / "config").write_text("[core\n")


def ask_for_a_newer_git(mirror: Path) -> None:
    (mirror / "config").write_text("[core]\n\trepositoryformatversion = 99\n\tbare = true\n")


def borrow_from_nowhere(mirror: Path) -> None:
    (mirror / "objects" / "info").mkdir(exist_ok=True)
    (mirror / "objects" / "info" / "alternates").write_text("/nowhere/objects\n")


def leave_locks(mirror: Path) -> None:
    """Those of a git that was killed a moment ago."""
    for path in (*refs(mirror), mirror / "packed-refs", mirror / "HEAD", mirror / "config", mirror / "shallow"):
        path.with_name(f"{path.name}.lock").touch()
    (mirror / "gc.pid").write_text("1 elsewhere\n")


def remove_head(mirror: Path) -> None:
    (mirror / "HEAD").unlink()


def remove_everything(mirror: Path) -> None:
    shutil.rmtree(mirror)


def put_a_file_in_its_place(mirror: Path) -> None:
    shutil.rmtree(mirror)
    mirror.write_text("a file")


WAYS: tuple[Break, ...] = (
    *(truncate_objects, cut_packs, flip_bits, remove_objects, break_refs, empty_refs, break_config),
    *(ask_for_a_newer_git, borrow_from_nowhere, leave_locks, remove_head, remove_everything, put_a_file_in_its_place),
)


def objects(mirror: Path) -> Iterator[Path]:
    for path in (mirror / "objects").rglob("*"):
        if path.is_file() and path.stat().st_size and path.suffix in {"", ".pack"} and "info" not in path.parts:
            yield path


def refs(mirror: Path) -> list[Path]:
    return [path for path in (mirror / "refs").rglob("*") if path.is_file() and path.suffix != ".lock"]
