"""The service's own settings, from a file, the environment and the command line."""

from mergeyard.settings.loading import SettingsError, load
from mergeyard.settings.schema import PlainHost, Settings

__all__ = ["PlainHost", "Settings", "SettingsError", "load"]
