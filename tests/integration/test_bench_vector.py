"""The benchmark of vector tiles, on little data: it runs from end to end, and every server makes every tile. What is not installed is named."""
import math

import benches

SERVERS = {"ours", "ours, overviews", "ours, default budgets", "ours, metatiles 4x4", "ST_AsMVT, the least server"}


def test_small_run(tmp_path, shared_folder):
    found = benches.run("vector", tmp_path, "--data", shared_folder / "postgis", "--sets", "villages", "--levels", "9-9", "--blocks", "1", "--rounds", "1", "--only", "ours,AsMVT")
    made = {r["who"]: r for r in found["records"] if r["state"] == "made"}
    assert set(made) >= SERVERS | {"ours, images"}
    kept = {r["who"] for r in found["records"] if r["state"] == "kept"}
    assert kept >= (SERVERS | {"ours, images"}) - {"ST_AsMVT, the least server"}
    for record in found["records"]:
        assert record["errors"] == 0 and record["tiles"] >= 2 and math.isfinite(record["server"] + record["database"]) and record["bytes"] > 100, record
    contents = {r["who"]: r for r in found["contents"]}
    assert set(contents) == SERVERS
    for content in contents.values():
        assert content["read"] >= 2 and content["features"] > 10 and content["vertices"] > content["features"] and content["examined"] > 10, content
        assert not content["wrong"] and content["invalid"] == 0, content
    assert contents["ours"]["features"] == contents["ours, metatiles 4x4"]["features"]
    assert {"tegola", "pg_tileserv"} <= set(found["missing"])
    text = (tmp_path / "vector.md").read_text()
    assert "Peers that are missing here: " in text and "pg_tileserv" in text and "| villages | ours |" in text
    assert (tmp_path / "vector.svg").exists() and (tmp_path / "image.png").exists()


def test_what_is_wrong_in_a_tile_is_told(monkeypatch):
    monkeypatch.syspath_prepend(benches.ROOT / "benchmarks")
    from vector.parse import examine  # pylint: disable=import-outside-toplevel

    def message(number, data):
        return bytes([number << 3 | 2, len(data)]) + data

    def tile(geometry, kind=3, tags=b""):
        feature = (message(2, tags) if tags else b"") + bytes([3 << 3, kind]) + message(4, bytes(geometry))
        return message(3, message(1, b"town") + message(2, feature) + bytes([15 << 3, 2]))
    right = [9, 0, 0, 26, 20, 0, 0, 20, 19, 0, 15]  # a square of ten, its corners clockwise on the screen
    crossed = [9, 0, 0, 26, 20, 0, 19, 20, 40, 0, 15]  # a bow tie that is larger on one side
    assert examine(tile(right)) == {"features": 1, "vertices": 4, "examined": 1, "invalid": 0, "wrong": None}
    assert examine(tile(crossed))["invalid"] + bool(examine(tile(crossed))["wrong"]) == 1
    for wrong in (tile(right[:-1]), tile(right[:-3]), tile([9, 0, 0, 10, 20, 0, 15]), tile([15]), tile(right, kind=7), tile(right, tags=bytes([0, 0])), b"\x1a\xff", tile(right)[:-1]):
        assert examine(wrong)["wrong"], wrong
