"""Tables of so many roads, made by the database from a seed: the more rows, the denser the country. What row number i is depends on i alone."""
import shutil

from postgis.data import EXTENT, SRID

HOMES = 4000        # places at which roads are
ROW_BYTES = 600     # of disk for a row: table, index, and what the database logs while it makes them
SHARE_OF_DISK = .5  # of what is free that a table may take


def name_of(rows):
    return f"roads_{rows}"


# A number from 0 to 1 for each pair of numbers.
SHARE = """CREATE FUNCTION share(bigint, bigint) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT (hashint8extended($1, $2) & 4294967295)::float8 / 4294967296 $$"""

ROWS = """CREATE TABLE {name} AS
SELECT i::int AS gid, kind AS class, 'Road ' || i % 5000 AS name,
    ST_SetSRID(ST_MakeLine(ARRAY[ST_MakePoint(x, y), ST_MakePoint(x + dx, y + dy), ST_MakePoint(x + 2 * dx - bend * dy, y + 2 * dy + bend * dx),
        ST_MakePoint(x + 3 * dx - 3 * bend * dy, y + 3 * dy + 3 * bend * dx)]), {srid})::geometry(LineString, {srid}) AS geom
FROM generate_series(1, {rows}) i,
    LATERAL (SELECT floor(share(i, 1) * {homes})::bigint AS home, 1 + floor(5 * sqrt(share(i, 2)))::int AS kind, share(i, 3) * 2 * pi() AS heading,
        sqrt(share(i, 4)) * 2000 AS away, share(i, 5) * 2 * pi() AS side, share(i, 6) * .5 - .25 AS bend) chosen,
    LATERAL (SELECT {west} + share(home, 7) * {width} + away * cos(side) AS x, {south} + share(home, 8) * {height} + away * sin(side) AS y,
        (ARRAY[400, 250, 150, 90, 45])[kind] * cos(heading) AS dx, (ARRAY[400, 250, 150, 90, 45])[kind] * sin(heading) AS dy) placed"""


def prepare(database):
    database.sql(SHARE)


def enough_disk(folder, rows):
    return rows * ROW_BYTES <= shutil.disk_usage(folder).free * SHARE_OF_DISK


def make_table(database, rows):
    """With its key and its index; returns what it takes on disk without and with these, in MB."""
    name = name_of(rows)
    database.sql(ROWS.format(name=name, rows=rows, srid=SRID, homes=HOMES, west=EXTENT[0], south=EXTENT[1], width=EXTENT[2] - EXTENT[0], height=EXTENT[3] - EXTENT[1]))
    database.sql(f"ALTER TABLE {name} ADD PRIMARY KEY (gid)")
    database.sql(f"CREATE INDEX ON {name} USING gist (geom)")
    database.sql(f"VACUUM ANALYZE {name}")
    return [int(word) / 1e6 for word in database.sql(f"SELECT pg_table_size('{name}'), pg_total_relation_size('{name}')")[0].split("|")]


def middle(database):
    """Of one of the places, where the ten maps are."""
    x, y = database.sql(f"SELECT {EXTENT[0]} + share(11, 7) * {EXTENT[2] - EXTENT[0]}, {EXTENT[1]} + share(11, 8) * {EXTENT[3] - EXTENT[1]}")[0].split("|")
    return float(x), float(y)


def boxes(centre, zooms):
    """Zoom -> a square of the country's longer side divided by the zoom, around the place and inside the country where it fits."""
    found = {}
    for zoom in zooms:
        side = max(EXTENT[2] - EXTENT[0], EXTENT[3] - EXTENT[1]) / zoom
        corner = []
        for at, low, high in zip(centre, EXTENT[:2], EXTENT[2:]):
            corner.append((low + high - side) / 2 if high - low <= side else min(max(at - side / 2, low), high - side))
        found[zoom] = (*corner, corner[0] + side, corner[1] + side)
    return found


def features_in(database, rows, box):
    return int(database.sql(f"SELECT count(*) FROM {name_of(rows)} WHERE geom && ST_MakeEnvelope({','.join(map(repr, box))}, {SRID})")[0])
