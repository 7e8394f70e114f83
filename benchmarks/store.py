"""Measures the store: CPU time and turns of what a gateway does for each response.

    python benchmarks/store.py FOLDER|memory|postgresql://… [--rows N] [--size CHARACTERS]

The rows a second are of one core that does nothing else: the CPU time of this process. What a server of PostgreSQL
needs besides is not in it; how long one waits for it and for the disk, the last column says.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import perf_counter, process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this checkout, installed or not

from chatparsers.gateway.store import ResponseIds, Store, StoredResponse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("where")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--size", type=int, default=4000)
    arguments = parser.parse_args()
    rows: int = arguments.rows
    text, ids = "x" * arguments.size, [*range(1000)]

    def keep(number: int) -> None:
        output = [{"id": f"m{number}", "type": "message", "text": text}]
        response = {"id": f"r{number}", "status": "completed", "output": output}
        parent = f"r{number - 1}" if number % 10 else None
        store.keep("", StoredResponse(f"r{number}", response, [], parent), ResponseIds("d", ids, ids))

    def go_on(number: int) -> None:
        assert store.chain("", f"r{number}", 10**7) and store.held("", f"r{number}")

    def read(number: int) -> None:
        assert store.response("", f"r{number}")

    steps: list[tuple[str, Callable[[int], None]]] = [("keep", keep), ("read", read), ("go on from", go_on)]
    with closing(Store(arguments.where, entries=10**9, size=10**12)) as store:
        print("| what | rows a second of CPU | rows a second, waiting too |\n|---|---:|---:|")
        for name, step in steps:
            began, spent = perf_counter(), process_time()
            for number in range(rows):
                step(number)
            spent, waited = process_time() - spent, perf_counter() - began
            print(f"| {name} | {rows / spent:,.0f} | {rows / waited:,.0f} |")
    began = perf_counter()
    Store(arguments.where).close()
    print(f"opened again in {perf_counter() - began:.2f} s")


if __name__ == "__main__":
    main()
