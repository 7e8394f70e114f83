"""Response templates as model files have them, written for these tests after the language's own page."""

from __future__ import annotations

from typing import Any

CALL = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
THOUGHT = {"open": "<think>", "close": "</think>", "content": "text"}

JSON: dict[str, Any] = {
    "version": 1,
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "reasoning_content": THOUGHT,
        "tool_calls": {
            "open_pattern": r"\s*<tool_call>",
            "close": "</tool_call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"\s*(?:<\|im_end\|>|<\|endoftext\|>)", "content": "text"},
    },
}
TAGS: dict[str, Any] = {
    **JSON,
    "fields": {
        **JSON["fields"],
        "tool_calls": {
            "open_pattern": r"\s*<tool_call>\s*<function=(?P<name>[^>\n]+)>",
            "close_pattern": r"</function>\s*</tool_call>",
            "repeats": True,
            "content": "xml-inline",
            "content_args": {"tag_pattern": r"<parameter=(?P<key>[^>\n]+)>\s*(?P<value>.*?)\s*</parameter>"},
            "transform": CALL,
        },
    },
}
GEMMA: dict[str, Any] = {
    "start_anchor": ["<|turn>model\n", "<tool_response|>"],
    "fields": {
        "thinking": {"open": "<|channel>thought\n", "close": "<channel|>"},
        "tool_calls": {
            "open_pattern": r"<\|tool_call>call:(?P<name>\w+)",
            "close": "<tool_call|>",
            "repeats": True,
            "content": "json",
            "content_args": {"unquoted_keys": True, "string_delims": [['<|"|>', '<|"|>']]},
            "transform": CALL,
        },
        "content": {"close": ["<turn|>", "<eos>"]},
    },
}
LIST: dict[str, Any] = {
    "start_anchor_pattern": "<[|]START[|]>",
    "fields": {
        "thinking": {"open": ["<|THINK|>", "<|PLAN|>"], "close": "<|END_THINK|>"},
        "content": {"open": "<|SAY|>", "close": "<|END_SAY|>"},
        "tool_calls": {
            "open": "<|ACT|>",
            "close": "<|END_ACT|>",
            "content": "json",
            "transform": {
                "type": "function",
                "id": "{tool_call_id}",
                "function": {"name": "{tool_name}", "arguments": "{parameters}"},
            },
            "transform_each": True,
        },
    },
}
LINES: dict[str, Any] = {
    "start_anchor": "A:",
    "fields": {
        "tool_calls": {
            "open_pattern": r"\[CALL (?P<name>[a-z_]+)\](?:\s*args)?\n",
            "close": "[END]",
            "repeats": True,
            "content": "kv-lines",
            "transform": CALL,
        },
        "content": {},
    },
}
HEADER: dict[str, Any] = {
    "start_anchor": "A:",
    "fields": {
        "tool_calls": {
            "open_pattern": r"<call:(?P<id>functions\.(?P<name>.+?):\d+)>",
            "close_pattern": "</call>",
            "repeats": True,
            "content": "json",
            "transform": {"id": "{id}", **CALL},
        },
        "content": {"close": "<end>"},
    },
}
BEAM: dict[str, Any] = {
    "start_anchor_pattern": r"<\|start\|>assistant",
    "fields": {
        "thinking": {"open_pattern": r"<\|channel\|>analysis<\|message\|>", "close": "<|end|>"},
        "content": {"open_pattern": r"<\|channel\|>final<\|message\|>", "close": ["<|return|>", "<|end|>"]},
        "tool_calls": {
            "open_pattern": r"(?:<\|start\|>assistant )?to=(?P<name>.+?)<\|channel\|>analysis"
            r"(?: <\|constrain\|>xml)?<\|message\|>",
            "close": ["<|call|>", "<|end|>"],
            "repeats": True,
            "content": "xml-inline",
            "content_args": {
                "tag_pattern": '<rfl:parameter name="(?P<key>[^"]+)">(?P<value>.*?)'
                '(?:</rfl:parameter>|(?=<rfl:parameter name="))',
                "value_parser": {"name": "text", "args": {"strip": True}},
            },
            "transform": CALL,
        },
    },
}
"""Beam's, as smg-project/smg has it in its tests, with the look-ahead of the model's own."""

