"""The commands: what each one does, the words that it needs, and two examples.

In ``needs``, a word in capitals is given without a flag: ``MODEL`` must be given, ``MODEL?`` may be, ``MODEL+`` are one
or more, ``MODEL*`` any number. ``model!`` is a flag that must be given; ``port=8001`` has another default;
``form:text,json`` has these choices, the first of them the default; ``.model`` is accepted in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_REQUEST = "tools tool_choice no_parallel lenient_calls response_format"
_READER = (
    f"model format tool_call_parser reasoning_parser tokenizer bos_token eos_token prefix thinking {_REQUEST}"
)
_THOUGHTS = "thinking effort"
_OF_BATCH = "ROWS+ parts model tokenizer"
_BATCH = "row_id workers runner address limit lines resume form:text,json"
_TEXTS = "shaped_column tools_column text_column shape wire"
_KINDS = "auto,llama-server,vllm,vllm-generate,sglang,sglang-generate,ollama,openai-completions"
_FORMS = "form:text,json,github,sarif,junit,html"


@dataclass(frozen=True)
class Command:
    """A command. ``needs``: its words, or its groups of words by title. ``run``: the function of its module, or
    of ``MODULE:`` before it.
    ``actions``: commands under it, in place of words; if ``first``, the first of them runs where none is named.
    ``in_file``: words that only its file has; a command with a file takes its words from the environment too."""

    does: str
    needs: str | Mapping[str, str] = ""
    examples: tuple[str, ...] = ()
    run: str = "run"
    actions: Mapping[str, Command] = field(default_factory=dict)
    first: bool = False
    in_file: str = ""

    def groups(self) -> Mapping[str, str]:
        """The words by the title of their group; "" has no title."""
        return {"": self.needs} if isinstance(self.needs, str) else self.needs


COMMANDS: Mapping[str, Command] = {
    "demo": Command(
        "show an answer piece by piece; with names, whole sample outputs",
        "FORMATS* all speed color",
        ("chatparsers demo", "chatparsers demo qwen3-coder gpt-oss --speed 20"),
    ),
    "parse": Command(
        "parse a model's raw output into a message, printed as JSON",
        f"ANSWER?=- {_READER} ids stream pieces why show timeline strict reasoning jsonl field "
        "form:json,openai,html out color .page",
        (
            "chatparsers parse answer.txt --model qwen3 --show",
            "llama-cli … | chatparsers parse --model model/ --tools tools.json --as openai",
        ),
    ),
    "explain": Command(
        "say why an answer was not read as a call, and what to do (exit 1: a cause)",
        f"ANSWER?=- {_READER} ids form:text,json out",
        (
            "chatparsers explain answer.txt --model model/ --tools tools.json",
            "chatparsers explain answer.txt --model qwen3 --tools tools.json --prefix '<think>' --as json",
        ),
    ),
    "batch": Command(
        "parse, render, encode, normalize or translate whole files of rows",
        examples=(
            "chatparsers batch parse outputs.jsonl --model qwen3 --out parsed/",
            "chatparsers batch encode chats.parquet --model model/ --max-length 4096 --out samples/",
        ),
        actions={
            "parse": Command(
                "read the answers in a column into messages",
                f"{_OF_BATCH} model_column model_paths answer_column tools tools_column prefix append "
                f"{_THOUGHTS} {_BATCH}",
            ),
            "render": Command(
                "write the prompt of each conversation",
                f"{_OF_BATCH} messages_column tools tools_column generation_prompt {_THOUGHTS} {_BATCH}",
            ),
            "encode": Command(
                "write the token ids of each conversation, and which of them a loss counts",
                f"{_OF_BATCH} messages_column tools tools_column max_length on_long drop_empty as_sampled "
                f"{_THOUGHTS} {_BATCH}",
            ),
            "normalize": Command(
                "read rows of any shape into messages", f"ROWS+ parts model {_TEXTS} say_rows {_BATCH}"
            ),
            "translate": Command(
                "read rows of any shape, and write them for another model",
                f"{_OF_BATCH} to! {_TEXTS} encode max_length {_THOUGHTS} {_BATCH}",
            ),
        },
    ),
    "labels": Command(
        "say what a trainer's batch teaches that it should not (exit 1: a charge)",
        "LABELLED+ model! tokenizer beside limit form:text,json out",
        (
            "chatparsers labels batch.jsonl --model model/",
            "chatparsers labels batch.parquet --model model/ --rows chats.jsonl",
        ),
    ),
    "grammar": Command(
        "write the grammar that keeps a model to its format and tools, or check one",
        examples=(
            "chatparsers grammar --model qwen3 --tools tools.json --tool-choice required > calls.gbnf",
            "chatparsers grammar --model model/ --response-format schema.json --dialect lark",
        ),
        actions={
            "write": Command("write the grammar of a request", f"{_READER} dialect form:text,json out info"),
            "check": Command("check a GBNF grammar of your own", "GRAMMAR", run="check"),
        },
        first=True,
    ),
    "render": Command(
        "render a conversation with a model's chat template",
        f"model! messages! tools {_THOUGHTS} no_generation_prompt bos_token eos_token out",
        (
            "chatparsers render --model model/ --messages messages.json --tools tools.json",
            "chatparsers render --model chat.jinja --messages messages.json --thinking off",
        ),
    ),
    "detect": Command(
        "find the format of a chat template (exit 1: no format explains it)",
        "MODEL form:text,json,data out",
        ("chatparsers detect model/", "chatparsers detect chat_template.jinja --as json"),
    ),
    "inspect": Command(
        "print everything that is known about a model's chat format",
        f"MODEL format tokenizer messages tools {_THOUGHTS} diff explain emit_module "
        "form:text,json,data,html out color .page",
        (
            "chatparsers inspect model.gguf",
            "chatparsers inspect model/ --messages messages.json --tools tools.json",
        ),
    ),
    "check": Command(
        "find what is wrong with a model's template, tokenizer, format and grammar",
        f"MODEL* format tokenizer tools only samples fix response_template findings versions {_FORMS} out html",
        ("chatparsers check model/", "chatparsers check models/*/ --as junit --strict"),
    ),
    "report": Command(
        "put all that mends an answer that was read wrongly into one file",
        ".answer GIVEN? model ids format tokenizer tools prefix out",
        (
            "chatparsers report answer.txt --model model/ --tools tools.json --out report.json",
            "chatparsers report ids.json --ids --model model.gguf",
        ),
    ),
    "formats": Command(
        "list the formats, draw one, or judge one of your own",
        examples=(
            "chatparsers formats diagram qwen3 --out qwen3.svg",
            "chatparsers formats check mine.py chat_template.jinja",
        ),
        actions={
            "list": Command(
                "list the formats, including those of plugins",
                "form:text,json,markdown out .DRAWN? .diagram .check",
            ),
            "diagram": Command(
                "draw the railroad diagram of a format, as SVG", "SOURCE out", run="show:show_diagram"
            ),
            "check": Command(
                "judge a format by chat templates of its models, or a document alone (exit 1: it fails)",
                "SOURCE TEMPLATES* writer known form:text,json out",
                run="export:check",
            ),
            "table": Command("exit 1 if the tables of formats in a file are stale", "TABLE", run="table"),
        },
        first=True,
    ),
    "export": Command(
        "write a format as a document of JSON, with samples",
        "MODEL? format schema vectors out",
        (
            "chatparsers export model/ > chat_format.json",
            "chatparsers export qwen3 --vectors 100 --out qwen3.jsonl",
        ),
    ),
    "playground": Command(
        "serve a page on which the package reads outputs in your browser (the first time, it needs Node.js)",
        "folder pyodide dir port=8001",
        ("chatparsers playground", "chatparsers playground --out site/"),
    ),
    "serve": Command(
        "serve OpenAI's and Anthropic's chat APIs over an engine that completes text",
        {
            "a file": "config check_config print_config",
            "the engine": f"URL? kind:{_KINDS} upstream_model upstream_key gguf context gpu_layers threads no_grammar "
            "trust_ids pass_on",
            "the model": f"model tokenizer format name {_THOUGHTS} template_kwargs pin_template_kwargs",
            "who may ask, and where": "host port api_key api_key_file seal_key_file allowed_hosts cors tls_cert "
            "tls_key log spans",
            "what a request may cost": "max_tokens max_body max_tools max_images max_schemas max_prompt max_cpu "
            "concurrency=1024 fetch_images drop_unsupported strict_fields strict_tools lenient_calls loops cache_watch",
            "what is kept": "store store_entries store_size store_age",
            "rollouts": "rollouts rollouts_name history ignore sessions session_answers session_ids session_lines "
            "rollouts_size session_idle",
            "times": "stall body_timeout keep_alive slow_client wait drain",
        },
        (
            "chatparsers serve --gguf model.gguf",
            "chatparsers serve http://127.0.0.1:8080 --kind vllm --model model/ --port 9000",
            "chatparsers serve --config gateway.toml",
        ),
        in_file="upstreams draining aliases secret secret_file granted requests_per_minute tokens_per_day "
        "at_once admin",
    ),
    "rollouts": Command(
        "say what serve --rollouts recorded, or write its samples",
        examples=(
            "chatparsers rollouts runs/",
            "chatparsers rollouts samples runs/ --model model/ --out rows.jsonl",
        ),
        actions={
            "list": Command(
                "say what was recorded",
                "RECORDED SESSION? group form:text,json out .samples_out .model .tokenizer .format .twins",
            ),
            "samples": Command(
                "write the rows to train on",
                "RECORDED SESSION? group model! tokenizer format twins lines_out",
                run="samples",
            ),
        },
        first=True,
    ),
    "verify": Command(
        "ask a chat server, and say what in its answers is wrong for a model",
        {
            "": "URL? model! tokenizer format",
            "what is asked": "api kind:auto,llama-server,vllm,sglang,chatparsers,ollama,other served_name probes "
            "replay judge against dictate black_box shrink extra times seed",
            "how much is asked": "requests tokens answer_tokens concurrency timeout key key_file plan",
            "reports": f".json {_FORMS} out html record show_texts likely",
        },
        (
            "chatparsers verify http://127.0.0.1:8080 --model model/",
            "chatparsers verify http://127.0.0.1:8080 --model model/ --api all --html report.html",
        ),
    ),
}
"""The commands by their names, in the order of ``--help``."""
