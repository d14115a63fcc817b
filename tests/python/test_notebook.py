"""The notebook of worked examples runs and prints what it shows."""

import contextlib
import io
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "python" / "worked_examples.ipynb"


def test_notebook(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("matplotlib.pyplot")
    matplotlib.use("agg")
    monkeypatch.chdir(ROOT)
    names = {"__name__": "__main__"}
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 10
    for cell in code:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
        shown = "".join(line for o in cell["outputs"] if o["output_type"] == "stream" for line in o["text"])
        assert output.getvalue() == shown, cell["id"]
    matplotlib.pyplot.close("all")
    assert "image/png" in str(cells), "the histogram is stored with the notebook"
