"""Formats in the languages of others: transformers' ``response_template``, read into a format and written from one."""

from __future__ import annotations

from .read import read_response_template
from .write import Readers, WrittenTemplate, write_response_template

__all__ = ["Readers", "WrittenTemplate", "read_response_template", "write_response_template"]
