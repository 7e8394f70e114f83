"""A real Jupyter kernel shows pictures of the package's objects."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("ipykernel", reason="no Jupyter kernel: pip install ipykernel nbclient")
nbclient = pytest.importorskip("nbclient", reason="nothing runs notebooks: pip install ipykernel nbclient")
nbformat = pytest.importorskip("nbformat")

OWN = Path(__file__).parents[1] / "templates_own"
CELLS = {
    "turn": "a turn",
    "turn.parse('<think>Hm.</think>Hi <b>you</b>')": "every part",
    "turn.grammar()": "switched on by",
    "chat.detection": "evidence",
    "chat.format": "<svg",
    "chat.template().probe()": "thinking switches",
    "chat.encode([{'role': 'user', 'content': 'Hi'}, {'role': 'assistant', 'content': 'Yes'}])": "not counted",
}
START = f"""
import chatparsers
chat = chatparsers.load({str(OWN / "qwen3.jinja")!r})
tools = [{{"name": "f", "parameters": {{"type": "object"}}}}]
turn = chat.prepare([{{"role": "user", "content": "Hi"}}], tools=tools)
"""


@pytest.mark.filterwarnings("default")  # of Jupyter's own parts
@pytest.mark.nightly
def test_a_kernel_shows_pictures() -> None:
    pytest.importorskip("railroad")
    cells = [nbformat.v4.new_code_cell(source) for source in (START, *CELLS)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    for cell, said in zip(notebook.cells[1:], CELLS.values(), strict=True):
        (output,) = cell.outputs
        assert said in output.data["text/html"] and "<b>" not in output.data["text/html"]
        assert output.data["text/plain"]
