"""Dimensions through the real servers: every way in which a client can say a value, catalogues that change, break and
block while they are asked, and what capabilities say of them."""

import concurrent.futures
import os
import sqlite3
import time
import xml.etree.ElementTree as ElementTree
from urllib.parse import quote

import pytest
from conftest import GRID, png
from drop_in import pixels
from fastcgi import Client
from patience import patience
from schemas import SCHEMAS, WMS_130, WMTS, validator

WORLD = "-20037508.342789248,-20037508.342789248,20037508.342789248,20037508.342789248"
COLOURS = {"bern": (200, 0, 0), "nairobi": (0, 200, 0), "everest": (0, 0, 200), "more": (9, 99, 199)}
TIMES = {"bern": "2010-01-01", "nairobi": "2010-03-04", "everest": "2011-01-01"}
KEYWORDS = {"bern": "un,europe", "nairobi": "un,africa", "everest": "peak,asia", "more": "un"}
TILES = ("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text,"
         " ctime datetime, primary key(tileset, grid, x, y, z, dim))")


def tile_of(name):
    return png(256, 256, lambda x, y: COLOURS[name])


def make_product(folder, name, data=None):
    path = folder / "products" / f"{name}.sqlite3"
    database = sqlite3.connect(path)
    database.execute(TILES)
    for z in range(2):
        for x in range(2**z):
            for y in range(2**z):
                database.execute("insert into tiles values(?, ?, ?, ?, ?, ?, '', '2020-01-01 00:00:00')",
                                 (name, GRID, x, y, z, data or tile_of(name)))
    database.commit()
    database.close()
    return path


def catalogue(folder, *statements):
    with sqlite3.connect(folder / "catalog.sqlite", timeout=patience(10)) as database:
        for statement in statements:
            database.execute(*statement if isinstance(statement, tuple) else (statement,))
    database.close()


LIKE = "select name from catalog where keywords like '%' || :dim || '%' or name = :dim"
ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n where i &lt; 0"
ROWS = "with recursive n(i) as (select 1 union all select i + 1 from n where i &lt; 100000) select i from n"


def dimension(folder, validate, name="product", kind="sqlite", default="bern", listed="select name from catalog",
              more="", attributes=""):
    return (f'<dimension name="{name}" type="{kind}" default="{default}" {attributes}>'
            f"<dbfile>{folder}/catalog.sqlite</dbfile><validate_query>{validate}</validate_query>"
            f"<list_query>{listed}</list_query>{more}</dimension>")


def tileset(name, dimensions, cache="products", settings=""):
    return (f'<tileset name="{name}"><cache>{cache}</cache><grid>{GRID}</grid><format>PNG</format>'
            f"<dimensions>{settings}{dimensions}</dimensions></tileset>")


STACK = "<assembly_type>stack</assembly_type><store_assemblies>false</store_assemblies>"


