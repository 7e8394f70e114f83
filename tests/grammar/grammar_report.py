"""One report of the grammar tests, after the run: what the engines took, the schemas' score, what was generated.

The tests record their counts. This is a pytest plugin, so the process that collects from all workers prints the report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

_PROPERTY = "grammar"


def record(request: pytest.FixtureRequest, kind: str, **counted: Any) -> None:
    """Keeps a test's counts. ``kind`` is ``compiled``, ``compared``, ``schemas``, ``tools' schemas``,
    ``read``, ``generated``, ``sampled``, ``rest`` or ``llama``."""
    plain = {name: dict(value) if isinstance(value, Counter) else value for name, value in counted.items()}
    request.node.user_properties.append((_PROPERTY, {"kind": kind, **plain}))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    records = [
        value
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
        if getattr(report, "when", "") == "call"
        for name, value in getattr(report, "user_properties", ())
        if name == _PROPERTY
    ]
    sections = {
        "grammars: format × mode": matrix,
        "schemas": schemas,
        "tools' schemas": tools,
        "read and in the grammar": read,
        "generated": generated,
        "sampled by ids": sampled,
        "the rest after a cut": rest,
        "llama.cpp's grammar code": llama,
    }
    for title, lines in sections.items():
        found = list(lines(records))
        if found:
            terminalreporter.section(title)
            for line in found:
                terminalreporter.write_line(line)


def of(records: Iterable[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    """The records of one kind."""
    return [record for record in records if record["kind"] == kind]


def matrix(records: list[Mapping[str, Any]]) -> Iterator[str]:
    """How many grammars each engine compiled of each format in each mode, and how many texts they agreed on."""
    compiled, compared = of(records, "compiled"), of(records, "compared")
    if not compiled:
        return
    modes = list(dict.fromkeys(record["mode"] for record in compiled))
    cells: Counter[tuple[str, str]] = Counter()
    for record in compiled:
        cells[record["format"], record["mode"]] += record["taken"]
    yield f"{'grammars compiled':20}" + "".join(f"  {mode}" for mode in modes)
    for name in sorted({record["format"] for record in compiled}):
        yield f"{name:20}" + "".join(f"  {cells[name, mode] or '-':>{len(mode)}}" for mode in modes)
    taken: Counter[str] = Counter()
    for record in compiled:
        taken.update(record["engines"])
    refused = sum(record["refused"] for record in compiled)
    by_engine = ", ".join(f"{engine} {count}" for engine, count in sorted(taken.items()))
    yield f"compiled: {by_engine}; refused: {refused}"
    texts, accepted, different = (
        sum(record.get(what, 0) for record in compared) for what in ("texts", "accepted", "different")
    )
    yield f"compared in all dialects: {texts} texts, {accepted} of them accepted; engines differ on {different}"


def schemas(records: list[Mapping[str, Any]]) -> Iterator[str]:
    """The score by keyword, the suites side by side."""
    found = sorted(of(records, "schemas"), key=lambda record: record["suite"])
    if not found:
        return
    yield f"{'right + weakened':28}" + "".join(f"{record['suite']:>30}" for record in found)
    for keyword in sorted({keyword for record in found for keyword in (*record["right"], *record["weak"])}):
        counts = [(record["right"].get(keyword, 0), record["weak"].get(keyword, 0)) for record in found]
        yield f"{keyword:28}" + "".join(
            f"{f'{right} + {weak}' if right or weak else '':>30}" for right, weak in counts
        )
    totals = [(sum(r["right"].values()), sum(r["weak"].values()), r["wrong"], r["other"]) for r in found]
    yield f"{'all':28}" + "".join(f"{f'{right} + {weak}':>30}" for right, weak, _, _ in totals)
    yield f"{'wrong':28}" + "".join(f"{wrong:>30}" for _, _, wrong, _ in totals)
    yield f"{'narrower on purpose':28}" + "".join(f"{other:>30}" for _, _, _, other in totals)


def sampled(records: list[Mapping[str, Any]]) -> Iterator[str]:
    """How the runs of the toy model ended, by format, dialect and mode: samples, complete, invalid, refused tokens."""
    found = of(records, "sampled")
    modes = list(dict.fromkeys(mode for record in found for mode in record["table"]))
    totals: dict[str, Counter[str]] = {}
    cells: dict[tuple[str, str, str], Counter[str]] = {}
    for record in found:
        for mode, counts in record["table"].items():
            cells.setdefault((record["format"], record["dialect"], mode), Counter()).update(counts)
            totals.setdefault(record["dialect"], Counter()).update(counts)
    if not found:
        return

    def cell(counts: Counter[str]) -> str:
        runs = counts.total() - counts["invalid"]
        if not runs:
            return "-"
        return f"{runs} {counts['ended'] - counts['invalid']} {counts['invalid']} {counts['refused']}"

    yield "each cell: samples, complete, invalid, refused tokens"
    yield f"{'':20}{'':16}" + "".join(f"{mode:>16}" for mode in modes)
    for name, dialect in sorted({(record["format"], record["dialect"]) for record in found}):
        row = (cell(cells.get((name, dialect, mode), Counter())) for mode in modes)
        yield f"{name:20}{dialect:16}" + "".join(f"{text:>16}" for text in row)
    for dialect, counts in sorted(totals.items()):
        ends = ", ".join(f"{counts[end]} {end}" for end in ("ended", "cut", "stuck", "refused", "invalid"))
        yield f"{dialect:16} {counts.total() - counts['invalid']} samples: {ends}"


def rest(records: list[Mapping[str, Any]]) -> Iterator[str]:
    """At how many cuts the grammar of the rest was that of the whole, with how many texts after them."""
    found = of(records, "rest")
    for choice in dict.fromkeys(record["choice"] for record in found):
        of_it = [record for record in found if record["choice"] == choice]
        cuts, texts = (sum(record[what] for record in of_it) for what in ("cuts", "texts"))
        formats = sum(record["cuts"] > 0 for record in of_it)
        yield f"{choice:16}{formats:>4} formats{cuts:>7} cuts{texts:>8} texts"


def read(records: list[Mapping[str, Any]]) -> Iterator[str]:
    """How many texts that the parser reads are in the grammar of their request, and the kinds of the others."""
    counts: dict[str, Counter[str]] = {}
    for record in of(records, "read"):
        for (asked, kind), count in record["counted"]:
            counts.setdefault(asked, Counter())[kind] += count
    for asked, kinds in counts.items():
        others = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common() if kind != "whole")
        yield f"{asked}: {kinds['whole']} of {kinds.total()}; narrower: {others or 'none'}"


def tools(records: list[Mapping[str, Any]]) -> Iterator[str]:
    """Our grammars of tools' schemas beside the engines' own compilers."""
    for found in of(records, "tools' schemas"):
        columns = ("valid refused", "invalid accepted", "silent", "not compiled")
        yield f"{found['schemas']} schemas, {found['instances']} values" + "".join(
            f"{name:>18}" for name in columns
        )
        for who, counts in found["table"].items():
            # Only ours says where it is wider than the schema.
            cells = ("-" if name == "silent" and who != "ours" else counts.get(name, 0) for name in columns)
            yield f"{who:26}" + "".join(f"{cell:>18}" for cell in cells)


def generated(records: list[Mapping[str, Any]]) -> Iterator[str]:
    """How many texts were generated, and how many of them were not read back."""
    found = of(records, "generated")
    if found:
        walks, unparsed, invalid = (sum(r[what] for r in found) for what in ("walks", "unparsed", "invalid"))
        least = min(record["walks"] for record in found)
        yield (
            f"{walks} texts of {len(found)} formats, at least {least} of each: "
            f"{unparsed} failed to parse, {invalid} failed to validate"
        )


def llama(records: list[Mapping[str, Any]]) -> Iterator[str]:
    """How many grammars llama.cpp read, and how many texts it took and refused as xgrammar did."""
    found = of(records, "llama")
    if found:
        read, texts, accepted = (sum(r.get(what, 0) for r in found) for what in ("read", "texts", "accepted"))
        stacks = max(record.get("stacks", 0) for record in found)
        yield (
            f"{read} grammars read; {texts} texts compared with xgrammar, {accepted} of them accepted; "
            f"at most {stacks} stacks"
        )
