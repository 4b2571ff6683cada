"""Ways to damage a mirror: lost disk blocks, a crash, a killed git process, or a manual change."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

Damage = Callable[[Path], object]


def truncate_objects(mirror: Path) -> None:
    """As after a power failure before the blocks were written."""
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


def require_a_newer_git(mirror: Path) -> None:
    (mirror / "config").write_text("[core]\n\trepositoryformatversion = 99\n\tbare = true\n")


def reference_missing_alternates(mirror: Path) -> None:
    (mirror / "objects" / "info").mkdir(exist_ok=True)
    (mirror / "objects" / "info" / "alternates").write_text("/nowhere/objects\n")


def leave_locks(mirror: Path) -> None:
    """Those of a git process that was just killed."""
    for path in (*refs(mirror), mirror / "packed-refs", mirror / "HEAD", mirror / "config", mirror / "shallow"):
        path.with_name(f"{path.name}.lock").touch()
    (mirror / "gc.pid").write_text("1 elsewhere\n")


def remove_head(mirror: Path) -> None:
    (mirror / "HEAD").unlink()


def remove_everything(mirror: Path) -> None:
    shutil.rmtree(mirror)


def replace_with_a_file(mirror: Path) -> None:
    shutil.rmtree(mirror)
    mirror.write_text("a file")


DAMAGES: tuple[Damage, ...] = (
    *(truncate_objects, cut_packs, flip_bits, remove_objects, break_refs, empty_refs, break_config),
    *(
        require_a_newer_git,
        reference_missing_alternates,
        leave_locks,
        remove_head,
        remove_everything,
        replace_with_a_file,
    ),
)


def objects(mirror: Path) -> Iterator[Path]:
    for path in (mirror / "objects").rglob("*"):
        if path.is_file() and path.stat().st_size and path.suffix in {"", ".pack"} and "info" not in path.parts:
            yield path


def refs(mirror: Path) -> list[Path]:
    return [path for path in (mirror / "refs").rglob("*") if path.is_file() and path.suffix != ".lock"]
