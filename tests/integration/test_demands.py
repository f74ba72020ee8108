"""What users of MapCache have reported as broken, each shown not to be so here. Numbers are those of its issues."""
import os
import subprocess
import threading

import mapserver
import numpy
import pytest
from conftest import GRID, fetch
from drop_in import pixels
from lifecycle import box, source, stored, tile, tileset, write
from origin import Origin, pattern
from patience import patience

THREADS = """
StartServers 2
ServerLimit 2
ThreadsPerChild 64
MaxRequestWorkers 128
"""


@pytest.fixture
def origin():
    with Origin() as running:
        yield running


def in_parallel(port, paths, clients=32):
    """path -> reply, asked by so many at a time."""
    replies, left, lock = {}, list(paths), threading.Lock()

    def work():
        while True:
            with lock:
                if not left:
                    return
                path = left.pop()
            replies[path] = fetch(port, path)

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return replies


def test_357_all_sources_and_stores_may_be_down_at_the_start(apache, folder):
    config = write(folder, source("gone", "http://127.0.0.1:9/?"),
                   f'<source name="nothing" type="gdal"><data>{folder}/missing.tif</data></source>',
                   tileset("gone", "gone"), tileset("nothing", "nothing"))
    web = apache(f"MapCacheAlias /mc {config}\n")
    for path in ("?SERVICE=WMS&REQUEST=GetCapabilities", "/wmts/1.0.0/WMTSCapabilities.xml", "/tms/1.0.0"):
        reply = web.get("/mc" + path)
        assert reply.status == 200 and b"gone" in reply.body and b"nothing" in reply.body
    for name in ("gone", "nothing"):
        reply = web.get(tile(name, 0, 0, 0))
        assert reply.status in (500, 502, 503) and str(folder).encode() not in reply.body
    mapserver.make_data(folder)
    (folder / "image.tif").rename(folder / "missing.tif")
    (folder / "missing.tif").chmod(0o644)
    assert web.get(tile("nothing", 1, 0, 0)).status == 200  # and it may come later


def test_291_many_threads_over_one_raster_draw_no_wrong_tile(apache, folder):
    """Each tile as one thread alone draws it, and none of them another one's."""
    mapserver.make_data(folder)
    for path in folder.iterdir():
        path.chmod(0o644)
    raster = f'<source name="image" type="gdal"><data>{folder}/image.tif</data><resample>NEAREST</resample></source>'
    config = write(folder, raster, tileset("many", "image"), tileset("one", "image"))
    web = apache(THREADS + f"MapCacheAlias /mc {config}\n")
    places = [(5, x, y) for x in range(32) for y in range(6, 26)]
    many = in_parallel(web.port, [tile("many", *place) for place in places])
    assert {reply.status for reply in many.values()} == {200}
    alone = in_parallel(web.port, [tile("one", *place) for place in places[::7]], clients=1)
    for place in places[::7]:
        assert many[tile("many", *place)].body == alone[tile("one", *place)].body, place
    assert len({reply.body for reply in many.values()}) > 500
    again = in_parallel(web.port, [tile("many", *place) for place in places])
    assert {path: reply.body for path, reply in again.items()} == {path: reply.body for path, reply in many.items()}


def test_291_many_threads_over_one_wms(apache, folder, origin):
    config = write(folder, source("pattern", origin.url("/pattern?")), tileset("many", metatile="2 2"))
    web = apache(THREADS + f"MapCacheAlias /mc {config}\n")
    places = [(4, x, y) for x in range(16) for y in range(16)]
    replies = in_parallel(web.port, [tile("many", *place) for place in places])
    assert len(origin.requests()) == 64  # one for each metatile
    for place in places:
        reply = replies[tile("many", *place)]
        bounds = ",".join(str(number) for number in box(*place))
        assert reply.status == 200
        assert numpy.array_equal(pixels(reply.body), pixels(pattern({"WIDTH": "256", "HEIGHT": "256", "BBOX": bounds})))


