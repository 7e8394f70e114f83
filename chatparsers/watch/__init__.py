"""Observers of answers: what is told of a stream or a message from outside, and no machine knows."""

from .not_given import tools_not_given

__all__ = ["tools_not_given"]
