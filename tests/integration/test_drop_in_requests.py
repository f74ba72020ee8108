"""The same URLs through Debian's module and ours, over one configuration and one store: status, media type and pixels
agree, except where the second table says why not."""
import pytest
from drop_in import MERCATOR, PEER_MODULE, PEER_SEED, TILESETS, configuration, difference, seed
from origin import Origin

HALF = 20037508.3427892480
WORLD = f"-{HALF},-{HALF},{HALF},{HALF}"
QUARTER = f"-{HALF},0,0,{HALF}"
SKEW = "-9000000,-3000000,11000000,9000000"
MAP = "?SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&STYLES=&FORMAT=image/png&SRS=EPSG:3857"
TILE = "/wmts?SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&STYLE=default&FORMAT=image/png"
INFO = "?SERVICE=WMS&REQUEST=GetFeatureInfo&VERSION=1.1.1&STYLES=&SRS=EPSG:3857&WIDTH=256&HEIGHT=256"
MATRIX = f"&TILEMATRIXSET={MERCATOR}&TILEMATRIX=2&TILEROW=1&TILECOL=2"

BYTES, PIXELS, TYPE, STATUS = range(4)  # how far two answers must agree; each includes those after it
# path, how far
SAME = [
    # WMTS, KVP and REST
    (f"{TILE}&LAYER=plain{MATRIX}", BYTES),
    (f"{TILE}&LAYER=photo{MATRIX}", BYTES),
    (f"{TILE}&LAYER=split&COLOR=red&SHADE=dark.1/a{MATRIX}", BYTES),
    (f"{TILE.lower()}&layer=plain{MATRIX.replace('TILE', 'tile')}", BYTES),
    (f"{TILE}&LAYER=plain&TILEMATRIXSET=WGS84&TILEMATRIX=1&TILEROW=1&TILECOL=3", BYTES),
    (f"{TILE}&LAYER=plain&TILEMATRIXSET=own&TILEMATRIX=2&TILEROW=9&TILECOL=4", BYTES),
    (f"/wmts/1.0.0/plain/default/{MERCATOR}/2/1/2.png", BYTES),
    (f"/wmts/1.0.0/plain/default/{MERCATOR}/2/1/2.anything", BYTES),
    (f"/wmts/1.0.0/plain/default/{MERCATOR}/2/1/2", BYTES),
    (f"//wmts///1.0.0//plain/default/{MERCATOR}/2/1/2.png", BYTES),
    (f"/wmts/1.0.0/split/default/red/dark.1%2fa/{MERCATOR}/2/1/2.png", STATUS),
    (f"/wmts/1.0.0/nope/default/{MERCATOR}/0/0/0.png", STATUS),
    (f"/wmts/1.0.0/plain/other/{MERCATOR}/0/0/0.png", STATUS),
    ("/wmts/1.0.0/plain/default/nope/0/0/0.png", STATUS),
    (f"/wmts/1.0.0/plain/default/{MERCATOR}/99/0/0.png", STATUS),
    (f"/wmts/1.0.0/plain/default/{MERCATOR}/1/5/0.png", STATUS),
    (f"/wmts/1.0.0/plain/default/{MERCATOR}/1/-1/0.png", STATUS),
    (f"/wmts/1.0.0/plain/default/{MERCATOR}/1/0/x.png", STATUS),
    ("/wmts/2.0.0/plain", STATUS),
    ("/wmts/1.0.0/plain", STATUS),
    ("/wmts", STATUS),
    (f"{TILE}{MATRIX}", STATUS),
    (f"{TILE}&LAYER=nope{MATRIX}", STATUS),
    ("/wmts?SERVICE=WMTS", STATUS),
    ("/wmts?SERVICE=WMS&REQUEST=GetTile", STATUS),
    ("/wmts/1.0.0/WMTSCapabilities.xml", TYPE),
    ("/wmts?SERVICE=WMTS&REQUEST=GetCapabilities", TYPE),
    *((f"{TILE.replace('image/png', form)}&LAYER=plain{MATRIX}", BYTES)
      for form in ("image/gif", "image/jpg", "image/png8", "image/png;%20mode=24bit", "png", "image/bogus", "")),
    (f"{TILE.replace('1.0.0', '1.1.0')}&LAYER=plain{MATRIX}", BYTES),
    # TMS
    ("/tms/1.0.0/plain/2/2/1.png", BYTES),
    (f"/tms/1.0.0/plain@{MERCATOR}/2/2/1.png", BYTES),
    ("/tms/1.0.0/plain@WGS84/1/3/1.png", BYTES),
    ("/tms/1.0.0/plain@own/2/4/9.png", BYTES),
    ("/tms", TYPE), ("/tms/", TYPE), ("/tms/1.0.0", TYPE), ("/tms/1.0.0/", TYPE), ("/tms/1.0.0/plain@WGS84", TYPE),
    ("/tms/2.0.0/", STATUS),
    ("/tms/1.0.0/plain/1/0", STATUS), ("/tms/1.0.0/plain/1/0/1", STATUS), ("/tms/1.0.0/plain/a/0/1.png", STATUS),
    ("/tms/1.0.0/plain/1/b/1.png", STATUS), ("/tms/1.0.0/plain/25/0/0.png", STATUS),
    ("/tms/1.0.0/plain/1/9/0.png", STATUS),
    ("/tms/1.0.0/plain[foo=bar]/0/0/0.png", STATUS), ("/tms/1.0.0/split[color=/0/0/0.png", STATUS),
    ("/tms/1.0.0/split[color=green]/0/0/0.png", STATUS),
    # XYZ
    ("/gmaps/plain/2/2/1.png", BYTES), (f"/gmaps/plain@{MERCATOR}/2/2/1.png", BYTES),
    ("/gmaps/plain@own/2/4/9.png", BYTES), ("/gmaps/photo/2/3/3.jpg", BYTES),
    ("/gmaps", STATUS), ("/gmaps/plain", STATUS), ("/gmaps/nope/0/0/0.png", STATUS),
    ("/gmaps/plain/1/9/0.png", STATUS), ("/gmaps/plain/1/x/0.png", STATUS),
    # KML
    ("/kml/plain@WGS84.kml", TYPE), ("/kml/plain@WGS84/1/1/1.kml", TYPE), ("/kml", STATUS), ("/kml/nope", STATUS),
    ("/kml/plain@nope", STATUS), ("/kml/plain@WGS84/0/0/0.png", STATUS), ("/kml/plain@WGS84/1/90/0.kml", STATUS),
    # Virtual Earth
    (f"/ve?layer=plain@{MERCATOR}&tile=21", BYTES), (f"/ve?LAYER=plain@{MERCATOR}&TILE=3", BYTES),
    ("/ve", STATUS), (f"/ve?layer=plain@{MERCATOR}", STATUS), (f"/ve?layer=plain@{MERCATOR}&tile=29", STATUS),
    ("/ve?layer=plain&tile=21", STATUS), (f"/ve?layer=plain@{MERCATOR}&tile=", STATUS),
    (f"/ve?layer=plain@{MERCATOR}&tile={'0' * 38}", STATUS), ("/ve?layer=nope@WGS84&tile=1", STATUS),
    # MapGuide: S0 is the deepest level
    ("/mg/S0/plain/R0/C0/1_2.png", BYTES), (f"/mg/S1/plain@{MERCATOR}/R0/C1/1_0.png", BYTES),
    ("/mg/X1/plain/R0/C0/0_0.png", STATUS), ("/mg/S90/plain/R0/C0/0_0.png", STATUS),
    ("/mg/S0/nope/R0/C0/0_0.png", STATUS), ("/mg/S0/plain/R0/C0/9_9.png", STATUS),
    # WMS, one tile
    (f"{MAP}&LAYERS=plain&WIDTH=256&HEIGHT=256&BBOX={WORLD}", BYTES),
    (f"{MAP}&LAYERS=photo&WIDTH=256&HEIGHT=256&BBOX={QUARTER}", BYTES),
    (f"{MAP.replace('3857', '900913')}&LAYERS=plain&WIDTH=256&HEIGHT=256&BBOX={QUARTER}", BYTES),
    (f"{MAP.replace('EPSG', 'epsg')}&LAYERS=plain&WIDTH=256&HEIGHT=256&BBOX={QUARTER}", BYTES),
    (f"{MAP}&LAYERS=split&DIM_COLOR=red&SHADE=dark.1/a&WIDTH=256&HEIGHT=256&BBOX={WORLD}", BYTES),
    ("?SERVICE=WMS&REQUEST=GetMap&VERSION=1.3.0&STYLES=&FORMAT=image/png&CRS=EPSG:4326&LAYERS=plain&WIDTH=256"
     "&HEIGHT=256&BBOX=-90,-180,90,0", BYTES),
    ("?SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&STYLES=&FORMAT=image/png&SRS=EPSG:4326&LAYERS=plain&WIDTH=256"
     "&HEIGHT=256&BBOX=-180,-90,0,90", BYTES),
    # WMS, several layers on one tile; the upper one has clear parts
    (f"{MAP}&LAYERS=photo,plain&WIDTH=256&HEIGHT=256&BBOX={WORLD}", PIXELS),
    (f"{MAP}&LAYERS=photo,,plain,&WIDTH=256&HEIGHT=256&BBOX={WORLD}", PIXELS),
    # WMS, maps
    (f"{MAP}&LAYERS=plain&WIDTH=512&HEIGHT=512&BBOX={WORLD}", PIXELS),
    (f"{MAP}&LAYERS=plain&WIDTH=1024&HEIGHT=1024&BBOX={WORLD}", PIXELS),
    (f"{MAP}&LAYERS=plain,split&DIM_COLOR=red&SHADE=dark.1/a&WIDTH=512&HEIGHT=256&BBOX=-{HALF},0,{HALF},{HALF}", PIXELS),
    ("?SERVICE=WMS&REQUEST=GetMap&VERSION=1.3.0&STYLES=&FORMAT=image/png&CRS=EPSG:4326&LAYERS=plain&WIDTH=1024"
     "&HEIGHT=512&BBOX=-90,-180,90,180", PIXELS),
    *((f"{MAP.replace('image/png', form)}&LAYERS=plain&WIDTH=512&HEIGHT=512&BBOX={WORLD}", PIXELS)
      for form in ("image/gif", "image/jpg", "image/jpeg", "jpeg", "image/png8", "image/png;%20mode=24bit", "image/bogus", "")),
    (f"{MAP.replace('STYLES=', 'STYLES=other')}&LAYERS=plain&WIDTH=512&HEIGHT=512&BBOX={WORLD}", PIXELS),
    *((f"/free{MAP.replace('image/png', form)}&LAYERS=plain&WIDTH=512&HEIGHT=512&BBOX={WORLD}", TYPE)
      for form in ("image/jpg", "jpeg", "image/png8", "image/png;%20mode=24bit", "image/bogus", "")),
    (f"{MAP.replace('image/png', 'image/gif')}&LAYERS=plain&WIDTH=256&HEIGHT=256&BBOX={WORLD}", BYTES),
    # WMS capabilities
    ("?SERVICE=WMS&REQUEST=GetCapabilities", TYPE), ("?SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.1.1", TYPE),
    # WMS, resampled maps: smaller, larger, of other proportions, over the edge of the world, and by another grid. Where
    # an edge of the box is an edge of tiles, theirs looks at the neighbour beyond the northern and eastern one, ours not.
    (f"{MAP}&LAYERS=plain&WIDTH=400&HEIGHT=300&BBOX={SKEW}", PIXELS),
    (f"{MAP}&LAYERS=plain&WIDTH=256&HEIGHT=256&BBOX=-5000000,-5000000,5000000,5000000", PIXELS),
    (f"{MAP}&LAYERS=plain&WIDTH=100&HEIGHT=100&BBOX=-15000000,-9000000,3000000,9000000", PIXELS),
    (f"{MAP}&LAYERS=plain,split&DIM_COLOR=red&SHADE=dark.1/a&WIDTH=500&HEIGHT=500&BBOX=-9000000,-9000000,9000000,9000000",
     PIXELS),
    (f"{MAP}&LAYERS=plain&WIDTH=300&HEIGHT=300&BBOX=12000000,12000000,25000000,25000000", PIXELS),
    ("?SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&STYLES=&FORMAT=image/png&SRS=EPSG:2154&LAYERS=plain&WIDTH=333"
     "&HEIGHT=222&BBOX=100000,6100000,900000,6633000", PIXELS),
    # WMS, what is wrong
    ("?foo=bar", STATUS), ("?SERVICE=WMS", TYPE),
    ("?SERVICE=WFS&REQUEST=GetMap", TYPE), ("?SERVICE=WMS&REQUEST=GetStyles", TYPE),
    ("?SERVICE=WMS&REQUEST=GetMap", TYPE),
    (f"{MAP}&LAYERS=plain&WIDTH=256&HEIGHT=256&BBOX=1,2,3", TYPE),
    (f"{MAP}&LAYERS=plain&WIDTH=256&HEIGHT=256&BBOX=a,b,c,d", TYPE),
    (f"{MAP}&LAYERS=plain&HEIGHT=256&BBOX={WORLD}", TYPE), (f"{MAP}&LAYERS=plain&WIDTH=256&BBOX={WORLD}", TYPE),
    (f"{MAP}&LAYERS=plain&WIDTH=-5&HEIGHT=256&BBOX={WORLD}", TYPE),
    (f"{MAP}&LAYERS=plain&WIDTH=0&HEIGHT=256&BBOX={WORLD}", TYPE),
    (f"{MAP}&LAYERS=plain&WIDTH=25x&HEIGHT=256&BBOX={WORLD}", TYPE),
    (f"{MAP}&LAYERS=plain&WIDTH=1101&HEIGHT=256&BBOX={WORLD}", TYPE),
    (f"{MAP}&LAYERS=plain&WIDTH=99999999999999&HEIGHT=256&BBOX={WORLD}", TYPE),
    (f"{MAP.replace('&SRS=EPSG:3857', '')}&LAYERS=plain&WIDTH=256&HEIGHT=256&BBOX={WORLD}", TYPE),
    (f"{MAP.replace('3857', '9999')}&LAYERS=plain&WIDTH=256&HEIGHT=256&BBOX={WORLD}", TYPE),
    (f"{MAP}&WIDTH=256&HEIGHT=256&BBOX={WORLD}", TYPE),
    (f"{MAP}&LAYERS=&WIDTH=256&HEIGHT=256&BBOX={WORLD}", TYPE),
    (f"{MAP}&LAYERS=nope&WIDTH=256&HEIGHT=256&BBOX={WORLD}", TYPE),
    (f"{MAP}&LAYERS=plain,nope&WIDTH=256&HEIGHT=256&BBOX={WORLD}", TYPE),
    (f"{MAP}&LAYERS=%3Cscript%3E&WIDTH=256&HEIGHT=256&BBOX={WORLD}", TYPE),
    (f"{MAP.replace('3857', '4326')}&LAYERS=plain,photo&WIDTH=256&HEIGHT=256&BBOX=-180,-90,0,90", TYPE),
    (f"{MAP}&LAYERS=split&DIM_COLOR=green&WIDTH=256&HEIGHT=256&BBOX={WORLD}", TYPE),
    (f"/free{MAP.replace('image/png', 'image/gif')}&LAYERS=plain&WIDTH=512&HEIGHT=512&BBOX={WORLD}", TYPE),
    (f"/free{MAP.replace('image/png', 'image/jpeg')}&LAYERS=photo&WIDTH=512&HEIGHT=512&BBOX={WORLD}", TYPE),
    (f"/free{MAP.replace('image/png', 'PNG8')}&LAYERS=plain&WIDTH=512&HEIGHT=512&BBOX={WORLD}", TYPE),
    (f"{INFO}&LAYERS=plain&BBOX={WORLD}&X=9&Y=9&INFO_FORMAT=text/plain", TYPE),
    (f"{INFO}&LAYERS=plain&QUERY_LAYERS=plain&BBOX={WORLD}&Y=9&INFO_FORMAT=text/plain", TYPE),
    (f"{INFO}&LAYERS=plain&QUERY_LAYERS=plain&BBOX={WORLD}&X=9&Y=256&INFO_FORMAT=text/plain", TYPE),
    (f"{INFO}&LAYERS=plain&QUERY_LAYERS=plain&BBOX={WORLD}&X=9&Y=9&INFO_FORMAT=text/xml", TYPE),
    (f"{INFO}&LAYERS=plain&QUERY_LAYERS=plain&BBOX={WORLD}&X=9&Y=9&INFO_FORMAT=text/plain", BYTES),
]
CRASH = None  # theirs is not asked, as its process would end
KVP = "an OGC client expects 400 for every error of a KVP request"
LIST = "who asks for nothing that there is learns what there is"
VALUE = "a wrong value is an error of the request"
FOUR = "&WIDTH=512&HEIGHT=512"
# path, their status, our status, why
DIFFERENT = [
    ("", 400, 200, LIST), ("/", 400, 200, LIST), ("/nosuch", 400, 404, LIST),
    (f"{TILE}&LAYER=plain{MATRIX.replace('default', 'nope').replace('=2&', '=99&', 1)}", 404, 400, KVP),
    (f"{TILE}&LAYER=plain&TILEMATRIXSET=nope&TILEMATRIX=0&TILEROW=0&TILECOL=0", 404, 400, KVP),
    (f"{TILE}&LAYER=plain&TILEMATRIXSET={MERCATOR}&TILEMATRIX=0&TILEROW=5&TILECOL=0", 404, 400, KVP),
    (f"{TILE}&LAYER=plain&TILEMATRIXSET={MERCATOR}&TILEMATRIX=0&TILEROW=0&TILECOL=99999999999", 404, 400, KVP),
    (f"{TILE.replace('GetTile', 'GetNothing')}&LAYER=plain{MATRIX}", 501, 400, KVP),
    (f"/wmts/1.0.0/plain/default/{MERCATOR}/1/0/0.png/extra", 400, 404, "a path of wrong length names nothing"),
    (f"/wmts/1.0.0/plain/default/{MERCATOR}/1/0/0x.png", 200, 404, VALUE),
    (f"/tms/1.0.0/split[color=red]/1/0/0.png", 500, 200, "a tile that cannot be stored is served all the same"),
    (f"{MAP}&LAYERS=plain{FOUR}&BBOX=nan,nan,nan,nan", 200, 400, "a box of no numbers overflows theirs"),
    (f"{MAP}&LAYERS=plain{FOUR}&BBOX=10,10,0,0", 200, 400, "a box without an area is no box"),
    (f"{MAP}&LAYERS=plain&WIDTH=4294967552&HEIGHT=256&BBOX={WORLD}", 200, 400, "32 bits of a number are not the number"),
    (f"{MAP}&LAYERS=plain{FOUR}&BBOX=30000000,30000000,31000000,31000000", 404, 200, "nothing there is an empty map"),
    (f"{INFO}&QUERY_LAYERS=plain&BBOX={WORLD}&X=0&Y=0&INFO_FORMAT=text/plain", 400, 200, "0 is a pixel"),
    (f"{INFO}&LAYERS=plain&QUERY_LAYERS=plain,photo&BBOX={WORLD}&X=9&Y=9&INFO_FORMAT=text/plain", 501, 200,
     "several layers can be asked"),
    (f"{INFO}&LAYERS=plain&QUERY_LAYERS=plain&BBOX={WORLD}&X=9&Y=9", 400, 200, "INFO_FORMAT is optional in WMS 1.1.1"),
    (f"{MAP}&LAYERS=plain%00.png{FOUR}&BBOX={WORLD}", 200, 400, "a control byte is in no value"),
    (f"/free{MAP}&LAYERS=plain,nope{FOUR}&BBOX={WORLD}", 200, 404,
     "with allow_client_override theirs looks at the first layer only"),
    (f"/free{MAP.replace('&FORMAT=image/png', '')}&LAYERS=plain{FOUR}&BBOX={WORLD}", CRASH, 200,
     "without FORMAT the configured one is used"),
    ("/gmaps/plain/30/0/0.png", CRASH, 404, "levels are checked before they are used"),
    ("/gmaps/plain/-1/0/0.png", CRASH, 404, "levels are checked before they are used"),
    (f"{MAP}&LAYERS=,{FOUR}&BBOX={WORLD}", CRASH, 404, "a list of nothing names no layer"),
    ("/tms/1.0.0/nope", 400, 404, "a map that is not there is not found (TMS 1.0.0, 2)"),
    ("/tms/1.0.0/nope/0/0/0.png", 400, 404, "a map that is not there is not found (TMS 1.0.0, 2)"),
    ("/tms/1.0.0/plain@nope/0/0/0.png", 400, 404, "a map that is not there is not found (TMS 1.0.0, 2)"),
    ("/tms/1.0.0/;/0/0/0.png", CRASH, 400, "a list of nothing names no layer"),
    ("/tms/1.0.0/split@own[color=red]/0/0/0.png", CRASH, 200, "brackets may also follow the grid"),
]


