"""Tools that Anthropic's clients name by a type alone, and run themselves: bash, the text editor, the memory.

Claude knows their schemas; another model must be told. What each takes stands here as the vendor has it, in Python SDK
2.14.0 and the pages of its tools: the memory's commands are types there, the others are described. Since 20250429 the
editor's `insert` has `insert_text`, and no `undo_edit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

_TEXT = {"type": "string"}
_LINE = {"type": "integer"}
_RANGE = {
    "type": "array",
    "items": _LINE,
    "minItems": 2,
    "maxItems": 2,
    "description": "For view, of a file: its first and last line, from 1 on; -1: to the end.",
}


class ClientTool(NamedTuple):
    """What a type of tool is for a model. ``commands``: those of one that has several; ``fields``: its arguments."""

    name: str
    description: str
    fields: Mapping[str, Any]
    required: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    def function(self, name: str) -> dict[str, Any]:
        """The function that a model sees."""
        command = {"command": {"type": "string", "enum": [*self.commands]}} if self.commands else {}
        required = [*command, *self.required]
        schema = {"type": "object", "properties": {**command, **self.fields}, "required": required}
        return {"name": name, "description": self.description, "parameters": schema}


def _said(text: str, kind: Mapping[str, Any] = _TEXT) -> dict[str, Any]:
    return {**kind, "description": text}


_PATH = _said("The path of a file or a folder.")
_EDITED = {
    "file_text": _said("For create: the whole text of the file."),
    "old_str": _said(
        "For str_replace: the text to replace, which stands once in the file, white space and all."
    ),
    "view_range": _RANGE,
}
_BASH = ClientTool(
    "bash",
    "Runs a command in a bash session that stays open, and returns what it prints.",
    {
        "command": _said("The command. It is left out only to restart."),
        "restart": _said("Begins the session anew, in place of a command.", {"type": "boolean"}),
    },
)
_EDITOR = ClientTool(
    "str_replace_based_edit_tool",
    "Views, creates and edits text files.",
    {
        "path": _PATH,
        **_EDITED,
        "new_str": _said("For str_replace: what stands in its place."),
        "insert_line": _said("For insert: the line after which the text comes; 0: at the beginning.", _LINE),
        "insert_text": _said("For insert: the text."),
    },
    ("path",),
    ("view", "create", "str_replace", "insert"),
)
_OLD_EDITOR = ClientTool(
    "str_replace_editor",
    "Views, creates and edits text files, and takes the last edit of a file back.",
    {
        "path": _PATH,
        **_EDITED,
        "new_str": _said("For str_replace and insert: the new text."),
        "insert_line": _said("For insert: the line after which the text comes; 0: at the beginning.", _LINE),
    },
    ("path",),
    ("view", "create", "str_replace", "insert", "undo_edit"),
)
_MEMORY = ClientTool(
    "memory",
    "Views, writes and changes files in the folder /memories, which stay for later conversations.",
    {
        "path": _said("The path, under /memories. For all commands but rename."),
        **_EDITED,
        "new_str": _said("For str_replace: what stands in its place."),
        "insert_line": _said("For insert: the line after which the text comes; 0: at the beginning.", _LINE),
        "insert_text": _said("For insert: the text."),
        "old_path": _said("For rename: the path that it has."),
        "new_path": _said("For rename: the path that it gets."),
    },
    (),
    ("view", "create", "str_replace", "insert", "delete", "rename"),
)
CLIENT_TOOLS: Mapping[str, ClientTool] = {
    **dict.fromkeys(("bash_20241022", "bash_20250124"), _BASH),
    **dict.fromkeys(("text_editor_20241022", "text_editor_20250124"), _OLD_EDITOR),
    **dict.fromkeys(("text_editor_20250429", "text_editor_20250728"), _EDITOR),
    "memory_20250818": _MEMORY,
}
"""By the type that a request names."""
