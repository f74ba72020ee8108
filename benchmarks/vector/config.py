"""Our configuration, and the statements of ST_AsMVT: the same tables, attributes, extent and buffer of a tile."""
from postgis import config as drawn
from vector.data import BLOCK, COLUMNS, HALF

EDGE = 512  # pixels of an image tile's side: MapLibre draws one from the vector tile of the same place
LEVELS = range(4, 15)
EXTENT, BUFFER = 4096, 64
MOST_FEATURES, MOST_BYTES = 10_000_000, "64M"  # the largest budgets that there are: ST_AsMVT has none
LEVELED_FEATURES = MOST_FEATURES - 1  # overviews are for tiles of one budget of features: those of "overviews" alone


def statement(name):
    """For a tile: level, column and row are its parameters."""
    columns = ", ".join(COLUMNS[name])
    place = "$1::int, $2::int, $3::int"
    return (f"SELECT ST_AsMVT(found, '{name}', {EXTENT}, 'shape', 'gid') FROM (SELECT gid, {columns}, "
            f"ST_AsMVTGeom(geom, ST_TileEnvelope({place}), {EXTENT}, {BUFFER}, true) AS shape FROM {name} "
            f"WHERE geom && ST_TileEnvelope({place}, margin => {BUFFER / EXTENT!r})) found WHERE shape IS NOT NULL")


def grid():
    """As GoogleMapsCompatible, with larger images."""
    resolutions = " ".join(repr(2 * HALF / EDGE / 2 ** level) for level in range(LEVELS.stop))
    return (f'<grid name="large"><srs>EPSG:3857</srs><extent>{-HALF!r} {-HALF!r} {HALF!r} {HALF!r}</extent><size>{EDGE} {EDGE}</size>'
            f"<resolutions>{resolutions}</resolutions><units>m</units><origin>top-left</origin></grid>")


def tileset(name, kind, form, metatile):
    """`name-kind`, in a folder of its own."""
    return (f'<tileset name="{name}-{kind}"><source>{name}</source><cache>disk</cache><grid>large</grid><format>{form}</format>'
            f"<metatile>{metatile} {metatile}</metatile><metabuffer>0</metabuffer></tileset>")


def write(folder, world):
    """Vector tiles alone, of overviews, with the budgets of the default, in metatiles; and image tiles. Geometry comes as plain binary: `auto` packs it where a busy machine
    makes the database look far away."""
    text = ""
    for name in world.sets:
        (folder / f"{name}.sld").write_text(drawn.sld(name))
        text += (f'<source name="{name}" type="postgis"><background>{drawn.html(drawn.BACKGROUND)}</background><layer name="{name}"><connection>{world.database.connection()}</connection><table>{name}</table><id>gid</id>'
                 f"<style>{folder}/{name}.sld</style></layer></source>")
        for kind, form, metatile in (("vector", "vector", 1), ("overviews", "leveled", 1), ("budget", "budget", 1), ("metatile", "vector", BLOCK), ("image", "PNG", 1)):
            text += tileset(name, kind, form, metatile)
    (folder / "cache").mkdir()
    (folder / "cache").chmod(0o777)
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>{grid()}<cache name="disk" type="disk"><base>{folder}/cache</base></cache>
  <format name="vector" type="MVT"><extent>{EXTENT}</extent><buffer>{BUFFER}</buffer><max_features>{MOST_FEATURES}</max_features><max_bytes>{MOST_BYTES}</max_bytes></format>
  <format name="leveled" type="MVT"><extent>{EXTENT}</extent><buffer>{BUFFER}</buffer><max_features>{LEVELED_FEATURES}</max_features><max_bytes>{MOST_BYTES}</max_bytes></format>
  <format name="budget" type="MVT"><extent>{EXTENT}</extent><buffer>{BUFFER}</buffer></format>{text}
  <service type="wmts" enabled="true"/><locker type="disk"><directory>{folder}/cache</directory></locker>
</mapcache>
""")
    return path


def path_of(name, kind, tile):
    level, column, row = tile
    return f"/mc/wmts/1.0.0/{name}-{kind}/default/large/{level}/{row}/{column}.{'png' if kind == 'image' else 'mvt'}"
