"""The arguments of the commands that read and write rows."""

from __future__ import annotations

from .shared import Commands, Parser, add_command, add_thoughts, at_least_one


def add_batch(commands: Commands[Parser]) -> None:
    run = "chatparsers.cli.batch:run"
    batch = add_command(
        commands, "batch", run, "parse, render, encode, normalize or translate whole files of rows"
    )
    batch.add_argument("action", choices=("parse", "render", "encode", "normalize", "translate"))
    batch.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="JSON lines (also .gz, .zst), Parquet or Arrow files, patterns, folders; - reads lines from stdin",
    )
    batch.add_argument("--out", metavar="DIR", help="the folder of the parts; - writes JSON lines to stdout")
    batch.add_argument("--model", metavar="MODEL", help="a model's files, or a format's name")
    batch.add_argument(
        "--model-column", metavar="COLUMN", help="parse: the column that names each row's format"
    )
    batch.add_argument(
        "--model-paths", action="store_true", help="parse: open the model files that --model-column names too"
    )
    batch.add_argument("--to", metavar="MODEL", help="translate: the model to write for")
    batch.add_argument("--encode", action="store_true", help="translate: write samples instead of text")
    batch.add_argument("--output", metavar="COLUMN", default="output", help="parse: text or ids (output)")
    batch.add_argument("--messages", metavar="COLUMN", help="(messages; normalize: as the shape has it)")
    batch.add_argument("--tools", metavar="FILE|COLUMN", help="a JSON file, or a column (tools)")
    batch.add_argument("--text", metavar="COLUMN", help="normalize: rendered prompts of --model")
    batch.add_argument("--row-id", metavar="COLUMN", default="row_id", help="the rows' names (row_id)")
    batch.add_argument("--shape", metavar="NAME", default="auto", help="normalize: the shape of the rows")
    batch.add_argument("--wire", metavar="NAME", default="auto", help="normalize: the format of their texts")
    batch.add_argument(
        "--explain", action="store_true", help="normalize: say what the rows are, write nothing"
    )
    batch.add_argument("--tokenizer", metavar="FILE", help="tokenizer.json, a model folder or a .gguf file")
    batch.add_argument("--prefix", metavar="TEXT", help="parse: what the prompt wrote of each answer")
    add_thoughts(batch)
    batch.add_argument("--generation-prompt", action="store_true", help="render: end where an answer begins")
    batch.add_argument("--max-length", type=at_least_one, metavar="N", help="encode: at most N ids a row")
    batch.add_argument(
        "--on-long",
        choices=("cut", "cut-left", "drop", "error"),
        help="encode: what becomes of longer rows (cut: their beginning is kept)",
    )
    batch.add_argument(
        "--drop-empty", action="store_true", default=None, help="encode: leave out rows of which no id counts"
    )
    batch.add_argument(
        "--append",
        metavar="COLUMN",
        help="parse: put each answer at the end of these messages, so that encode reads them",
    )
    batch.add_argument(
        "--as-sampled",
        action="store_true",
        default=None,
        help="encode: each answer counts, after the prompt that asked for it: one row or several",
    )
    batch.add_argument("--workers", type=at_least_one, metavar="N", help="processes (default: one a core)")
    batch.add_argument("--engine", choices=("local", "ray"), default="local", help="(local)")
    batch.add_argument("--address", metavar="A", help="of a Ray cluster (default: this machine alone)")
    batch.add_argument("--limit", type=at_least_one, metavar="N", help="only the first N rows")
    batch.add_argument("--lines", type=at_least_one, metavar="N", default=10_000, help="lines a part (10000)")
    batch.add_argument("--resume", action="store_true", help="go on where a batch was stopped")
    batch.add_argument("--json", action="store_true", help="print the summary as JSON")


def add_rollouts(commands: Commands[Parser]) -> None:
    run = "chatparsers.cli.rollouts:run"
    rollouts = add_command(
        commands, "rollouts", run, "say what serve --rollouts recorded, and write its samples"
    )
    rollouts.add_argument("folder", metavar="DIR", help="the folder of serve --rollouts")
    rollouts.add_argument("session", nargs="?", metavar="SESSION", help="only this session")
    rollouts.add_argument("--group", metavar="NAME", help="only sessions of this group")
    rollouts.add_argument("--json", action="store_true", help="print JSON")
    rollouts.add_argument(
        "--samples", metavar="FILE", help="write the rows there: .arrow, else JSON lines; -: print"
    )
    rollouts.add_argument(
        "--twins",
        choices=("keep", "context", "drop"),
        default="context",
        help="answers that nobody took: count them, show them as context, or not at all (context)",
    )
    rollouts.add_argument("--model", metavar="FILE", help="--samples: the model that was served")
    rollouts.add_argument(
        "--tokenizer", metavar="FILE", help="--samples: its tokenizer.json, if it is elsewhere"
    )
    rollouts.add_argument("--format", metavar="NAME", help="--samples: as for serve")
