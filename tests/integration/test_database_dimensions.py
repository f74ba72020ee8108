"""Dimensions whose values PostgreSQL and Elasticsearch know, through the whole server: right pixels, bound values, wrong
and slow queries, databases that are down, restarted, full or that end a query in the middle."""

import io
import json
import sqlite3
import subprocess
import threading
import time
from urllib.parse import quote
from xml.sax.saxutils import escape

import pytest
from conftest import GRID, SOON, png, sanitizer_environment, wait_until
from elastic import Elastic
from fastcgi import Client, Server
from patience import patience
from PIL import Image
from postgres import PASSWORD, Postgres

DEADLINE = 3
SIZE = 20037508.342789244
# product -> colour, when it was taken, its box in metres (x and y); boxes that only touch count as meeting
SCENES = {
    "red": ((255, 0, 0), 1262304000, (-SIZE, -SIZE, SIZE, SIZE)),
    "green": ((0, 255, 0), 1272304000, (-SIZE, 1, -1, SIZE)),
    "blue": ((0, 0, 255), 1293840000, (1, -SIZE, SIZE, -1)),
}
BY_PLACE = """select id from scene where place && ST_MakeEnvelope(:minx, :miny, :maxx, :maxy, 3857)
  and (:dim = 'all' or id = :dim or campaign = :dim) order by taken"""
LIST = "select id from scene order by taken"


def product_file(path, name, color):
    database = sqlite3.connect(path)
    database.execute("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob,"
                     " dim text, ctime datetime, primary key(tileset, grid, x, y, z, dim))")
    tile = png(256, 256, lambda i, j: color)
    for z in range(2):
        for x in range(2**z):
            for y in range(2**z):
                for tileset in ("stack", "time", "one", "elastic"):
                    database.execute("insert into tiles values(?, ?, ?, ?, ?, ?, ?, '2020-01-02 03:04:05')",
                                     (tileset, GRID, x, y, z, tile, name))
    database.commit()
    database.close()


def dimension(connection, query, attributes="", more=""):
    return f"""<dimension name="scene" type="postgresql" {attributes}>
      <connection>{escape(connection)}</connection><validate_query>{escape(query)}</validate_query>
      <list_query>{escape(LIST)}</list_query>{more}</dimension>"""


def elastic_dimension(url, query, more="", listed='{"size": 0, "aggs": {"ids": {"terms": {"field": "name"}}}}'):
    return f"""<dimension name="scene" type="elasticsearch" default="all">
      <http><url>{url}</url>{more}</http><validate_query>{escape(query)}</validate_query>
      <list_query>{escape(listed)}</list_query>
      <validate_response>["hits", "hits", "_id"]</validate_response>
      <list_response>["aggregations", "ids", "buckets", "key"]</list_response></dimension>"""


def tileset(name, dimension_text, assembly="stack"):
    return f"""<tileset name="{name}"><cache>products</cache><grid>{GRID}</grid><grid>WGS84</grid>
    <format>PNG</format><dimensions><assembly_type>{assembly}</assembly_type><store_assemblies>false</store_assemblies>{dimension_text}
    </dimensions></tileset>"""


def site(folder, *tilesets, extra=""):
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <deadline>{DEADLINE}</deadline>
  <cache name="products" type="sqlite3"><dbfile>{folder}/{{dim:scene}}.sqlite3</dbfile></cache>
  {"".join(tilesets)}
  <service type="wmts" enabled="true"/>
  <service type="wms" enabled="true"><format>PNG</format><full_wms>assemble</full_wms></service>
  <lock_dir>{folder}</lock_dir>{extra}
</mapcache>
""")
    return path


@pytest.fixture(scope="module")
def postgres():
    with Postgres() as server:
        server.sql("create extension postgis; create table scene(id text primary key, campaign text, taken bigint,"
                   " place geometry(polygon, 3857)); create index on scene using gist(place)")
        for name, (_, taken, box) in SCENES.items():
            server.sql(f"insert into scene values ('{name}', 'campaign', {taken}, ST_MakeEnvelope"
                       f"({', '.join(map(str, box))}, 3857))")
        yield server


@pytest.fixture
def products(folder):
    for name, (color, _, _) in SCENES.items():
        product_file(folder / f"{name}.sqlite3", name, color)
    folder.chmod(0o777)
    return folder


@pytest.fixture(autouse=True)
def servers(monkeypatch, products):  # products: its folder outlives them
    """None outlives its test, not even a failed one's."""
    running = []
    begin = Server.__init__

    def remember(server, *arguments, **options):
        begin(server, *arguments, **options)
        running.append(server)

    monkeypatch.setattr(Server, "__init__", remember)
    yield
    for server in running:
        if server.alive():
            server.stop()


