"""The vocabulary of the command line: each word is a flag, or an argument without one, with one meaning everywhere.

`commands` says which command needs which words. A line of the table has a word's key, its flag where that is another
than ``--key``, its kind of value (none for a switch), ``= default``, and its text; a word without a text is of before,
and no help shows it. Under ``was`` stand the flags that a word had before, accepted in silence until 1.0
(``--json=json``: a switch that meant a value); under ``like``, what people type for it, which is guessed. Under ``in``
stand its places in the file of ``serve --config``, each ``TABLE`` or ``TABLE.NAME``; without this line it is
``server`` (``-``: none). A name is the key where no other is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

_TABLE = """
answer ANSWER: what the model wrote: a file; - reads stdin
  was --output
  like text file input completion response
model MODEL: a model's folder, a file of it, a .gguf or .jinja file; or, where no prompt is written, a format's name
  in models.files
  was --template
  like checkpoint hf model-path model-dir gguf-file tokenizer-config chat-template jinja name
format NAME: this format (`chatparsers formats` lists them), document (FILE.json) or module (FILE.py), in place of the
    detected one
  in models
  like parser dialect-name chat-format
tool_call_parser NAME: in place of --format: the name in vLLM, SGLang or mlx-lm
  like tool-parser
reasoning_parser NAME: that of its other option, if it has one
tokenizer FILE: its tokenizer.json, if it is elsewhere (or the folder or .gguf file that has it)
  in models
  like vocab tok
bos_token TEXT: the text of the template's bos_token
eos_token TEXT: the text of the template's eos_token
tools FILE: a JSON file with the list of tools, OpenAI-shaped (or an object with it under 'tools'); - reads stdin
  like functions tool
messages FILE: a JSON file with the list of messages (or an object with it under 'messages'); - reads stdin
  like conversation chat prompt input
prefix TEXT: what the prompt already wrote of the answer, such as <think>
  like prompt-end generation-prefix
thinking {on,off,adaptive}: whether it thinks (else: as the template has it)
  in server models
  like think reasoning-mode enable-thinking no-thinking
effort WORD: none, minimal, low, medium, high, xhigh or max: the nearest it has
  in server models
  like reasoning-effort
tool_choice CHOICE = auto: auto, none, required or a tool's name (%(default)s)
no_parallel: at most one call in the turn
  like no-parallel-tool-calls
lenient_calls: also read a whole answer as calls that is JSON in a fence, in tags or bare
  in server models
response_format FILE: a JSON file with response_format or a JSON Schema, or a .gbnf or .lark grammar
  like schema json-schema
ids: ANSWER is token ids: JSON, or numbers between white space
  like token-ids tokens
given --answer ANSWER: what the model wrote: a file; - reads stdin
out --out FILE = -: write there, whole or not at all; - is stdout, the default
  was -o
  like output output-file save write output-dir
form --as {}: how it is written (%(default)s)
  was --json=json --openai=openai --format-output --markdown=markdown --data=data --emit
  like format-output output-format report-format text
color {auto,always,never} = auto: auto: on a terminal, without NO_COLOR
  was --plain=never
  like colour no-color no-colour
strict: fail at the first text that is not in the format
findings --strict: notes count too: exit 1 for any
  like fail
likely --strict: what is likely counts too: exit 1 for it
  like fail
html FILE: write the report as a page as well
page --html FILE:

formats FORMAT: the sample outputs of these formats
  was --format
  like model
all: those of all formats that have one
speed RATE: pieces a second; 0: no delay (70 on a terminal)

stream: print events as JSON lines, the message last
pieces N: feed N characters (or ids) at a time
  like chunk chunk-size
why: say why nothing was called in place of the message (see explain)
show: draw the text with the kind of each part
timeline: draw what came out of each piece, and what is held
reasoning {split,inline} = split: inline: leave it in the content (%(default)s)
jsonl: each line of ANSWER is one, in JSON, as in a file *.jsonl: print a message for each
  like lines
