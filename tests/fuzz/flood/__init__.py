"""Floods a real server with requests that its own OpenAPI document allows, and with many that it does not."""
