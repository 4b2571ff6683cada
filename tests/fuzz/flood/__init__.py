"""Random requests to a real server: valid and invalid ones, generated from its OpenAPI document."""
