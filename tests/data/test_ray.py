"""Ray: the callables in ``map_batches`` on two workers of which one is killed, and the batch with Ray's own readers.

It starts a cluster, which takes a minute: only with ``--nightly``.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tables import TOOLS, Draw

import chatparsers
from chatparsers.cli.main import main

pa = pytest.importorskip("pyarrow", reason="the package pyarrow is not installed")
ray = pytest.importorskip("ray", reason="the package ray is not installed")

import pyarrow.parquet  # noqa: F401
import ray.data  # noqa: F811

from chatparsers.data import Normalize, Parse

FORMAT = "hermes-2-pro"
ROOT = Path(chatparsers.__file__).parents[1]

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray warns of the machine it runs on


class Dying:
    """A callable whose process is killed once, in the middle of its work."""

    def __init__(self, run: Any, row: str, mark: Path) -> None:
        self.run, self.row, self.mark = run, row, mark

    def __call__(self, table: Any) -> Any:
        made = self.run(table)
        if self.row in made["row_id"].to_pylist() and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return made


@pytest.fixture(scope="module")
def cluster(pytestconfig: pytest.Config) -> Iterator[None]:
    """A head without CPUs, and two nodes with one CPU each."""
    if not pytestconfig.getoption("--nightly"):
        pytest.skip("a cluster takes a minute to start: --nightly")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(Path(__file__).parent)]))
        patch.setenv("RAY_agent_register_timeout_ms", "180000")
        patch.setenv("RAY_raylet_start_wait_time_s", "120")
        memory = 2**28
        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": memory}
        found = Cluster(initialize_head=True, head_node_args=head)
        for _ in range(2):
            found.add_node(num_cpus=1, object_store_memory=memory)
        ray.init(address=found.address, log_to_driver=False)
        try:
            yield
        finally:
            ray.shutdown()
            found.shutdown()


def rows(draw: Draw, count: int) -> Any:
    format = chatparsers.get_format(FORMAT)
    texts = []
    for _ in range(count):
        message = draw.answer()
        message.pop("reasoning_content", None)
        texts.append(format.render(message, TOOLS))
    return pa.table(
        {
            "row_id": [str(number) for number in range(count)],
            "output": texts,
            "tools": [json.dumps(TOOLS)] * count,
        }
    )


def by_id(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {row["row_id"]: row for row in found}


def read(folder: Path) -> list[dict[str, Any]]:
    return [row for path in folder.rglob("*.parquet") for row in pa.parquet.read_table(path).to_pylist()]


@pytest.mark.usefixtures("cluster")
def test_a_worker_that_is_killed_changes_nothing(tmp_path: Path, draw: Draw) -> None:
    table, source = rows(draw, 800), tmp_path / "rows"
    source.mkdir()
    for start in range(0, 800, 200):
        pa.parquet.write_table(table.slice(start, 200), source / f"{start}.parquet")
    run = Dying(Parse(FORMAT), "333", tmp_path / "killed")
    made = ray.data.read_parquet(str(source)).map_batches(run, batch_format="pyarrow", batch_size=64)
    made.write_parquet(str(tmp_path / "out"))
    assert (tmp_path / "killed").exists()
    found = read(tmp_path / "out")
    assert len(found) == 800 and by_id(found) == by_id(Parse(FORMAT)(table).to_pylist())


@pytest.mark.usefixtures("cluster")
def test_the_batch_on_ray_gives_the_rows_of_the_local_one(
    tmp_path: Path, draw: Draw, capsys: pytest.CaptureFixture[str]
) -> None:
    table, path = rows(draw, 60), tmp_path / "rows.jsonl"
    lines = [json.dumps(row) for row in table.to_pylist()]
    path.write_text("\n".join([*lines[:7], "not json", "", *lines[7:]]) + "\n", encoding="utf-8")
    found = []
    for engine in ("local", "ray"):
        out = tmp_path / engine
        arguments = ["batch", "parse", path, "--model", FORMAT, "--out", out, "--engine", engine, "--json"]
        assert main([*map(str, arguments), "--workers", "1"]) == 0
        summary = json.loads(capsys.readouterr().out)
        found.append(
            (by_id(read(out)), {name: summary[name] for name in ("rows", "errors", "calls", "codes")})
        )
        assert len((out / "errors.jsonl").read_text().splitlines()) == 1
    assert found[0] == found[1]
    parquet = tmp_path / "rows.parquet"
    turns = [[{"role": "assistant", "content": text}] for text in table["output"].to_pylist()]
    talks = pa.table({"row_id": table["row_id"], "messages": turns, "tools": table["tools"]})
    pa.parquet.write_table(talks, parquet)
    out = tmp_path / "normal"
    assert main(["batch", "normalize", str(parquet), "--engine", "ray", "--out", str(out)]) == 0
    assert by_id(read(out)) == by_id(Normalize().fit(talks)(talks).to_pylist())
