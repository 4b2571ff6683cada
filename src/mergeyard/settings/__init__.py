"""The service's own settings, from a file, the environment and the command line."""

from mergeyard.settings.loading import SettingsError, load
from mergeyard.settings.schema import ForgeHost, Oidc, PlainHost, Provider, Settings

__all__ = ["ForgeHost", "Oidc", "PlainHost", "Provider", "Settings", "SettingsError", "load"]
