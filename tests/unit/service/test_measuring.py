"""The figures of the process that are read when they are scraped."""

from pathlib import Path

from mergeyard.service.measuring import REGISTRY, measure_disk


def test_the_disk_of_the_data_directory_is_read_at_every_scrape(tmp_path: Path):
    measure_disk(tmp_path)
    free, size = (REGISTRY.get_sample_value(f"mergeyard_data_dir_{what}_bytes") for what in ("free", "size"))
    assert free is not None
    assert size is not None
    assert 0 < free <= size


def test_a_data_directory_that_is_gone_has_no_figure(tmp_path: Path):
    measure_disk(tmp_path / "gone")
    free = REGISTRY.get_sample_value("mergeyard_data_dir_free_bytes")
    assert free != free  # noqa: PLR0124 (not a number)
