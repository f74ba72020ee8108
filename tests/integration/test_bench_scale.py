"""The benchmark of small and large tables, on small ones: it runs from end to end, and every server draws every map."""
import math

import benches


def test_small_run(tmp_path):
    found = benches.run("scale", tmp_path, "--rows", "300,3000", "--zooms", "1,64", "--rounds", "1")
    servers = ["ours"] + ["MapServer"] * ("MapServer" not in found["missing"]) + ["ours, overviews"] * ("ours, overviews" not in found["missing"])
    assert {(r["rows"], r["zoom"], r["who"]) for r in found["records"]} == {(rows, zoom, who) for rows in (300, 3000) for zoom in (1, 64) for who in servers}
    for record in found["records"]:
        assert record["errors"] == 0 and record["image"] > 500 and all(math.isfinite(record[key]) for key in ("server", "database", "first")), record
    counts = {entry["rows"]: list(entry["features"].values()) for entry in found["tables"]}
    assert counts[300][0] > 250 and counts[3000][0] > 2500 and counts[3000][1] < counts[3000][0] / 10
    sizes = {entry["rows"]: entry["size"] for entry in found["tables"]}
    assert 0 < sizes[300] < sizes[3000]
    assert len(found["overviews"]) == (2 if "ours, overviews" in servers else 0)
    text = (tmp_path / "scale.md").read_text()
    assert "| zoom | 300 rows | 3,000 rows | most / least rows |" in text and "Missing here: " in text
    assert (tmp_path / "scale.svg").stat().st_size > 5000 and (tmp_path / "scale.png").exists()