CHANNELS: dict[str, Any] = {
    "start_anchor": "<|start|>assistant",
    "fields": {
        "thinking": {"open": "<|channel|>analysis<|message|>", "close_pattern": r"<\|end\|>\s*"},
        "content": {"open": "<|channel|>final<|message|>", "close_pattern": r"<\|return\|>\s*|$"},
        "tool_calls": {
            "open_pattern": r"to=functions\.(?P<name>\S+?)<\|channel\|>commentary\s+json<\|message\|>",
            "close_pattern": r"<\|call\|>\s*",
            "repeats": True,
            "content": "json",
            "transform": CALL,
        },
    },
}
"""A name is all but white space, and the end of the text closes an answer: as TRL has it for gpt-oss."""
OPENED: dict[str, Any] = {
    **JSON,
    "start_anchor_pattern": r"<\|im_start\|>assistant\n<think>(?:\n|</think>)?",
    "fields": {
        **JSON["fields"],
        "reasoning_content": {"open_pattern": r"(?=[\s\S]*?</think>)", "close": "</think>"},
    },
}
del OPENED["start_anchor"]
"""The prompt opens the thought, so its opener reads nothing: as TRL has it for Nemotron 3 and R1's distills."""
KEYWORDS: dict[str, Any] = {
    **JSON,
    "fields": {
        **JSON["fields"],
        "tool_calls": {
            "open_pattern": r"(?:<\|tool_call_start\|>\[|,\s*)(?P<name>\w+)\(",
            "close_pattern": r"\)(?:\]<\|tool_call_end\|>)?\s*",
            "repeats": True,
            "content": "xml-inline",
            "content_args": {
                "tag_pattern": r"(?P<key>\w+)=(?P<value>'[^']*'|\[(?:[^\[\]]|\[[^\[\]]*\])*\]|[^,)]*)",
                "value_parser": {
                    "name": "json",
                    "args": {"string_delims": [["'", "'"]], "allow_non_json": True},
                },
            },
            "transform": CALL,
        },
    },
}
"""Values in brackets that nest: as TRL has it for LFM2.5."""
CALL_LIST: dict[str, Any] = {
    **JSON,
    "fields": {
        **JSON["fields"],
        "tool_calls": {
            "open": "<|tool_call_start|>",
            "close": "<|tool_call_end|>",
            "content": "python-call-list",
            "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{arguments}"}},
            "transform_each": True,
        },
    },
}
AGAIN: dict[str, Any] = {
    **TAGS,
    "fields": {
        **TAGS["fields"],
        "tool_calls": {
            "open_pattern": r"\s*<tool_call>\s*<function=(?P<name>[^>\n]+)>",
            "close_pattern": r"</function>\s*</tool_call>",
            "repeats": True,
            "content": "xml-inline",
            "content_args": {
                "tag_pattern": r'<a\.(?P<key>[^\s>/]+)(?: kind="(?:text|json)")?>(?P<value>.*?)(?:\n)?</a\.(?P=key)>'
            },
            "transform": CALL,
        },
    },
}
"""The closer names the argument once more, and the opener says the kind of its value."""
NEXT: dict[str, Any] = {
    **JSON,
    "fields": {
        **JSON["fields"],
        "tool_calls": {
            "open_pattern": r"\s*\[TOOL_CALLS\](?P<name>[^\s\[]+)\[ARGS\]",
            "close_pattern": r"(?=\s*\[TOOL_CALLS\])|\s*(?:<\|im_end\|>|$)",
            "repeats": True,
            "content": "json",
            "transform": CALL,
        },
    },
}
"""A call is closed by the next, or by the end."""