def write_site(folder):
    (folder / "products").mkdir(mode=0o755)
    for name in TIMES:
        make_product(folder, name)
    catalogue(folder, "create table catalog(name text, minx real, miny real, maxx real, maxy real, keywords text, ts integer)",
              *(("insert into catalog values(?, ?, -1e7, ?, 1e7, ?, strftime('%s', ?))",
                 (name, -1e7 * (number + 1), -1e7 * number, KEYWORDS[name], TIMES[name]))
                for number, name in enumerate(TIMES)))
    here = " and minx &lt;= :maxx and maxx &gt;= :minx and miny &lt;= :maxy and maxy &gt;= :miny"
    during = "select name from catalog where ts &gt;= :start_timestamp and ts &lt; :end_timestamp order by ts"
    days = "select strftime('%Y-%m-%d', ts, 'unixepoch') from catalog"
    named = ('<dimension name="ELEVATION" type="values" default="0" unit="m"><value>0</value><value>100</value>'
             '</dimension><dimension name="colour" type="regex" default="red"><regex>^[a-z]+$</regex></dimension>')
    stored = sqlite3.connect(folder / "named.sqlite3")
    stored.execute(TILES)
    for height in (0, 100):
        for colour in ("red", "blue"):
            stored.execute("insert into tiles values('named', ?, 0, 0, 0, ?, ?, '2020-01-01 00:00:00')",
                           (GRID, png(256, 256, lambda x, y: (height, len(colour), 5)), f"{colour}#{height}"))
    stored.commit()
    stored.close()
    config = folder / "mapcache.xml"
    config.write_text(f"""<mapcache>
  <cache name="products" type="sqlite3"><dbfile>{folder}/products/{{dim:product}}.sqlite3</dbfile>
    <queries><get>select data from tiles where x=:x and y=:y and z=:z</get></queries></cache>
  <cache name="scenes" type="sqlite3"><dbfile>{folder}/products/{{dim:TIME}}.sqlite3</dbfile>
    <queries><get>select data from tiles where x=:x and y=:y and z=:z</get></queries></cache>
  <cache name="named" type="sqlite3"><dbfile>{folder}/named.sqlite3</dbfile></cache>
  {tileset("one", dimension(folder, LIKE))}
  {tileset("stack", dimension(folder, LIKE, default="%"), settings=STACK)}
  {tileset("near", dimension(folder, f"select name from catalog where keywords like '%' || :dim || '%'{here}",
                             default="%"), settings=STACK)}
  {tileset("when", dimension(folder, during, name="TIME", kind="time", default="2010-01-01", listed=days), "scenes",
           STACK)}
  {tileset("named", named, "named")}
  {tileset("endless", dimension(folder, ENDLESS))}
  {tileset("rows", dimension(folder, ROWS), settings=STACK)}
  {tileset("wrong", dimension(folder, "select nosuch from catalog", listed="select nothing from nowhere"))}
  {tileset("endlist", dimension(folder, LIKE, listed=ENDLESS))}
  <service type="wmts" enabled="true"/><service type="tms" enabled="true"/><service type="gmaps" enabled="true"/>
  <service type="wms" enabled="true"><format>PNG</format></service>
  <deadline>2</deadline>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
    folder.chmod(0o777)
    return config


@pytest.fixture
def web(apache, folder):
    return apache(f"MapCacheAlias /mc {write_site(folder)}\n")


def wms(layer, query="", size=64, request="GetMap", box=WORLD):
    return (f"/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST={request}&LAYERS={layer}&STYLES=&SRS=EPSG:3857&BBOX={box}"
            f"&WIDTH={size}&HEIGHT={size}&FORMAT=image/png{query}")


def kvp(layer, query=""):
    return (f"/mc/wmts?SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&LAYER={layer}&STYLE=default&FORMAT=image/png"
            f"&TILEMATRIXSET={GRID}&TILEMATRIX=0&TILEROW=0&TILECOL=0{query}")


def rest(layer, *values):
    return "/mc/wmts/1.0.0/" + "/".join([layer, "default", *values, GRID, "0/0/0.png"])


def colour(reply):
    assert reply.status == 200, (reply.status, reply.body[:300])
    return tuple(pixels(reply.body)[1, 1])


def opaque(name):
    return (*COLOURS[name], 255)


def test_every_way_to_say_a_value(web):
    for path in (wms("one", "&DIM_PRODUCT=nairobi"), wms("one", "&PRODUCT=nairobi"), wms("one", "&dim_product=nairobi"),
                 wms("one", "&PRODUCT=everest&DIM_PRODUCT=nairobi"), kvp("one", "&product=nairobi"),
                 kvp("one", "&PRODUCT=nairobi"), rest("one", "nairobi"), wms("one", "&DIM_PRODUCT=n%61irobi"),
                 rest("one", "n%61irobi"), f"/mc/tms/1.0.0/one[product=nairobi]@{GRID}/0/0/0.png",
                 f"/mc/tms/1.0.0/one@{GRID}[product=nairobi]/0/0/0.png", "/mc/gmaps/one[product=nairobi]/0/0/0.png",
                 f"/mc/gmaps/one@{GRID}%5Bproduct=nairobi%5D/0/0/0.png"):
        assert colour(web.get(path)) == opaque("nairobi"), path
    for path in (wms("one"), wms("one", "&DIM_PRODUCT="), kvp("one"), kvp("one", "&product=default"),
                 kvp("one", "&DIM_PRODUCT=nairobi"), rest("one", "bern"), rest("one", "default"),
                 "/mc/gmaps/one/0/0/0.png"):
        assert colour(web.get(path)) == opaque("bern"), path


def test_time_and_elevation(web):
    for path in (wms("when", "&TIME=2010-03"), wms("when", "&time=2010-02/2010-12"), kvp("when", "&TIME=2010-03-04"),
                 rest("when", "2010-03--2010-04"), wms("when", "&TIME=2010-03-04T01:00:00%2B01:00/P1D"),
                 wms("when", "&TIME=2010-03-04T01:00:00+01:00/P1D"), wms("when", "&TIME=2011,2010-03/2010-12/P1M"),
                 f"/mc/gmaps/when@{GRID}[TIME=2010-03-04]/0/0/0.png"):
        assert colour(web.get(path)) == opaque("nairobi"), path
    for path in (wms("when"), wms("when", "&DIM_TIME=2010-03"), wms("when", "&TIME=2010-01")):
        assert colour(web.get(path)) == opaque("bern"), path
    for path in (wms("when", "&TIME=current"), kvp("when", "&TIME=current"), wms("when", "&TIME=2010/2011")):
        assert colour(web.get(path)) == opaque("everest"), path
    assert colour(web.get(wms("named", "&ELEVATION=100&DIM_COLOUR=blue"))) == (100, 4, 5, 255)
    assert colour(web.get(wms("named", "&DIM_ELEVATION=100"))) == (0, 3, 5, 255)
    assert colour(web.get(kvp("named", "&elevation=100"))) == (100, 3, 5, 255)
    assert colour(web.get(rest("named", "100", "blue"))) == (100, 4, 5, 255)


@pytest.mark.parametrize("value", ["2010-13", "d1", "2010,x", "2010/P", "' OR 1=1 --", "1" * 5000, "2010," * 300],
                         ids=["month", "word", "list", "duration", "sql", "digits", "many"])
def test_what_is_no_time(web, value):
    reply = web.get(wms("when", f"&TIME={quote(value)}&EXCEPTIONS=application/vnd.ogc.se_xml"))
    assert reply.status == 400 and b"InvalidDimensionValue" in reply.body
    reply = web.get(kvp("when", f"&TIME={quote(value)}"))
    assert reply.status == 400 and b"InvalidParameterValue" in reply.body and b'locator="TIME"' in reply.body


HOSTILE = ["' OR 1=1 --", "'; drop table catalog; --", "../../../etc/passwd", "..%2f..", "bern/../nairobi", "%00", "%0a",
           "{dim}", "*", "?", "v" * 5000, "bern," * 1500, "\x01", "%ff%fe", "[", "]", "@", ";"]


@pytest.mark.parametrize("layer", ["one", "stack", "near", "named"])
def test_hostile_values(web, layer, folder):
    for value in HOSTILE:
        value = value if value.startswith("%") else quote(value, safe="")
        names = ("colour", "ELEVATION") if layer == "named" else ("product",)
        for name in names:
            for path in (wms(layer, f"&{name}={value}"), kvp(layer, f"&{name}={value}"), rest(layer, *[value] * len(names)),
                         f"/mc/gmaps/{layer}[{name}={value}]/0/0/0.png", f"/mc/tms/1.0.0/{layer}[{name}={value}/0/0/0.png"):
                reply = web.get(path)
                assert reply.status in (200, 400, 403, 404, 414), (path[:200], reply.status, reply.body[:200])  # by httpd
                assert str(folder).encode() not in reply.body and b"sqlite" not in reply.body.lower()
                if reply.status == 200 and value not in ("%00", "%5D"):  # which leave the value empty
                    assert pixels(reply.body)[..., 3].max() == 0, path[:200]
    assert colour(web.get(wms("one"))) == opaque("bern")


@pytest.fixture
def client(fcgi, folder, site):
    """A client without the web server's own limit of a request's line."""
    (site.folder / "d").mkdir(mode=0o777)
    config = write_site(site.folder / "d")
    return Client(fcgi(environment={"MAPCACHE_CONFIG_FILE": str(config)}).address)


@pytest.mark.parametrize("value", ["v" * 100_000, "bern," * 10_000, "%27" * 30_000], ids=["long", "many", "quotes"])
def test_very_long_values(client, value):
    for query in (wms("one", f"&DIM_PRODUCT={value}"), wms("stack", f"&PRODUCT={value}"), kvp("one", f"&product={value}"),
                  wms("when", f"&TIME={value}"), wms("named", f"&ELEVATION={value}")):
        path, _, query = query.partition("?")
        answer = client.get((path.removeprefix("/mc") or "/").encode(), query.encode())
        assert answer.status == 400, (answer.status, answer.body[:200])
        assert len(answer.body) < 4000 and value[:100].encode() * 10 not in answer.body


def test_products_come_and_go(web, folder):
    assert web.get(wms("one", "&DIM_PRODUCT=more")).status == 404
    make_product(folder, "more")
    catalogue(folder, "insert into catalog values('more', -2e7, -2e7, 2e7, 2e7, 'un', 0)")
    assert colour(web.get(wms("one", "&DIM_PRODUCT=more"))) == opaque("more")
    assert colour(web.get(wms("stack", "&DIM_PRODUCT=un"))) == opaque("more")
    catalogue(folder, "delete from catalog where name = 'more'")
    assert web.get(wms("one", "&DIM_PRODUCT=more")).status == 404
    assert colour(web.get(wms("stack", "&DIM_PRODUCT=un"))) == opaque("nairobi")


def test_a_catalogue_that_is_replaced(web, folder):
    assert colour(web.get(wms("stack"))) == opaque("everest")
    for name in ("bern", "nairobi", "everest"):
        other = folder / "other.sqlite"
        with sqlite3.connect(other) as database:
            database.execute("create table catalog(name, minx, miny, maxx, maxy, keywords, ts)")
            database.execute("insert into catalog values(?, -2e7, -2e7, 2e7, 2e7, 'un', 0)", (name,))
        database.close()
        os.rename(other, folder / "catalog.sqlite")
        assert colour(web.get(wms("stack", "&DIM_PRODUCT=un"))) == opaque(name)
        assert colour(web.get(wms("near", "&DIM_PRODUCT=un"))) == opaque(name)


def test_a_catalogue_that_goes(web, folder):
    path = folder / "catalog.sqlite"
    whole = path.read_bytes()
    for broken in (None, b"", whole[:100], b"x" * len(whole), whole[:-4096]):
        path.unlink(missing_ok=True)
        if broken is not None:
            path.write_bytes(broken)
        for request in (wms("one"), wms("stack"), kvp("near"), wms("when")):
            reply = web.get(request)
            assert reply.status in (500, 503) or broken == whole[:-4096], (broken and broken[:10], reply.status)
            assert str(folder).encode() not in reply.body and b"catalog.sqlite" not in reply.body
    path.unlink()
    path.write_bytes(whole)
    assert colour(web.get(wms("one"))) == opaque("bern")


def test_a_catalogue_that_is_locked(web, folder):
    database = sqlite3.connect(folder / "catalog.sqlite", isolation_level=None)
    database.execute("begin exclusive")
    database.execute("update catalog set ts = ts")
    assert web.get(wms("one")).status == 503
    database.execute("commit")
    database.close()
    assert colour(web.get(wms("one"))) == opaque("bern")


def test_a_query_that_never_ends(web):
    began = time.monotonic()
    assert web.get(wms("endless")).status == 503
    assert web.get(kvp("endless")).status == 503
    with concurrent.futures.ThreadPoolExecutor(8) as clients:  # others are served meanwhile
        stuck = [clients.submit(web.get, wms("endless")) for _ in range(4)]
        assert colour(web.get(wms("one"))) == opaque("bern")
        assert {reply.result().status for reply in stuck} == {503}
    assert time.monotonic() - began < patience(40)


def test_queries_that_are_wrong(web, folder):
    for request, word in ((wms("rows"), b"max_entries"), (kvp("rows"), b"max_entries"), (wms("wrong"), b"product"),
                          (kvp("wrong"), b"product")):
        reply = web.get(request)
        assert reply.status in (500, 400) and word in reply.body, (reply.status, reply.body[:500])
        assert b"nosuch" not in reply.body and str(folder).encode() not in reply.body
    assert "nosuch" in web.log()  # the administrator is told


def test_products_that_are_broken(web, folder):
    product = folder / "products" / "everest.sqlite3"
    whole = product.read_bytes()
    catalogue(folder, "insert into catalog values('absent', -2e7, -2e7, 2e7, 2e7, 'un,absent', 0)")
    assert colour(web.get(wms("stack", "&DIM_PRODUCT=un"))) == opaque("nairobi")
    assert pixels(web.get(kvp("stack", "&product=absent")).body)[..., 3].max() == 0
    assert colour(web.get(wms("stack"))) == opaque("everest")
    product.unlink()
    assert colour(web.get(wms("stack", "&DIM_PRODUCT=%25"))) == opaque("nairobi")
    product.write_bytes(whole)
    assert colour(web.get(wms("stack"))) == opaque("everest")
    product.unlink()
    make_product(folder, "everest", png(256, 256, lambda x, y: (1, 2, 3)))
    assert colour(web.get(wms("stack"))) == (1, 2, 3, 255)
    for broken in (b"", b"x" * 5000, whole[:1000]):
        product.unlink()
        product.write_bytes(broken)
        for _ in range(2):
            reply = web.get(wms("stack"))
            assert reply.status in (200, 500, 502), reply.status
            if reply.status == 200:  # never a picture that is there no longer
                assert colour(reply) == opaque("nairobi")
            assert str(folder).encode() not in reply.body
        assert colour(web.get(wms("stack", "&DIM_PRODUCT=un"))) == opaque("nairobi")
    product.unlink()
    product.write_bytes(whole)
    assert colour(web.get(wms("stack"))) == opaque("everest")


def texts(document, path, spaces):
    return [element.text for element in ElementTree.fromstring(document).iterfind(path, spaces)]


def test_capabilities_list_values(web):
    spaces = {"w": "http://www.opengis.net/wms"}
    document = web.get("/mc?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetCapabilities").body
    layers = {layer.findtext("w:Name", None, spaces): layer.find("w:Dimension", spaces)
              for layer in ElementTree.fromstring(document).iterfind(".//w:Layer/w:Layer", spaces)}
    assert layers["one"].text == "bern,nairobi,everest"
    assert layers["one"].attrib == {"name": "product", "units": "", "default": "bern", "nearestValue": "0"}
    assert layers["when"].text == "2010-01-01,2010-03-04,2011-01-01"
    assert layers["when"].attrib == {"name": "TIME", "units": "ISO8601", "default": "2010-01-01", "nearestValue": "0",
                                     "multipleValues": "1", "current": "1"}
    assert layers["named"].attrib == {"name": "ELEVATION", "units": "m", "unitSymbol": "m", "default": "0",
                                      "nearestValue": "0"}
    assert layers["wrong"].text == "bern"  # what cannot be listed has its default
    assert layers["endlist"].text == "bern"
    document = web.get("/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetCapabilities").body
    assert "bern,nairobi,everest" in texts(document, ".//Extent[@name='product']", {})
    assert b'<Dimension name="TIME" units="ISO8601"' in document
    spaces = {"m": "http://www.opengis.net/wmts/1.0", "o": "http://www.opengis.net/ows/1.1"}
    document = web.get("/mc/wmts?SERVICE=WMTS&REQUEST=GetCapabilities").body
    dimensions = {layer.findtext("o:Identifier", None, spaces): layer.find("m:Dimension", spaces)
                  for layer in ElementTree.fromstring(document).iterfind(".//m:Layer", spaces)}
    assert [value.text for value in dimensions["one"].iterfind("m:Value", spaces)] == list(TIMES)
    when = dimensions["when"]
    assert (when.findtext("m:Default", None, spaces), when.findtext("m:Current", None, spaces),
            when.findtext("o:UOM", None, spaces)) == ("2010-01-01", "true", "ISO8601")
    assert dimensions["named"].findtext("m:UnitSymbol", None, spaces) == "m"
    assert [value.text for value in dimensions["wrong"].iterfind("m:Value", spaces)] == ["bern"]


@pytest.mark.skipif(not SCHEMAS.is_dir(), reason=f"no schemas at {SCHEMAS}")
def test_capabilities_are_valid(web, folder):
    validate = validator(folder)
    validate(web.get("/mc?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetCapabilities").body, WMS_130)
    validate(web.get("/mc?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetCapabilities").body, None)
    validate(web.get("/mc/wmts?SERVICE=WMTS&REQUEST=GetCapabilities").body, WMTS)


def test_many_clients_while_the_catalogue_changes(web, folder):
    """Never an error, never a product that the catalogue has never had in such a row."""
    paths = [wms("stack", f"&DIM_PRODUCT={word}") for word in ("%25", "un", "peak")] + [wms("near"), kvp("stack")]
    known = {opaque(name) for name in COLOURS}
    make_product(folder, "more")
    with concurrent.futures.ThreadPoolExecutor(16) as clients:
        replies = [clients.submit(web.get, paths[i % len(paths)]) for i in range(400)]
        for i in range(20):
            catalogue(folder, "insert into catalog values('more', -2e7, -2e7, 2e7, 2e7, 'un,peak', 0)")
            catalogue(folder, "delete from catalog where name = 'more'")
        assert {colour(reply.result()) for reply in replies} <= known
    assert colour(web.get(wms("stack", "&DIM_PRODUCT=peak"))) == opaque("everest")
