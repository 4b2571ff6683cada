"""OpenID Connect: people sign in where their organisation knows them, and come back with its word for who they are."""