field NAME = output: for lines that are objects: what holds the answer (%(default)s)

dialect {gbnf,lark,structural_tag} = gbnf: the language of the grammar (%(default)s)
  like syntax grammar-type
info: say lazy, triggers and weakened as JSON on stderr
grammar FILE: the grammar; - reads stdin
  like file
no_generation_prompt: end after the last message
diff MODEL: print how this model or template differs (exit 1: it does)
  like compare
explain: print what an analysis of the template asks, sees and concludes
emit_module FILE: write the format that the analysis finds as the source of a module

only CHECK…: only this check; may be repeated
  like check
samples N0 = 0: sample N answers under the grammar in each installed engine (%(default)s)
  like n num-samples repeat
fix DIR: write corrected copies, as far as the checks prove them, with a diff
  like mend repair
response_template {servers,transformers}: with --fix: also a response_template for vLLM and SGLang, or for
    transformers, proved on the turns
source FORMAT: a format's name, its document (FILE.json), or a module (FILE.py)
  was --format
templates TEMPLATE: chat templates of its models, which judge it
  was --template
versions --templates DIR: histories of templates: DIR/MODEL/VERSION.jinja, or a JSON file {model: [versions]}
writer --model MODEL: the model that is said to write a document
known FILE: differences that are accepted, as `exam` takes them
table FILE: a file with the tables of formats
schema: write the JSON Schema of documents instead
vectors N: write at most N texts with their events and messages instead, as JSON lines: to judge another reader
drawn FORMAT:
diagram FILE:
check FILE:

folder --out DIR: only build the static folder there; any server can serve it
  was --build
pyodide DIR: the npm package pyodide, unpacked (else npm fetches it)
dir DIR: serve this folder, which --out made
  like folder
port N = 8000: where to listen (%(default)s)

rows INPUT: JSON lines (also .gz, .zst), Parquet or Arrow files, patterns, folders; - reads lines from stdin
  like input data file
labelled BATCH: what a trainer made: input_ids, and labels or a mask (JSON lines, Parquet or Arrow)
  like input data file dataset
beside --rows INPUT: the rows that it was made from: messages, and tools if there are any
  like messages dataset source
parts --out DIR: the folder of the parts; - writes JSON lines to stdout
  like output-dir out-dir o
answer_column COLUMN = output: what the model wrote: text or ids (%(default)s)
  was --output
model_column COLUMN: the column that names each row's format
model_paths: open the model files that --model-column names too
messages_column COLUMN = messages: the conversations (%(default)s)
  was --messages
shaped_column --messages-column COLUMN: the conversations (as the shape has it)
  was --messages
tools_column COLUMN: each row's own tools (tools)
  was --tools
text_column COLUMN: texts that are rendered prompts of --model
  was --text
row_id COLUMN = row_id: the rows' names (%(default)s)
append COLUMN: put each answer at the end of these messages, so that encode reads them
to MODEL: the model to write for
  like target
encode: write samples instead of text
shape NAME = auto: the shape of the rows (%(default)s)
wire NAME = auto: the format of their texts (%(default)s)
say_rows --explain: say what the rows are, write nothing
generation_prompt: end where an answer begins
max_length N: at most N ids a row
  like max-len max-seq-len max-tokens
on_long {cut,cut-left,drop,error}: what becomes of longer rows (cut: their beginning is kept)
drop_empty: leave out rows of which no id counts
as_sampled: each answer counts, after the prompt that asked for it: one row or several
workers N: processes (else one a core)
  like processes num-proc jobs
runner {local,ray} = local: what runs the work (%(default)s)
  was --engine
address A: of a Ray cluster (else this machine alone)
limit N: only the first N rows
lines N = 10000: lines a part (%(default)s)
resume: go on where a batch was stopped
  like continue