def tile(layer, value, z=1, x=0, y=0):
    value = "" if value is None else f"&scene={quote(value, safe='')}"
    return (f"SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&LAYER={layer}&STYLE=default&FORMAT=image/png&TILEMATRIXSET={GRID}"
            f"&TILEMATRIX={z}&TILEROW={y}&TILECOL={x}{value}")


def color_at(answer, x=128, y=128):
    assert answer.status == 200, (answer.status, answer.body[:300])
    return Image.open(io.BytesIO(answer.body)).convert("RGBA").getpixel((x, y))


def is_color(answer, name, x=128, y=128):
    expected = (0, 0, 0, 0) if name is None else (*SCENES[name][0], 255)
    assert color_at(answer, x, y) == expected


def check(answer, statuses, seconds=SOON):
    assert answer.status in statuses, (answer.status, answer.body[:300])
    assert answer.took < patience(seconds)
    for secret in (b"swordfish", b"127.0.0.1", b"secret-place", b"select", b"PostgreSQL"):
        assert secret not in answer.body, answer.body[:500]


def ways(postgres):
    connection = postgres.connection()
    return [tileset("stack", dimension(connection, BY_PLACE, 'default="all"')),
            tileset("time", dimension(connection, "select id from scene where taken >= :start_timestamp and taken <"
                                      " :end_timestamp order by taken", 'default="2010" time="true"')),
            tileset("one", dimension(connection, "select id from scene where id = :dim or :dim = 'all'",
                                     'default="red"', "<default_query>select id from scene order by taken desc"
                                     "</default_query>"), "none")]


def test_the_right_products_are_drawn(build, products, postgres):
    """By place, by name, by time; the last row is on top."""
    server = Server(build, site(products, *ways(postgres)), products)
    is_color(server.get("/wmts", tile("stack", "all", x=0, y=0)), "green")
    is_color(server.get("/wmts", tile("stack", None, x=1, y=1)), "blue")
    is_color(server.get("/wmts", tile("stack", "campaign", x=0, y=1)), "red")
    is_color(server.get("/wmts", tile("stack", "red")), "red")
    is_color(server.get("/wmts", tile("time", None)), "green")
    is_color(server.get("/wmts", tile("time", "2010-01")), "red")
    is_color(server.get("/wmts", tile("time", "2010/2011")), "blue")
    is_color(server.get("/wmts", tile("one", "blue")), "blue")
    assert server.get("/wmts", tile("one", "all")).status == 500  # several values without an assembly
    check(server.get("/wmts", tile("one", "other")), (400, 404))
    box = f"{-SIZE},{-SIZE},{SIZE},{SIZE}"
    answer = server.get("/", "SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=stack&STYLES=&SRS=EPSG:3857"
                        f"&FORMAT=image/png&BBOX={box}&WIDTH=512&HEIGHT=512&DIM_SCENE=all")
    for x, y, name in ((128, 128, "green"), (384, 128, "red"), (128, 384, "red"), (384, 384, "blue")):
        is_color(answer, name, x, y)
    server.stop()


def test_capabilities_list_what_the_database_has(build, products, postgres):
    server = Server(build, site(products, *ways(postgres)), products)
    wms = server.get("/", "SERVICE=WMS&REQUEST=GetCapabilities&VERSION=1.3.0")
    assert wms.status == 200 and wms.body.count(b"red,green,blue") == 3, wms.body[:3000]
    assert b'default="blue"' in wms.body  # <default_query>
    wmts = server.get("/wmts", "SERVICE=WMTS&REQUEST=GetCapabilities&VERSION=1.0.0")
    assert wmts.status == 200 and wmts.body.count(b"<Value>green</Value>") == 3
    server.stop()


