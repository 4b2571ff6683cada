"""A server warns when others can reach what it keeps."""

from pathlib import Path

import pytest

from tests.support.quick_server import QuickServer


@pytest.mark.parametrize(("mode", "warned"), [(0o700, []), (0o750, ["0750"]), (0o755, ["0755"])])
def test_a_data_folder_that_others_can_enter_is_warned_about(tmp_path: Path, mode: int, warned: list[str]):
    (tmp_path / "data").mkdir()
    (tmp_path / "data").chmod(mode)
    server = QuickServer(tmp_path)
    server.start()
    server.stop()
    assert [line["mode"] for line in server.told() if line["event"] == "data_dir_is_accessible"] == warned
