"""Tables whose maps are drawn with and without overviews: those of benchmarks/postgis, and roads that are shorter than their stroke is wide."""
from postgis.data import EXTENT, SRID, Data

SETS = ("roads", "parcels", "points", "short")

# Roads of four vertices that lie within 160 m: a tenth of a pixel to a whole one, where strokes are one to five pixels wide.
SHORT = f"""SELECT setseed(.4); CREATE TABLE short (gid serial PRIMARY KEY, class int, geom geometry(LineString, {SRID}));
INSERT INTO short (class, geom) SELECT 1 + least(4, floor(5 * sqrt(random())))::int, ST_SetSRID(ST_MakeLine(ARRAY[ST_MakePoint(x, y), ST_MakePoint(x + a, y + b),
    ST_MakePoint(x + c, y + d), ST_MakePoint(x + e, y + f)]), {SRID}) FROM (SELECT {EXTENT[0]} + random() * {EXTENT[2] - EXTENT[0]} AS x,
    {EXTENT[1]} + random() * {EXTENT[3] - EXTENT[1]} AS y, random() * 160 - 80 AS a, random() * 160 - 80 AS b, random() * 160 - 80 AS c, random() * 160 - 80 AS d,
    random() * 160 - 80 AS e, random() * 160 - 80 AS f FROM generate_series(1, 200000)) p"""


class Tables(Data):
    """Without shapefiles."""

    def load_made(self, name):
        if name == "short":
            self.database.sql(SHORT)
        else:
            super().load_made(name)

    def write_shapefile(self, name):
        """None is needed."""
