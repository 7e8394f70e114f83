"""Where an answer begins and ends: texts compared with what a template writes around a stand-in's answer."""

from __future__ import annotations

import pytest

from chatparsers.templates.borders import Begin, Ends, Lead, Stop, begin_in

ASKED = Lead("<|end|>\n<|bot|>\n<think>\n", "<|bot|>\n<think>\n", "<think>\n")
STOPS = ("<|end|>",)


@pytest.mark.parametrize(
    ("gap", "begins"),
    [
        ("<|end|>\n<|bot|>\n<think>\n", ("", "<think>\n")),  # as the prompt
        ("<|end|>\n<|bot|>\n", ("", "")),  # the history has no thought
        ("<|end|>\n<|bot|>\n<thinking>\n", ("<thinking>\n", "")),  # never inside a marker
        ("<|end|> <|bot|>\n<call>", ("<call>", "")),  # with other white space
        ("<|eot|>\n<|bot|>\n", ("", "")),  # what was before ended otherwise
        ("<|user|>\n", None),
    ],
)
def test_an_answer_begins_where_it_and_the_prompt_part(gap: str, begins: tuple[str, str] | None) -> None:
    expected = None if begins is None else Begin(len(gap) - len(begins[0]), begins[1])
    assert begin_in(gap, [ASKED]) == expected


def test_a_header_of_white_space_alone_comes_last() -> None:
    blank = Lead("\n", "\n", "")
    assert begin_in("\n<|bot|>\n", [blank, ASKED]) == Begin(len("\n<|bot|>\n"), "")
    assert begin_in("\nYes", [blank, ASKED]) == Begin(1, "")


@pytest.mark.parametrize(
    ("ends", "after", "stop", "end"),
    [
        (Ends(STOPS), "</a>\n<|end|>\n<|user|>", "<|end|>", "\n<|user|>"),
        (Ends(STOPS, False, "</a>", "</a><|user|>"), "</a><|user|>", "", "<|user|>"),  # it writes no stop
        (Ends(STOPS, False, "</a><|end|>", "</a><|call|>x"), "</a><|call|>x", "<|call|>", "x"),  # another one
        (Ends(STOPS, True, '"}</call>'), "}</call>\n<|user|>", "", "\n<|user|>"),  # the argument was no text
        (Ends(STOPS, True, '"})', '"})<|tool|>'), "3})<|tool|>", "", "<|tool|>"),
    ],
)
def test_an_answer_ends_with_its_stop_or_what_closes_it(ends: Ends, after: str, stop: str, end: str) -> None:
    found = len(after) - len(end)
    assert ends.stop_in(after, False) == Stop(found - len(stop), found, len(after))


def test_a_message_without_words_is_no_part_of_the_answer_before() -> None:
    ends = Ends(STOPS, False, "", "\n<|tool|>\n")
    assert ends.stop_in("\n<|tool|>\n<|bot|>", True).following == len("\n<|tool|>\n")
    assert ends.stop_in("\n<|tool|>\n<|bot|>", False).following == len("\n<|tool|>\n<|bot|>")


def test_what_is_left_out_after_a_last_answer() -> None:
    assert Ends(STOPS, False, "</a>", "</a>\n<|end|>\n<|user|>").left_out == "\n<|end|>"
    assert Ends(STOPS, False, "", "</a><|end|>").left_out == "</a><|end|>"
    assert Ends(STOPS, False, "</a>", "</a>\n<|user|>").left_out == ""