HOSTILE = ["'; drop table scene; --", "' or '1'='1", "$1", ":dim", "../../etc/passwd", "\\", "%", "a" * 16000,
           ",".join("x" * 9999), "\u20ac", "\x01\x1f", "red\x00", "", " ", "NULL", "*"]


def test_hostile_values_are_bound(build, products, postgres):
    server = Server(build, site(products, *ways(postgres)), products)
    for value in HOSTILE + ["a" * 100000, "\udcff"]:
        text = value.encode(errors="surrogateescape")
        for layer in ("stack", "one", "time"):
            check(server.get("/wmts", tile(layer, None) + "&scene=" + quote(text, safe="")), (200, 400, 404))
    assert postgres.sql("select count(*) from scene") == ["3"]
    is_color(server.get("/wmts", tile("stack", "red")), "red")
    server.stop()


WRONG = {
    "no table": ("select id from nowhere", (502,)),
    "no statement": ("selec id", (502,)),
    "a number wanted": ("select id from scene where taken = :dim", (400,)),
    "too many rows": ("select generate_series(1, 100000)", (500,)),
    "blocks": ("select pg_sleep(600)::text", (503,)),
    "a product without a file": ("select 'nowhere'", (404, 200)),
    "a product outside of the folder": ("select '../../../../etc/passwd'", (200, 400, 404, 500)),
    "no rows": ("select id from scene where false", (404, 200)),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_queries(build, products, postgres, kind):
    """A clear error in time, the server's words only in the log, and the next request is well."""
    query, statuses = WRONG[kind]
    wrong = dimension(postgres.connection(), query, 'default="all"')
    server = Server(build, site(products, tileset("time", wrong), tileset("stack", dimension(
        postgres.connection(), BY_PLACE, 'default="all"'))), products)
    answer = server.get("/wmts", tile("time", "any"))
    check(answer, statuses, DEADLINE + 10)
    if answer.status == 200:
        assert color_at(answer)[3] == 0
    if answer.status >= 500:
        assert "scene" in server.log()
    is_color(server.get("/wmts", tile("stack", "red")), "red")
    assert PASSWORD not in server.program.log()
    server.stop()
    wait_until(lambda: postgres.sql("select count(*) from pg_stat_activity where query like '%pg_sleep(600)%' and"
                                    " pid <> pg_backend_pid() and state = 'active'") == ["0"], "cancelled", 20)


def test_down_at_start_then_up_then_restarted(build, products):
    with Postgres(start=False) as postgres:
        server = Server(build, site(products, tileset("stack", dimension(postgres.connection(),
                                                                         "select 'red' where :dim = 'all'",
                                                                         'default="all"'))), products)
        for _ in range(3):
            check(server.get("/wmts", tile("stack", None)), (503,), 10)
        assert f"port {postgres.port}" in server.log() and PASSWORD not in server.log()
        assert server.get("/", "SERVICE=WMS&REQUEST=GetCapabilities").status in (200, 503)
        postgres.start()
        wait_until(lambda: server.get("/wmts", tile("stack", None)).status == 200, "up", 15)
        is_color(server.get("/wmts", tile("stack", None)), "red")
        postgres.stop()
        postgres.start()
        wait_until(lambda: server.get("/wmts", tile("stack", None)).status == 200, "up again", 15)
        server.stop()


def load(server, query, seconds, results, clients=8):
    """Asks from several connections for so long; results: status -> how often."""
    lock = threading.Lock()

    def ask():
        client = Client(server.address)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            answer = client.get(b"/wmts", query.encode())
            if answer.status == 200:
                is_color(answer, "red")
            with lock:
                results[answer.status] = results.get(answer.status, 0) + 1
        client.close()

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    return threads


def test_restarts_and_ended_backends_under_load(build, products):
    """Nobody gets wrong pixels or waits for ever; afterwards all is well."""
    with Postgres() as postgres:
        server = Server(build, site(products, tileset("stack", dimension(
            postgres.connection(), "select 'red' where :dim <> 'x' and pg_sleep(0.01) is not null",
            'default="all"'))), products)
        results = {}
        threads = load(server, tile("stack", "all"), 4, results)
        for _ in range(3):
            time.sleep(0.4)
            postgres.sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'mapcache'")
        postgres.stop()
        postgres.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        assert set(results) <= {200, 503} and results.get(200, 0) > 0, results
        wait_until(lambda: server.get("/wmts", tile("stack", None)).status == 200, "well again", 15)
        server.stop()


def test_a_server_without_free_places(build, products):
    """max_connections below our own bound: requests wait for a place, and get 503 at the deadline where none comes."""
    with Postgres(settings=["max_connections=6", "superuser_reserved_connections=3"]) as postgres:
        postgres.sql("create role guest login password 'guest'")
        connection = f"host=127.0.0.1 port={postgres.port} dbname=postgres user=guest password=guest sslmode=disable"
        server = Server(build, site(products, tileset("stack", dimension(
            connection, "select 'red' where pg_sleep(0.02) is not null", 'default="all"'))), products,
            options=("--threads", "12"))
        results = {}
        for thread in load(server, tile("stack", "all"), 3, results, 12):
            thread.join(60)
        assert set(results) == {200}, (results, server.log())
        server.stop()
        # Somebody else has all places.
        guests = "select count(*) from pg_stat_activity where usename = 'guest'"
        wait_until(lambda: postgres.sql(guests) == ["0"], "all connections are closed", 20)
        others = []

        def all_places_are_taken():
            if postgres.sql(guests) == ["3"]:
                return True
            if sum(other.poll() is None for other in others) < 3:  # a place may be free later than it seems
                others.append(subprocess.Popen(["psql", "-q", connection, "-c", "select pg_sleep(60)"],
                                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            return False

        wait_until(all_places_are_taken, "all places are taken", 30)
        server = Server(build, site(products, tileset("stack", dimension(connection, "select 'red'",
                                                                         'default="all"'))), products)
        answer = server.get("/wmts", tile("stack", "all"))
        check(answer, (503,), DEADLINE + 10)
        assert answer.took > DEADLINE - 0.5
        for other in others:
            other.kill()
            other.wait()
        postgres.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'guest'")
        wait_until(lambda: server.get("/wmts", tile("stack", None)).status == 200, "a place is free", 15)
        server.stop()


def test_connections_stay_open_and_few(build, products, postgres):
    def ours():
        return postgres.sql("select count(*) from pg_stat_activity where application_name = 'mapcache'")[0]

    wait_until(lambda: ours() == "0", "the other tests' connections are closed", 20)
    server = Server(build, site(products, *ways(postgres), extra="<connection_pool><max_connections>3</max_connections>"
                                "</connection_pool>"), products)
    results = {}
    for thread in load(server, tile("stack", "red"), 2, results):
        thread.join(60)
    assert set(results) == {200}, results
    assert ours() in ("1", "2", "3")
    server.stop()
    wait_until(lambda: ours() == "0", "connections are closed", 20)


def test_apache_children_each_have_their_own(build, apache, products, postgres):
    """No connection is made before the first request of a child, so none is shared; and all end with the server."""

    def backends():
        return set(postgres.sql("select pid from pg_stat_activity where application_name = 'mapcache'"))

    wait_until(lambda: not backends(), "the other tests' connections are closed", 20)
    web = apache(f"MapCacheAlias /mc {site(products, *ways(postgres))}", mpm="prefork",
                 environment=sanitizer_environment(build))
    assert not backends()
    for _ in range(40):
        answer = web.get("/mc/wmts?" + tile("stack", "red"))
        assert answer.status == 200, (answer.body, web.log())
        is_color(answer, "red")
    assert 1 <= len(backends()) <= 10, "one for each child that has served"
    assert PASSWORD not in web.log()
    web.program.stop()
    wait_until(lambda: not backends(), "all ended", 20)


# --- Elasticsearch -----------------------------------------------------------------------------------------------------

QUERY = """{"size": 1000, "sort": [{"taken": "asc"}], "query": {"bool": {
  "filter": [{"range": {"minx": {"lt": :maxx}}}, {"range": {"maxx": {"gt": :minx}}},
             {"range": {"miny": {"lt": :maxy}}}, {"range": {"maxy": {"gt": :miny}}}],
  "should": [{"terms": {"campaign": [":dim"]}}, {"ids": {"values": [":dim"]}}]}}}"""
DOCUMENTS = {
    name: {"name": name, "campaign": ["all", "campaign"], "taken": taken * 1000, "minx": box[0], "miny": box[1],
           "maxx": box[2], "maxy": box[3]} for name, (_, taken, box) in SCENES.items()
}


def elastic_server(build, products, url, query=QUERY, more=""):
    return Server(build, site(products, tileset("elastic", elastic_dimension(url, query, more))), products)


def test_elasticsearch_names_the_products(build, products):
    with Elastic(DOCUMENTS, "maps", "swordfish") as elastic:
        login = "<auth scheme='basic'><user>maps</user><pass>swordfish</pass></auth>"
        server = elastic_server(build, products, elastic.url(), more=login)
        is_color(server.get("/wmts", tile("elastic", "all", x=0, y=0)), "green")
        is_color(server.get("/wmts", tile("elastic", None, x=1, y=1)), "blue")
        is_color(server.get("/wmts", tile("elastic", "campaign", x=0, y=1)), "red")
        is_color(server.get("/wmts", tile("elastic", "red")), "red")
        wmts = server.get("/wmts", "SERVICE=WMTS&REQUEST=GetCapabilities&VERSION=1.0.0")
        assert wmts.status == 200 and b"<Value>green</Value>" in wmts.body
        server.stop()


def test_elasticsearch_times_are_milliseconds_and_zero_is_written_as_ever(build, products):
    query = ('{"sort": ["taken"], "query": {"range": {"taken": {"gte": :start_timestamp, "lt": :end_timestamp}}},'
             ' "x": [:minx, :maxx], "y": [:miny, :maxy], "s": ":gridsrs", "t": ":tileset"}')
    with Elastic(DOCUMENTS) as elastic:
        text = elastic_dimension(elastic.url(), query).replace('default="all"', 'default="2010" time="true"')
        server = Server(build, site(products, tileset("elastic", text)), products)
        is_color(server.get("/wmts", tile("elastic", "2010-01")), "red")
        is_color(server.get("/wmts", tile("elastic", None)), "green")
        sent = elastic.requests[0][1].decode()
        assert '"gte": 1262304000000, "lt": 1264982400000' in sent
        assert '"x": [-2.003750834278925e+07, -3.725290298461914e-09]' in sent, sent
        assert '"s": "EPSG:3857", "t": "elastic"' in sent
        server.get("/wmts", tile("elastic", "2010-02", z=0).replace(GRID, "WGS84"))
        sent = elastic.requests[-1][1].decode()
        assert '"x": [-1.800000000000000e+02, 0.000000000000000e-01]' in sent, sent
        server.stop()


def test_elasticsearch_values_stay_inside_their_quotes(build, products):
    with Elastic(DOCUMENTS) as elastic:
        server = elastic_server(build, products, elastic.url())
        for value in HOSTILE + ['"}}], "x": [{"match_all": {}', '"', "\\", "\\\"", ":minx", "\n\t"]:
            check(server.get("/wmts", tile("elastic", value)), (200, 400, 404))
        assert len(elastic.requests) >= len(HOSTILE)
        for _, body, _ in elastic.requests:
            assert set(json.loads(body)) == {"size", "sort", "query"}
        server.stop()


BAD_ANSWERS = {"/says/html": (502,), "/says/nothing": (502,), "/says/deep": (502,), "/says/half": (502,),
               "/says/other": (502,), "/status/500": (502,), "/status/404": (502,), "/status/503": (503,),
               "/status/429": (503,), "/many/100000": (500,), "/many/1000000": (500, 502, 503), "/late/20000": (503,),
               "/many/0": (200, 404)}


@pytest.mark.parametrize("path", BAD_ANSWERS)
def test_elasticsearch_answers_badly(build, products, path):
    with Elastic(DOCUMENTS) as elastic:
        server = elastic_server(build, products, elastic.url(path))
        check(server.get("/wmts", tile("elastic", "all")), BAD_ANSWERS[path], DEADLINE + 10)
        assert server.alive()
        server.stop()


def test_elasticsearch_is_down(build, products):
    server = elastic_server(build, products, "http://127.0.0.1:1/_search")
    check(server.get("/wmts", tile("elastic", "all")), (502, 503))
    server.stop()
