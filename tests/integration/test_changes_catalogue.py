"""A catalogue of products in PostgreSQL that changes: answers that are remembered are asked for again, stored assemblies go out
at once as they were and are made anew behind that, and products themselves are never removed."""
import contextlib
import sqlite3
from xml.sax.saxutils import escape

import pytest
from changes_site import counter, script, wait_until_followed
from conftest import GRID, SOON, png, wait_until
from fastcgi import Server
from postgres import Postgres

SIZE = 20037508.342789244
COLOURS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}
BY_PLACE = "SELECT id FROM scene WHERE place && ST_MakeEnvelope(:minx, :miny, :maxx, :maxy, 3857) AND (:dim = 'all' OR id = :dim) ORDER BY taken"


@pytest.fixture(scope="module")
def database(build):
    with Postgres() as server:
        server.sql("CREATE EXTENSION postgis; CREATE TABLE scene (id text, taken int, place geometry(Polygon, 3857))")
        server.sql(script(build, "scene"))
        yield server


def add(database, name, taken, box):
    database.sql(f"INSERT INTO scene VALUES ('{name}', {taken}, ST_MakeEnvelope({', '.join(str(side) for side in box)}, 3857))")


def products(folder):
    for name, colour in COLOURS.items():
        file = sqlite3.connect(folder / f"{name}.sqlite3")
        file.execute("CREATE TABLE tiles(tileset text, grid text, x integer, y integer, z integer, data blob, dim text, ctime datetime,"
                     " PRIMARY KEY(tileset, grid, x, y, z, dim))")
        data = png(256, 256, lambda x, y, colour=colour: colour)
        for z in range(3):
            file.executemany("INSERT INTO tiles VALUES('stack', ?, ?, ?, ?, ?, ?, '2020-01-02 03:04:05')",
                             [(GRID, x, y, z, data, name) for x in range(2 ** z) for y in range(2 ** z)])
        file.commit()
        file.close()


@contextlib.contextmanager
def catalogue(build, database, folder, kept=True, settle=3600):
    folder.mkdir(exist_ok=True)
    if not (folder / "red.sqlite3").exists():
        products(folder)
    text = escape(database.connection())
    (folder / "mapcache.xml").write_text(f"""<mapcache>
  <changes><connection>{text}</connection><poll>0.5</poll><settle>{settle}</settle></changes>
  <cache name="products" type="sqlite3"><dbfile>{folder}/{{dim:scene}}.sqlite3</dbfile></cache>
  <tileset name="stack"><cache>products</cache><grid>{GRID}</grid><format>PNG</format><watch>scene</watch>
    <dimensions><assembly_type>stack</assembly_type><store_assemblies>{str(kept).lower()}</store_assemblies>
      <dimension name="scene" type="postgresql" default="all"><connection>{text}</connection><remember>3600</remember>
        <validate_query>{escape(BY_PLACE)}</validate_query><list_query>SELECT id FROM scene ORDER BY taken</list_query></dimension>
    </dimensions></tileset>
  <service type="wmts" enabled="true"/><service type="metrics" enabled="true"/><lock_dir>{folder}</lock_dir><log_level>info</log_level>
</mapcache>
""")
    database.sql("DELETE FROM scene; TRUNCATE mapcache_changes.log, mapcache_changes.readers, mapcache_changes.lost")
    add(database, "red", 1, (-SIZE, -SIZE, SIZE, SIZE))
    server = Server(build, folder / "mapcache.xml", folder)
    try:
        wait_until_followed(server)
        if settle > 0:  # else the leader may have removed the row before anybody counts it
            wait_until(lambda: counter(server, "change_rows_total") >= 1, "what was changed before is read", SOON)
        yield server
    finally:
        server.stop()


def path(x, y, z=2, scene="all"):
    return f"/wmts/1.0.0/stack/default/{scene}/{GRID}/{z}/{y}/{x}.png"


def tile(server, x, y, **more):
    answer = server.get(path(x, y, **more))
    assert answer.status == 200, answer.body[:300]
    return answer


@pytest.mark.parametrize("kept", [False, True])
def test_a_product_that_is_added_replaced_or_removed_shows_at_once(build, database, tmp_path, kept):
    with catalogue(build, database, tmp_path / "site", kept) as server:
        red, far = tile(server, 0, 0).body, tile(server, 3, 3).body
        assert tile(server, 0, 0).body == red and (kept or counter(server, "dimension_remembered_total") > 0)
        add(database, "green", 2, (-SIZE, 1, -1, SIZE))
        wait_until(lambda: tile(server, 0, 0).body != red, "the new product shows", SOON)
        green = tile(server, 0, 0).body
        database.sql("UPDATE scene SET id = 'blue' WHERE id = 'green'")
        wait_until(lambda: tile(server, 0, 0).body not in (red, green), "the product is another one", SOON)
        database.sql("DELETE FROM scene WHERE id = 'blue'")
        wait_until(lambda: tile(server, 0, 0).body == red, "the product has gone", SOON)
        assert tile(server, 3, 3).body == far
        queries = counter(server, "dimension_queries_total")
        for _ in range(5):
            tile(server, 3, 3)
        assert counter(server, "dimension_queries_total") <= queries + 1  # remembered again


def test_an_old_assembly_goes_out_at_once_and_then_the_new_one(build, database, tmp_path):
    with catalogue(build, database, tmp_path / "site") as server:
        old = tile(server, 0, 0).body
        assert tile(server, 0, 0).header("Age") is None
        blocker = database.locked("scene")
        try:
            rows = counter(server, "change_rows_total")
            database.sql(f"SELECT mapcache_changes.changed('scene', 3857, {-SIZE}, 1, -1, {SIZE})")
            wait_until(lambda: counter(server, "change_rows_total") > rows, "the change is seen", SOON)
            answer = tile(server, 0, 0)  # nobody can ask the catalogue now
            assert answer.body == old and int(answer.header("Age")) >= 1 and "max-age=0" in answer.header("Cache-Control")
        finally:
            blocker.release()
        wait_until(lambda: tile(server, 0, 0).header("Age") is None, "the assembly is fresh again", SOON)
        assert counter(server, "refreshes_total") >= 1


def test_assemblies_are_removed_and_products_are_not(build, database, tmp_path):
    folder = tmp_path / "site"
    with catalogue(build, database, folder, settle=0) as server:
        add(database, "green", 2, (-SIZE, 1, -1, SIZE))
        wait_until(lambda: database.sql("SELECT count(*) FROM mapcache_changes.log") == ["0"], "the log is trimmed", SOON)
        old = tile(server, 0, 0).body
        one = tile(server, 0, 0, scene="green").body
        assert sqlite3.connect(folder / "all.sqlite3").execute("SELECT count(*) FROM tiles WHERE x = 0 AND y = 3").fetchone() == (1,)
        add(database, "blue", 3, (-SIZE, 1, -1, SIZE))
        wait_until(lambda: database.sql("SELECT count(*) FROM mapcache_changes.log") == ["0"], "the log is trimmed", SOON)
        assert sqlite3.connect(folder / "all.sqlite3").execute("SELECT count(*) FROM tiles WHERE x = 0 AND y = 3").fetchone() == (0,)
        for name in COLOURS:
            assert sqlite3.connect(folder / f"{name}.sqlite3").execute("SELECT count(*) FROM tiles").fetchone() == (21,)
        assert tile(server, 0, 0).body != old and tile(server, 0, 0, scene="green").body == one
