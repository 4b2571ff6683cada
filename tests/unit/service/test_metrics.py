"""Process metrics that are read when they are scraped."""

from pathlib import Path

from mergeyard.service.metrics import REGISTRY, measure_disk


def test_disk_space_of_the_data_directory_is_read_at_every_scrape(tmp_path: Path):
    measure_disk(tmp_path)
    free, size = (REGISTRY.get_sample_value(f"mergeyard_data_dir_{name}_bytes") for name in ("free", "size"))
    assert free is not None
    assert size is not None
    assert 0 < free <= size


def test_a_missing_data_directory_has_no_value(tmp_path: Path):
    measure_disk(tmp_path / "missing")
    free = REGISTRY.get_sample_value("mergeyard_data_dir_free_bytes")
    assert free != free  # noqa: PLR0124 (not a number)