@pytest.fixture(scope="module")
def servers(shared_folder, shared_apache):
    root = shared_folder / "store"
    root.mkdir(mode=0o777)
    root.chmod(0o777)
    config = shared_folder / "mapcache.xml"
    with Origin() as origin:
        config.write_text(configuration(root, origin.url("/pattern?")))
        for tileset in ("plain", "photo", "split"):
            _, _, grids, dimensions = TILESETS[tileset]
            for grid in grids:
                seed(PEER_SEED, config, tileset, grid, dimensions)
        free = shared_folder / "free.xml"
        free.write_text(configuration(root, origin.url("/pattern?"), override="true"))
        alias = f"MapCacheAlias /mc/free {free}\nMapCacheAlias /mc {config}\n"
        yield (shared_apache("ours", alias),
               shared_apache("theirs", f"LoadModule mapcache_module {PEER_MODULE}\n" + alias, module=False, ours=False))


def media_type(reply):
    return (reply.headers["Content-Type"] or "").split(";")[0]


@pytest.mark.parametrize("path, how", SAME)
def test_answers_alike(servers, path, how):
    ours, theirs = (server.get("/mc" + path) for server in servers)
    assert ours.status == theirs.status, (ours.body[:300], theirs.body[:300])
    if how <= TYPE:
        assert media_type(ours) == media_type(theirs)
    if how == PIXELS:
        assert ours.status == 200 and difference(ours.body, theirs.body) <= 3
    elif how == BYTES:
        assert ours.status == 200 and ours.body == theirs.body
        assert ours.headers["Cache-Control"] == theirs.headers["Cache-Control"]
        assert ours.headers["Last-Modified"] == theirs.headers["Last-Modified"]


@pytest.mark.parametrize("path, their_status, our_status, why", DIFFERENT)
def test_answers_differently_for_a_reason(servers, path, their_status, our_status, why):
    ours, theirs = servers
    assert ours.get("/mc" + path).status == our_status, why
    if their_status is not CRASH:
        assert theirs.get("/mc" + path).status == their_status
