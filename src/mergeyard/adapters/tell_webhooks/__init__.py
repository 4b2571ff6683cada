"""Sends webhooks over HTTP, to addresses that the world may reach and to no others."""