recorded DIR: the folder of serve --rollouts
session SESSION: only this session
group NAME: only sessions of this group
lines_out --out FILE = -: write the rows there: .arrow, else JSON lines; - is stdout, the default
  was --samples
twins {keep,context,drop} = context: answers that nobody took: count them, show them as context, or not at all
    (%(default)s)
samples_out --samples FILE:

url URL: the server, such as http://127.0.0.1:8080
  in models.upstream
  was --upstream
  like base-url endpoint server api-base host
kind {}: what runs there (%(default)s)
  in models
  was --upstream-kind --engine
  like backend
upstream_model NAME: the engine's own name for the model
  in models
upstream_key KEY: the engine's key ($CHATPARSERS_UPSTREAM_KEY)
  in models
gguf FILE: run this model in the process, with llama-cpp-python; no URL
  in models
context N = 8192: for --gguf: tokens (%(default)s)
  in models
  like ctx-size n-ctx max-model-len
gpu_layers INT = -1: for --gguf: all, if -1 (%(default)s)
  in models
  like ngl n-gpu-layers
threads N: for --gguf: on the CPU (half of the processors)
  in models
no_grammar: send no grammars
  in server models
trust_ids: go on if the engine's tokenizer gives a text other ids
  in server models
pass_on PATH+: paths of the engine to pass on, such as /v1/embeddings
name NAME: the model's name for clients
  in models
  like served-model-name alias
template_kwargs JSON: variables of the template, for requests that do not give them
  in server models
  like chat-template-kwargs default-chat-template-kwargs
pin_template_kwargs: what is said here of thoughts and variables stands for all requests
  in server models
config FILE: what to serve, in TOML: several models, keys with names; the other flags and the environment go before it
  in -
  like conf settings config-file
check_config FILE: say what is wrong in such a file, and serve nothing (exit 1: something is)
  in -
print_config: write what would be served as such a file, without secrets
  in -
upstreams URL+: several engines of the model, in place of one: a session stays with one of them
  in models
draining URL+: of these, the ones that get no new session
  in models
aliases NAME+: other names of the model
  in models
secret --key KEY: what its clients send, or sha256: and the digest of it
  in keys.key
secret_file --key-file FILE: more of them, one in a line; it may change
  in keys.key_file
granted --models NAME+: the models that it may ask (all)
  in keys.models
requests_per_minute N: requests that it may begin in a minute (any number)
  in keys
tokens_per_day N: tokens of prompts and answers since midnight UTC (any number)
  in keys
at_once --concurrency N: its requests at once (any number)
  in keys.concurrency
admin: it sees the sessions of all keys
  in keys
tls_cert FILE: serve HTTPS with this certificate, and those of its issuers after it
  like ssl-certfile certfile cert
tls_key FILE: its private key
  like ssl-keyfile keyfile
spans: send a span for each request, and for its parts, where OTEL_EXPORTER_OTLP_ENDPOINT says (extra otel)
  like otel tracing
host ADDRESS = 127.0.0.1: where to listen (%(default)s)
api_key KEY: the key that clients must send ($CHATPARSERS_API_KEY)
  like key token
api_key_file FILE: a file with more keys, one in a line; it may change
  like key-file keys
seal_key_file FILE: a key that seals thoughts, so that another gateway opens them
  like seal-key
allowed_hosts NAME+: names of this server, besides addresses and localhost
cors ORIGIN+: pages that may ask, such as https://chat.example; * allows all
  like allowed-origins
log FILE: write a line of JSON for each request, without its texts; - prints them
  like log-file access-log
max_tokens N: for requests that name no limit
  in server models
max_body MB = 16: of a request (%(default)s)
max_tools N = 512: of a request (%(default)s)
max_images N = 64: of a request (%(default)s)
max_schemas N = 500000: characters of tools (%(default)s)
max_prompt N = 2000000: characters of it (%(default)s)
max_cpu S = 10: seconds of CPU to prepare a request (%(default)g)
concurrency N = 2: requests at once (%(default)s)
  like parallel max-num-seqs
