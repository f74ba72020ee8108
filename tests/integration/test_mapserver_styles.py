"""docs/mapserver.md, step by step: MapServer writes the style of a map file, the page's commands mend it, and the map is that of MapServer."""
import io
import os
import re
import subprocess
import textwrap

import numpy
import pytest
from conftest import ROOT, temporary_folder
from mapserver import MAPSERV
from osgeo import ogr, osr
from PIL import Image
from studio import Studio

PAGE = (ROOT / "docs/mapserver.md").read_text()
BOX = (-9500000, 3600000, -8900000, 4000000)


def block(begin):
    """The indented block of the page whose first line begins so."""
    found = re.search(rf"^(    {re.escape(begin)}.*?)(?=^\S|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return textwrap.dedent(found.group(1)).strip() + "\n"


def make_counties(folder):
    reference = osr.SpatialReference()
    reference.ImportFromEPSG(3857)
    data = ogr.GetDriverByName("ESRI Shapefile").CreateDataSource(str(folder / "counties.shp"))
    layer = data.CreateLayer("counties", reference, ogr.wkbPolygon)
    for name in ("name", "state"):
        layer.CreateField(ogr.FieldDefn(name, ogr.OFTString))
    for i in range(12):
        x, y = BOX[0] + i % 4 * 150000, BOX[1] + i // 4 * 133000
        feature = ogr.Feature(layer.GetLayerDefn())
        feature.SetField("name", f"C{i}")
        feature.SetField("state", "Georgia" if i in (1, 5, 6) else "Florida")
        feature.SetGeometry(ogr.CreateGeometryFromWkt(f"POLYGON(({x} {y},{x + 140000} {y},{x + 140000} {y + 120000},{x} {y + 120000},{x} {y}))"))
        layer.CreateFeature(feature)


@pytest.fixture(scope="module")
def site(build, modules_environment):
    with temporary_folder() as folder:
        make_counties(folder)
        font = subprocess.run(["fc-match", "-f", "%{file}", "DejaVu Sans"], capture_output=True, text=True).stdout
        (folder / "fonts.txt").write_text(f"sans {font}\n")
        (folder / "counties.map").write_text(block("MAP"))
        (folder / "mapserver.conf").write_text('CONFIG\n  ENV\n    MS_MAP_PATTERN "."\n  END\nEND\n')
        environment = {**os.environ, "MAPSERVER_CONFIG_FILE": str(folder / "mapserver.conf")}
        for step in ("mapserv -nh", "sed -i"):
            subprocess.run(["bash", "-ec", block(step).replace("mapserv ", MAPSERV + " ")], cwd=folder, env=environment, check=True)
        (folder / "map.xml").write_text(block("<mapcache>").replace("/var/cache/mapcache", str(folder / "cache")))
        yield Studio(folder, build, modules_environment), environment


def query(width, height):
    return (f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&LAYERS=counties&SRS=EPSG:3857&FORMAT=image/png"
            f"&BBOX={','.join(map(str, BOX))}&WIDTH={width}&HEIGHT={height}")


def on_white(data):
    image = Image.open(io.BytesIO(data)).convert("RGBA")
    ground = Image.new("RGBA", image.size, (255, 255, 255, 255))
    ground.alpha_composite(image)
    return numpy.asarray(ground.convert("RGB")).astype(int)


def test_check_finds_nothing(site):
    studio, _ = site
    run = subprocess.run([studio.build / "bin/mapcache", "check", studio.folder / "map.xml"], capture_output=True, text=True, cwd="/",
                         env={**os.environ, **studio.environment})
    assert run.returncode == 0, run.stdout + run.stderr


def both(site, width):
    """The map as we draw it, and as MapServer does."""
    studio, environment = site
    head, body = studio.answer(query(width, width * 2 // 3))
    assert b"image/png" in head, (head, body[:300])
    run = subprocess.run([MAPSERV, "-nh", f"QUERY_STRING=map={studio.folder}/counties.map&{query(width, width * 2 // 3)}"],
                         capture_output=True, env=environment, check=True)
    return on_white(body), on_white(run.stdout)


def test_the_map_is_that_of_mapserver(site):
    """Labels and edges may differ."""
    ours, theirs = both(site, 600)
    assert (abs(ours - theirs).max(axis=2) > 12).mean() < 0.06


@pytest.mark.parametrize("width, shown", [(90, True), (80, False)])
def test_scale_limits_are_where_mapserver_has_them(site, width, shown):
    for image in both(site, width):
        assert (image == (224, 232, 216)).all(axis=2).any() == shown


def test_the_label_is_the_attribute(site):
    studio, _ = site
    assert "<ogc:PropertyName>name</ogc:PropertyName>" in (studio.folder / "counties.sld").read_text()
