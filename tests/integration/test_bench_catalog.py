"""The catalogue benchmark itself, on its small data: it runs from end to end, and both servers draw the same."""
import benches
from conftest import ROOT


def run(results, *options):
    return benches.run("catalog", results, "--work", ROOT / "build" / "bench", *options)["parts"]


def test_small_run(tmp_path):
    run(tmp_path, "--only", "unfiltered,opened", "--rounds", "2", "--cold-rounds", "1")
    parts = run(tmp_path, "--only", "compare", "--maps", "40", "--cases", "aligned")
    assert set(parts) == {"unfiltered", "opened", "compare"}
    for record in parts["unfiltered"]["records"] + parts["opened"]["records"]:
        assert set(record["servers"]) == {"MapCache", "ours"} and not record["errors"], record
        assert all(figures["p50"] > 0 for figures in record["servers"].values())
    drawn = [entry for entry in parts["compare"]["pixels"] if all(entry["drawn"])]
    assert len(drawn) > 10
    assert not [entry for entry in drawn if entry["figures"]["max"] > 3]
    assert "| ratio |" in (tmp_path / "catalog.md").read_text()
    assert (tmp_path / "unfiltered.svg").exists() and (tmp_path / "unfiltered.png").exists()
