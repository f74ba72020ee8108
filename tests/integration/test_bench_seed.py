"""The benchmarks of seeding and ingest, on little data: they run from end to end, and every program does its part."""
import benches
import pytest
from test_bench_drawing import little_world


def run(name, data, results, *options):
    return benches.run(name, results, "--data", data, *options)


@pytest.fixture(scope="module")
def world(shared_folder):
    folder = shared_folder / "load"
    little_world(folder)
    return folder


def test_seed(tmp_path, world):
    found = run("seed", world, tmp_path, "--metatiles", "3", "--rounds", "2", "--last", "7")
    assert [(r["who"], r["set"]) for r in found["runs"]] == [("ours", "A"), ("renderd", "A"), ("ours", "B"), ("renderd", "B"),
                                                            ("renderd", "A"), ("ours", "A"), ("renderd", "B"), ("ours", "B")]
    assert all(r["rate"] > 0 and r["cpu"] > 0 and r["database"] > 0 for r in found["runs"])
    for who, (count, size) in found["stored"].items():
        assert count == 6, f"{who} stored {count} metatiles of 6"
        assert size > 6 * 64 * 5
    assert all(0 < r["seeded"] and 0 < r["alone"] < 25 for r in found["origin"])
    assert {(r["order"], r["last"]) for r in found["walk"]} == {("drill-down", 7), ("scanline", 7)}
    assert len({r["tiles"] for r in found["walk"]}) == 1
    text = (tmp_path / "seed.md").read_text()
    assert "| renderd | A (benchmark set) |" in text and "## Aims" in text
    assert (tmp_path / "metatiles.svg").exists() and (tmp_path / "metatile-cpu.png").exists()


def test_ingest(tmp_path, shared_folder):
    found = run("ingest", shared_folder / "images", tmp_path, "--images", "3", "--png-images", "1", "--changed-images", "1", "--tiles", "1000", "--rounds", "1")
    assert [r["who"].split(":")[0].split(",")[0] for r in found["cube"]] == ["ours"] * 3 + ["script"] * 3
    assert all(r["seconds"] > 0 and r["size"] > r["before"] and r["logged"] > 0 for r in found["cube"])
    assert [r["measured"] for r in found["cube"]] == [3, 3, 3, 3, 1, 1]
    pyramids = {(r["who"], r["form"]): r for r in found["pyramid"]}
    assert {form for _, form in pyramids} == {"JPEG", "PNG"}
    for form in ("JPEG", "PNG"):
        counts = {r["tiles"] for (who, of), r in pyramids.items() if of == form and who.startswith("ours")}
        assert len(counts) == 1 and 0 <= min(counts) - pyramids["GDAL, MBTiles", form]["tiles"] <= 12  # which stops at a level before the first
        assert {who for who, of in pyramids if of == form and who.startswith("ours")} == {f"ours, {s}" for s in ("sqlite3", "geopackage", "mbtiles", "postgresql")}
    assert {r["who"].split(",")[0] for r in found["writes"]} == {"ours", "bare rows"} and all(rate > 0 for r in found["writes"] for rate in r["rates"])
    text = (tmp_path / "ingest.md").read_text()
    assert "| GDAL, gdal2tiles | PNG |" in text and "1 of 3 images, the rest extrapolated" in text and "## Aims" in text
    assert (tmp_path / "cube.svg").exists() and (tmp_path / "pyramid.png").exists()
