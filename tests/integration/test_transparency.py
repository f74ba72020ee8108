"""What is seen where nothing is drawn, as docs/configuration.md says of <background>: in tiles, in maps that are put together
of tiles, and in maps that are drawn whole."""
import io
import json
import subprocess

import pytest
from conftest import GRID
from patience import patience
from PIL import Image

CLEAR, BLACK, WHITE, GREEN, RED = (0, 0, 0, 0), (0, 0, 0, 255), (255, 255, 255, 255), (0, 255, 0, 255), (255, 0, 0, 255)
MAP = ("?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&SRS=EPSG:3857&BBOX=-15000000,-15000000,15000000,15000000"
       "&WIDTH=100&HEIGHT=100&LAYERS=%s&FORMAT=image/%s")


@pytest.fixture(scope="module")
def webs(shared_folder, shared_apache):
    """(background, how maps are made) -> server"""
    (shared_folder / "square.json").write_text(json.dumps({"type": "Feature", "properties": {}, "geometry": {
        "type": "Polygon", "coordinates": [[[0, 0], [40, 0], [40, 40], [0, 40], [0, 0]]]}}))
    subprocess.run(["ogr2ogr", "-q", "-f", "ESRI Shapefile", shared_folder / "square.shp", shared_folder / "square.json"], check=True,
                   timeout=patience(60))
    aliases = []
    for background in ("none", "red"):
        for mode in ("assemble", "forward"):
            config = shared_folder / f"{background}-{mode}.xml"
            colour = "<background>#ff0000</background>" if background == "red" else ""
            tilesets = "".join(f'<tileset name="{name}"><source>square</source><cache>none</cache><grid>{GRID}</grid>'
                               f"<format>{name}</format></tileset>" for name in ("PNG", "JPEG"))
            config.write_text(f"""<mapcache>
<source name="square" type="shapefile">{colour}<layer name="square"><data>{shared_folder}/square.shp</data></layer></source>
<cache name="none" type="none"/>{tilesets}<service type="gmaps" enabled="true"/>
<service type="wms" enabled="true"><full_wms>{mode}</full_wms><format allow_client_override="true">PNG</format></service></mapcache>""")
            aliases.append(f"MapCacheAlias /{background}/{mode} {config}\n")
    return shared_apache("web", "".join(aliases))


def corner(web, path):
    answer = web.get(path)
    assert answer.status == 200, answer.body[:500]
    with Image.open(io.BytesIO(answer.body)) as image:
        return image.convert("RGBA").getpixel((3, 3))


def is_colour(seen, wanted):
    return all(abs(one - other) <= 3 for one, other in zip(seen, wanted))


@pytest.mark.parametrize("background, name, wanted", [("none", "PNG", CLEAR), ("none", "JPEG", BLACK), ("red", "PNG", RED), ("red", "JPEG", RED)])
def test_tiles(webs, background, name, wanted):
    assert is_colour(corner(webs, f"/{background}/assemble/gmaps/{name}@{GRID}/0/0/0.{name}"), wanted)


MORE = {"": CLEAR, "&TRANSPARENT=TRUE": CLEAR, "&TRANSPARENT=FALSE": WHITE, "&BGCOLOR=0x00ff00": GREEN,
        "&TRANSPARENT=FALSE&BGCOLOR=0x00ff00": GREEN}


@pytest.mark.parametrize("mode", ["assemble", "forward"])
@pytest.mark.parametrize("more, wanted", MORE.items())
def test_maps(webs, mode, more, wanted):
    opaque = WHITE if wanted == CLEAR else wanted  # of a JPEG
    assert is_colour(corner(webs, f"/none/{mode}" + MAP % ("PNG", "png") + more), wanted)
    assert is_colour(corner(webs, f"/none/{mode}" + MAP % ("PNG", "jpeg") + more), opaque)
    of_jpeg_tiles = corner(webs, f"/none/{mode}" + MAP % ("JPEG", "png") + more)
    assert is_colour(of_jpeg_tiles, BLACK if mode == "assemble" else wanted)
    assert is_colour(corner(webs, f"/red/{mode}" + MAP % ("PNG", "png") + more), RED)
