"""A self-hosted merge queue: the commit that was tested is the commit that is merged."""

__version__ = "0.1.0"
