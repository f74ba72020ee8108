"""Overviews for vector tiles hold what the tiles of the tables hold."""
import shutil
from xml.sax.saxutils import escape

from fastcgi import Server
from overview_site import HOSTILE, SIDE, X, Y, built, database, dye, levels, quoted
from test_vector_tiles import message, numbers_of

HALF = 20037508.342789244
ZOOMS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12)


def make_tiled(server):
    """Tables with attributes of all types, and geometry of all kinds among the lines."""
    columns = "row_number() OVER () AS gid, CASE WHEN row_number() OVER () % 7 > 0 THEN 'nr. ' || row_number() OVER () % 400 END AS name, random() * 1000 AS share, random() < .5 AS open, repeat('x', 200) AS more, kind"
    for name, source in (("roads", "roads"), ("points", quoted(HOSTILE)), ("areas", "areas")):
        server.sql(f"""SELECT setseed(.7); DROP TABLE IF EXISTS tiled_{name}; CREATE TABLE tiled_{name} AS SELECT {columns}, geom::geometry(Geometry, 3857) FROM {source} LIMIT 6000;
            CREATE INDEX ON tiled_{name} USING gist (geom); ANALYZE tiled_{name}""")
    x, y = X + SIDE / 2, Y + SIDE / 2
    for number, text in enumerate((f"GEOMETRYCOLLECTION(POINT({x} {y}),LINESTRING({x} {y},{x + 3000} {y + 99}))", "LINESTRING EMPTY", f"CIRCULARSTRING({x} {y},{x + 900} {y + 900},{x + 1800} {y})",
                                   f"POLYGON(({x} {y},{x + 6e4} {y},{x} {y + 6e4},{x} {y}))", f"MULTIPOINT({x} {y},{x + 40000} {y})", f"LINESTRING({x} {y},{x + .1} {y},{x + .2} {y})")):
        server.sql(f"INSERT INTO tiled_roads VALUES ({90000 + number}, 'more', 1, true, '', 1, ST_GeomFromText('{text}', 3857))")


def tiled_configuration(folder, server):
    """One tile with all of them: numbers beside the attributes, among them, and none."""
    layers = ""
    for name, more in (("roads", "<id>gid</id><attributes>name,open,share</attributes>"), ("points", "<id>gid</id><attributes>gid,name,share,open,kind</attributes>"), ("areas", "<attributes>kind</attributes>")):
        layers += f'<layer name="{name}"><connection>{escape(server.connection())}</connection><table>tiled_{name}</table>{more}<transfer>binary</transfer></layer>'
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache><cache name="disk" type="disk"><base>{folder}/tiles</base></cache><source name="all" type="postgis">{layers}</source>
        <format name="mvt" type="MVT"><max_features>1500</max_features></format><tileset name="level"><source>all</source><cache>disk</cache><grid>GoogleMapsCompatible</grid>
        <metatile>2 2</metatile><format>mvt</format></tileset><service type="gmaps" enabled="true"/><log_level>info</log_level></mapcache>""")
    return path


def features_of(body):
    """Of each layer, in their order: number, attributes with encoded values, type, geometry."""
    found = {}
    for _, layer in message(body):
        fields = list(message(layer))
        keys, values = ([value for number, value in fields if number == field] for field in (3, 4))
        rows = found.setdefault(next(value for number, value in fields if number == 1), [])
        for feature in (dict(message(value)) for number, value in fields if number == 2):
            tags = numbers_of(feature.get(2, b""))
            rows.append((feature.get(1), [(keys[k], values[v]) for k, v in zip(tags[::2], tags[1::2])], feature[3], feature[4]))
    return found


def made_tiles(build, folder, path):
    """Tiles of all levels in the middle of the data, and some beside them, made by a server that begins now."""
    shutil.rmtree(folder / "tiles", ignore_errors=True)
    server, found = Server(build, path, folder), {}
    try:
        for z in ZOOMS:
            side = 2 * HALF / 2 ** z
            column, row = int((X + SIDE * .3 + HALF) // side), int((HALF - Y - SIDE * .4) // side)
            for right in range(1 + (z > 6)):
                answer = server.get(f"/gmaps/level@GoogleMapsCompatible/{z}/{column + right}/{row}.mvt")
                assert answer.status == 200, answer.body[:500]
                found[z, right] = features_of(answer.body)
        return found
    finally:
        server.stop()


def test_vector_tiles_of_overviews_hold_what_those_of_the_tables_do(build, folder, database):
    make_tiled(database)
    path = tiled_configuration(folder, database)
    full = made_tiles(build, folder, path)
    made = built(build, path, "--static")
    assert set(full[0, 0]) == {b"roads", b"points"} and set(full[5, 0]) == {b"roads", b"areas"} and set(full[12, 0]) == {b"roads", b"points", b"areas"}
    assert all(sum(map(len, full[z, 0].values())) == 1500 for z in range(6))  # what the budget takes
    tiles = made_tiles(build, folder, path)
    for place, tile in full.items():
        assert tiles[place] == tile, (place, made)
    for name in ("tiled_roads", "tiled_points", "tiled_areas"):
        assert levels(database, name), made
        dye(database, name)
    empty = made_tiles(build, folder, path)
    assert not any(empty[z, 0] for z in range(5)), made
    assert empty[12, 0] == full[12, 0]  # from the tables
