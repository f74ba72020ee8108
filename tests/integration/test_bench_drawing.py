"""The benchmarks of drawn maps, on little data: they run from end to end, and every server draws every map."""
import csv
import math
import random
import subprocess

import benches
from osgeo import ogr, osr

MERCATOR = 20037508.342789244


def run(name, data, results, *options):
    return benches.run(name, results, "--data", data, *options)["records"]


def test_postgis(tmp_path, shared_folder):
    records = run("postgis", shared_folder / "postgis", tmp_path / "results", "--sets", "villages", "--zooms", "16", "--threads", "1,2", "--maps", "4")
    assert {r["who"] for r in records} >= {"ours binary", "ours hex", "ours twkb", "ours shapefile", "MapServer postgis", "MapServer shapefile"}
    for record in records:
        assert record["maps"] == 4 * record["threads"] and record["errors"] == 0, record
        assert record["mean"] > 0 and record["cpu"] > 0 and record["image"] > 1000
    sent = {r["who"]: r["sent"] for r in records if r["threads"] == 2}
    assert sent["ours shapefile"] is None and sent["ours hex"] > 1.5 * sent["ours binary"] > 3 * sent["ours twkb"] > 0
    text = (tmp_path / "results" / "postgis.md").read_text()
    assert "| MapServer shapefile |" in text and "## Aims" in text
    assert (tmp_path / "results" / "villages-cpu.svg").exists() and (tmp_path / "results" / "villages-times.png").exists()


def layer(folder, name, kind, fields, features):
    """A shapefile in Mercator, with its quadtree: features are (WKT, values)."""
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(3857)
    source = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / f"{name}.shp"))
    made = source.CreateLayer(name, srs, kind)
    for field, of in fields:
        made.CreateField(ogr.FieldDefn(field, of))
    for wkt, values in features:
        feature = ogr.Feature(made.GetLayerDefn())
        feature.SetGeometry(ogr.CreateGeometryFromWkt(wkt))
        for field, value in values.items():
            feature.SetField(field, value)
        made.CreateFeature(feature)
    del made, source
    subprocess.run(["shptree", folder / f"{name}.shp"], check=True, stdout=subprocess.DEVNULL)


def little_world(folder):
    """What the load test otherwise fetches: squares for land, 60 towns, roads between them."""
    (folder / "source").mkdir(parents=True)
    numbers = random.Random(3)
    towns = [(numbers.uniform(-170, 170), numbers.uniform(-70, 70), f"Town {i}", int(10 ** numbers.uniform(3, 6.5))) for i in range(60)]
    with open(folder / "source" / "towns.csv", "w", newline="") as file:
        csv.writer(file).writerows([("lon", "lat", "name", "pop"), *towns])
    places = [(math.radians(lon) * 6378137, math.asinh(math.tan(math.radians(lat))) * 6378137, name, people) for lon, lat, name, people in towns]
    square = [(f"POLYGON(({x} {y},{x + s} {y},{x + s} {y + s},{x} {y + s},{x} {y}))", {}) for x, y, _, _ in places for s in [2e5]]
    for name in ("land", "countries", "counties"):
        layer(folder, name, ogr.wkbPolygon, [("id", ogr.OFTInteger)], square)
    layer(folder, "roads", ogr.wkbLineString, [("class", ogr.OFTInteger)],
          [(f"LINESTRING({a[0]} {a[1]},{b[0]} {b[1]})", {"class": i % 3 + 1}) for i, (a, b) in enumerate(zip(places, places[1:]))])
    layer(folder, "towns", ogr.wkbPoint, [("name", ogr.OFTString), ("pop", ogr.OFTInteger)],
          [(f"POINT({x} {y})", {"name": name, "pop": people}) for x, y, name, people in places])


def test_load(tmp_path, shared_folder):
    little_world(shared_folder / "load")
    records = run("load", shared_folder / "load", tmp_path / "results", "--modes", "unpaced", "--requests", "100")
    assert [r["who"] for r in records] == ["ours module", "ours FastCGI", "ours CGI", "MapServer mod_fcgid", "MapServer FastCGI", "MapServer CGI"]
    for record in records:
        assert record["requests"] == 100 and record["errors"] == 0, record
        assert record["cpu"] > 0 and record["p99"] >= record["p50"] > 0 and record["memory"] > 1
        assert record["time"]["memory"] and record["time"]["waiting"]
    assert "| ours CGI |" in (tmp_path / "results" / "load.md").read_text()
    assert (tmp_path / "results" / "time-unpaced.svg").exists()