fetch_images HOST+: hosts of URLs from which the images of requests are fetched, such as img.example (none)
drop_unsupported: leave images and tools of other servers out of requests, and do not refuse them (coding agents)
  in server models
strict_fields: refuse requests with fields that no API has; without it they are ignored, counted and named once
strict_tools: guide a tool with strict: false by its schema too, and not to any object
  in server models
loops {off,tell,close,stop} = tell: a model that repeats itself: told in the log, its thought closed, or its answer
    ended (%(default)s)
  in server models
cache_watch MB0 = 64: of the last prompts, to say who broke the engine's cache of prompts; 0: none (%(default)s)
store DIR: keep responses and conversations of the Responses API in a file there, which processes share; or: memory,
    or postgresql://…
  in store.path
store_entries N = 100000: kept at once (%(default)s)
  in store.entries
store_size MB = 1024: of all (%(default)s)
  in store.size
store_age DAYS = 30: after which what is not used goes (%(default)g)
  in store.age
rollouts DIR: record each client's session there, by exact ids, for training
  in rollouts.path
rollouts_name HOST: how a router reaches this gateway (10.0.0.5:8000): the store says which one has which session
  in rollouts.name
history {template,exact} = template: what stays where the template drops what was sampled: the template's text, or
    the ids (%(default)s)
  in rollouts
ignore REGEX…: lines of system texts that differ in each request (x-anthropic-billing-header); may be repeated
  in rollouts
sessions N = 100000: sessions at most (%(default)s)
  in rollouts
session_answers N = 10000: answers of a session at most (%(default)s)
  in rollouts
session_ids N = 50000000: ids of a session at most (%(default)s)
  in rollouts
session_lines N = 1000: lines of a session at most (%(default)s)
  in rollouts
rollouts_size MB = 1048576: MB of all logs at most (%(default)s)
  in rollouts.size
session_idle S = 600: seconds without a request after which a session leaves the memory, not the folder (%(default)g)
  in rollouts
stall S = 300: seconds that the engine may be silent (%(default)g)
  in server models
body_timeout S = 30: seconds for a body to arrive (%(default)g)
keep_alive S = 15: seconds of silence before a comment (%(default)g)
slow_client S = 120: seconds that a client may take nothing (%(default)g)
wait S0 = 0: seconds for the engine to start (%(default)g)
drain S0 = 60: seconds for open requests at the end (%(default)g)

api {chat,messages,responses,all} = chat: what is asked (%(default)s)
served_name --name NAME: the server's name for the model (its first one)
  like served-model-name alias
probes A,B: only these requests; --plan lists them
  like only
replay FILE…: ask the requests in these lines instead; may be repeated
judge FILE: judge the requests with answers in these lines; nothing is sent
against URL: ask this server too, and compare the two
  like compare
dictate: feed the server's parser with texts, where it can be fed alone
black_box: do not ask for the raw text
shrink: find the smallest request for each fault (24 more for each)
extra JSON: fields for every request
  like extra-body
times --samples N = 1: ask so often (%(default)s)
  like n num-samples repeat
seed INT = 0: of the first sample (%(default)s)
requests N: stop there (60 for each API and sample)
tokens N: stop there (40000 for each API and sample)
answer_tokens N = 200: of one answer (%(default)s)
  like max-tokens
timeout S = 300: seconds of silence (%(default)g)
key KEY: the server's key ($CHATPARSERS_VERIFY_KEY)
  like api-key token
key_file FILE: a file with it, which no list of processes shows
  like api-key-file
plan: print what would be asked; send nothing
  like dry-run
