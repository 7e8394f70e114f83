"""Fails to import."""

raise RuntimeError("the engine room is flooded")