def test_253_311_the_requested_value_reaches_key_origin_and_feature_info(apache, folder, origin):
    info = """<getfeatureinfo><info_formats>application/json</info_formats><params><QUERY_LAYERS>q</QUERY_LAYERS></params>
      </getfeatureinfo><http>"""
    config = write(folder, source("pattern", origin.url("/pattern?")).replace("<http>", info),
                   tileset("timed", more="""<dimensions>
      <dimension type="regex" name="time" default="2020-01-01"><regex>^[0-9-]+$</regex></dimension>
      <dimension type="values" name="Kind" default="a"><value>a</value><value>b</value></dimension></dimensions>"""))
    config.write_text(config.read_text().replace("{z}/{x}", "{dim:time}/{dim:Kind}/{z}/{x}"))
    web = apache(f"MapCacheAlias /mc {config}\n")
    wms = ("/mc?SERVICE=WMS&VERSION=1.1.1&STYLES=&LAYERS=timed&SRS=EPSG:3857&WIDTH=256&HEIGHT=256&FORMAT=image/png"
           "&BBOX=0,0,10018754.171394624,10018754.171394624")
    wmts = "/mc/wmts?SERVICE=WMTS&VERSION=1.0.0&LAYER=timed&STYLE=default&FORMAT=image/png&TILEMATRIX=2&TILEROW=1&TILECOL=2"
    wmts += f"&TILEMATRIXSET={GRID}"
    asked = [(f"{wms}&REQUEST=GetMap&TIME=2001-02-03&DIM_KIND=b", "2001-02-03", "b"),
             (f"{wmts}&REQUEST=GetTile&time=2002-02-03&kind=b", "2002-02-03", "b"),
             (f"/mc/wmts/1.0.0/timed/default/2003-02-03/a/{GRID}/2/1/2.png", "2003-02-03", "a"),
             ("/mc/tms/1.0.0/timed[time=2004-02-03][Kind=b]/2/2/2.png", "2004-02-03", "b"),
             ("/mc/gmaps/timed[time=2005-02-03]/2/2/1.png", "2005-02-03", "a"),
             (f"{wms}&REQUEST=GetMap", "2020-01-01", "a"),
             (f"{wms}&REQUEST=GetFeatureInfo&QUERY_LAYERS=timed&X=1&Y=1&INFO_FORMAT=application/json&TIME=2006-02-03",
              "2006-02-03", "a"),
             (f"{wmts}&REQUEST=GetFeatureInfo&I=1&J=1&INFOFORMAT=application/json&TIME=2007-02-03&KIND=b", "2007-02-03", "b")]
    for index, (path, time, kind) in enumerate(asked):
        reply = web.get(path)
        assert reply.status == 200, (path, reply.body)
        sent = origin.requests()[-1]["params"]
        assert (sent["TIME"], sent["KIND"], sent["DIM_KIND"]) == (time, kind, kind), path
        assert "DIM_TIME" not in sent and len(origin.requests()) == index + 1
        if "GetFeatureInfo" not in path:
            assert f"{time}/{kind}/2/2/2.png" in stored(folder, "timed")
    for path in (f"{wms}&REQUEST=GetMap&TIME=yesterday", f"{wms}&REQUEST=GetMap&DIM_KIND=c",
                 f"{wmts}&REQUEST=GetTile&kind=c", "/mc/tms/1.0.0/timed[time=yesterday]/2/2/2.png"):
        assert web.get(path).status == 400, path
    assert len(origin.requests()) == len(asked)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_37_an_unwritable_store_is_told_and_not_a_signal(build, folder, origin, modules_environment):
    config = write(folder, source("pattern", origin.url("/pattern?")), tileset("base"))
    folder.chmod(0o755)
    ended = subprocess.run([build / "bin/mapcache_seed", "-c", config, "-t", "base", "-z", "0,2", "-q"],
                           capture_output=True, text=True, timeout=patience(60), check=False, user="www-data",
                           env={**os.environ, **modules_environment})
    assert ended.returncode == 1
    assert f"{folder}/tiles" in ended.stderr and "Permission denied" in ended.stderr
    assert not (folder / "tiles").exists()
