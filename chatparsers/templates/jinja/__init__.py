"""Jinja within limits: a stranger's template renders, and cannot take the server down. Nothing here knows of chat."""