json FILE:
record FILE: write requests and answers as lines, for --judge
show_texts: show the texts of replayed requests in reports too
"""


def _number(text: str) -> float:
    found = float(text)
    if not 0 <= found < float("inf"):
        raise ValueError(text)
    return found


def _above_zero(text: str) -> float:
    found = _number(text)
    if not found:
        raise ValueError(text)
    return found


def _at_least_one(text: str) -> int:
    found = int(text)
    if found < 1:
        raise ValueError(text)
    return found


_WHOLE, _COUNT = (int, "a whole number"), (_at_least_one, "a whole number above 0")
_ANY, _SECONDS = (_number, "a number, 0 or more"), (_above_zero, "a number above 0")
TYPES: dict[str, tuple[Callable[[str], Any], str]] = {
    **{"INT": _WHOLE, "N0": _WHOLE, "MB0": _WHOLE, "N": _COUNT, "MB": _COUNT},
    **{"RATE": _ANY, "S0": _ANY, "S": _SECONDS, "DAYS": _SECONDS},
}
"""Kinds of numbers: how one is read, and what it is called in an error. A 0 at the end is not shown."""


@dataclass(frozen=True)
class Word:
    """A line of the table. ``choices``: empty if any value will do. ``many``: ``+`` for several values after the flag,
    ``…`` for a flag that may be repeated. ``was``: flags of before, with the value that each one means, or None.
    ``places``: the tables of a file that it stands in, each with its name there."""

    key: str
    flag: str
    kind: str
    choices: tuple[str, ...]
    many: str
    default: str | None
    says: str
    was: tuple[tuple[str, str | None], ...] = ()
    like: tuple[str, ...] = ()
    places: tuple[tuple[str, str], ...] = ()

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return "CHATPARSERS_" + self.flag.lstrip("-").replace("-", "_").upper()

    @property
    def number(self) -> str:
        """What its kind of number is called; "" if it is no number."""
        return TYPES[self.kind][1] if self.kind in TYPES else ""

    def arguments(self, text: str) -> list[str]:
        """The arguments that mean a text: of a switch ``0``, ``no`` and ``off`` mean none, of several values each
        stands between white space or commas."""
        if not self.kind:
            return [] if text.lower() in ("0", "false", "no", "off") else [self.flag]
        if self.many == "+":
            return [self.flag, *text.replace(",", " ").split()]
        each = text.splitlines() if self.many else [text]
        return [f"{self.flag}={one}" for one in each]

    def with_choices(self, choices: str) -> Word:
        """The word with the choices that a command has of it, the first of them the default."""
        found = tuple(choices.split(","))
        return replace(self, choices=found, default=found[0])


_word = re.compile(
    r"(?P<key>\w+)(?: (?P<flag>--[\w-]+))?(?: (?P<kind>[A-Z][A-Z0,]*|\{[a-z_,-]*\})(?P<many>[+…]?))?"
    r"(?: = (?P<default>\S+))?:(?: (?P<says>.+))?"
)


def _words() -> Iterator[Word]:
    for entry in re.split(r"\n+(?=\w)", _TABLE.strip()):
        first, *more = entry.split("\n  ")
        lines = {"was": "", "like": "", "in": "server"}
        for line in more:
            name, _, rest = line.partition(" ")
            if name in lines:
                lines[name] = rest
            else:
                first += " " + line.strip()
        match = _word.fullmatch(first)
        assert match is not None, first
        key, flag, kind, many, default, says = match.groups()
        choices = kind.strip("{}").split(",") if kind and kind[0] == "{" else []
        pairs = (name.partition("=") for name in lines["was"].split())
        places = (place.partition(".") for place in lines["in"].replace("-", "").split())
        yield Word(
            key,
            flag or "--" + key.replace("_", "-"),
            kind or "",
            tuple(filter(None, choices)),
            many or "",
            default,
            says or "",
            tuple((name, value or None) for name, _, value in pairs),
            tuple(lines["like"].split()),
            tuple((table, other or key) for table, _, other in places),
        )


WORDS = {word.key: word for word in _words()}
"""The words by their keys."""
