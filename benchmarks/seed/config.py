"""One world style of five layers in two languages: an SLD for each of our layers, Mapnik's XML for renderd; and the configurations of both."""
from load.config import SEA, compare, rule, sld, stroke, town_condition
from load.data import MERCATOR
from peers import peer

MERC = (f"+proj=merc +a=6378137 +b=6378137 +lat_ts=0.0 +lon_0=0.0 +x_0=0.0 +y_0=0.0 +k=1.0 +units=m +nadgrids=@null +wktext +no_defs +over")
LAND, COUNTIES, COUNTRIES = "f2efe9", "b0a0b0", "9e4f9e"
# class, largest scale denominator, casing, fill; towns with more and at most so many people, scale, size of letters, colour, halo
ROADS = ((1, 20e6, ("606060", 5), ("e892a2", 3.5)), (2, 5e6, ("707070", 3.5), ("fcd6a4", 2.2)), (3, 2e6, None, ("ffffff", 1.6)))
TOWNS = ((500000, None, 40e6, 12, "222222", 1.5), (30000, 500000, 5e6, 10, "333333", 1.2), (None, 30000, 1.2e6, 9, "444444", 1))
HALO_OPACITY = .7
# What each layer shows; {scale} is how the program names the scale denominator. Both ask the database for the same rows.
ROWS = {"roads": "class = 1 or {scale} < 5000000",
        "towns": "pop > 500000 or (pop > 30000 and {scale} < 5000000) or {scale} < 1200000"}
SCALES = {"counties": 8e6, "roads": 20e6, "towns": 40e6}
COLUMNS = {"roads": "geom, class", "towns": "geom, name, pop"}
BUFFER = 128  # pixels around a metatile, of which labels and lines reach in


def label(size, color, halo):
    font = f'<Font><CssParameter name="font-family">DejaVu Sans</CssParameter><CssParameter name="font-size">{size}</CssParameter></Font>'
    behind = (f'<Halo><Radius>{halo}</Radius><Fill><CssParameter name="fill">#ffffff</CssParameter>'
              f'<CssParameter name="fill-opacity">{HALO_OPACITY}</CssParameter></Fill></Halo>')
    return (f"<TextSymbolizer><Label><ogc:PropertyName>name</ogc:PropertyName></Label>{font}"
            "<LabelPlacement><PointPlacement><AnchorPoint><AnchorPointX>0.5</AnchorPointX><AnchorPointY>0.5</AnchorPointY></AnchorPoint></PointPlacement></LabelPlacement>"
            f'{behind}<Fill><CssParameter name="fill">#{color}</CssParameter></Fill></TextSymbolizer>')


def line(color, width, **more):
    return f"<LineSymbolizer>{stroke(color, width, stroke_linejoin='round', **more)}</LineSymbolizer>"


def road_rules(which):
    """Of the casings (2) or of what lies in them (3)."""
    return "".join(rule(line(*road[which], stroke_linecap="round"), road[1], compare("EqualTo", "class", road[0])) for road in ROADS if road[which])


def slds():
    """Layer -> its style; casings lie under the whole net of roads."""
    return {
        "land": rule(f'<PolygonSymbolizer><Fill><CssParameter name="fill">#{LAND}</CssParameter></Fill></PolygonSymbolizer>'),
        "counties": rule(f"<LineSymbolizer>{stroke(COUNTIES, .6, stroke_dasharray='4 2')}</LineSymbolizer>", SCALES["counties"]),
        "countries": rule(line(COUNTRIES, 1.2)),
        "roads": road_rules(2) + "</FeatureTypeStyle><FeatureTypeStyle>" + road_rules(3),
        "towns": "".join(rule(label(size, color, halo), scale, town_condition(above, to)) for above, to, scale, size, color, halo in TOWNS),
    }


def our_layer(name, folder, database):
    """Its features, where the database is told to choose by scale."""
    if name in ROWS:
        condition = ROWS[name].format(scale="!SCALE!").replace("<", "&lt;").replace(">", "&gt;")
        data = (f"<query>select {COLUMNS[name]} from {name} where geom &amp;&amp; !BBOX! and ({condition})</query>"
                "<geometry>geom</geometry><srid>3857</srid>")
    else:
        data = f"<table>{name}</table>"
    return f'<layer name="{name}"><connection>{database.connection()}</connection>{data}<style>{folder}/{name}.sld</style></layer>'


def write_ours(folder, database):
    """The configuration of the seeder: palette PNG, metatiles of 8x8, one SQLite file."""
    for name, rules in slds().items():
        (folder / f"{name}.sld").write_text(sld(name, rules))
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <cache name="tiles" type="sqlite3"><dbfile>{folder}/tiles.sqlite3</dbfile></cache>
  <source name="world" type="postgis"><background>#{SEA}</background>{"".join(our_layer(name, folder, database) for name in slds())}</source>
  <tileset name="world"><source>world</source><cache>tiles</cache><grid>GoogleMapsCompatible</grid><format>PNG8</format>
    <metatile>8 8</metatile><metabuffer>{BUFFER}</metabuffer></tileset>
  <service type="tms" enabled="true"/>
  <lock_dir>{folder}</lock_dir>
</mapcache>
""")
    return path


def mapnik_rule(symbol, scale=None, condition=""):
    chosen = f"<Filter>{condition}</Filter>" if condition else ""
    limit = f"<MaxScaleDenominator>{scale:.0f}</MaxScaleDenominator>" if scale else ""
    return f"<Rule>{chosen}{limit}{symbol}</Rule>"


def mapnik_roads(which):
    return "".join(mapnik_rule(f'<LineSymbolizer stroke="#{road[which][0]}" stroke-width="{road[which][1]}" stroke-linejoin="round" stroke-linecap="round"/>',
                               road[1], f"[class]={road[0]}") for road in ROADS if road[which])


def mapnik_towns():
    text = ""
    for above, to, scale, size, color, halo in TOWNS:
        both = [f"[pop] &gt; {above}"] * bool(above) + [f"[pop] &lt;= {to}"] * bool(to)
        text += mapnik_rule(f'<TextSymbolizer face-name="DejaVu Sans Book" size="{size}" fill="#{color}" halo-fill="rgba(255,255,255,{HALO_OPACITY})" '
                            f'halo-radius="{halo}">[name]</TextSymbolizer>', scale, " and ".join(both))
    return text


def mapnik_layer(name, styles, database):
    table = name
    if name in ROWS:
        condition = ROWS[name].format(scale="!scale_denominator!").replace("<", "&lt;").replace(">", "&gt;")
        table = f"(select {COLUMNS[name]} from {name} where {condition}{' order by pop desc' if name == 'towns' else ''}) as t"
    limit = f' maximum-scale-denominator="{SCALES[name]:.0f}"' if name in SCALES else ""
    more = ' cache-features="true"' if name == "roads" else ""  # two styles, one question
    source = {"type": "postgis", "host": "127.0.0.1", "port": database.port, "user": "mapcache", "dbname": "postgres", "table": table, "geometry_field": "geom",
              "srid": 3857, "extent": f"-{MERCATOR},-{MERCATOR},{MERCATOR},{MERCATOR}"}
    return (f'<Layer name="{name}" srs="{MERC}"{limit}{more}>' + "".join(f"<StyleName>{style}</StyleName>" for style in styles)
            + "<Datasource>" + "".join(f'<Parameter name="{key}">{value}</Parameter>' for key, value in source.items()) + "</Datasource></Layer>")


def mapnik_style(database):
    styles = {"land": mapnik_rule(f'<PolygonSymbolizer fill="#{LAND}"/>'),
              "counties": mapnik_rule(f'<LineSymbolizer stroke="#{COUNTIES}" stroke-width="0.6" stroke-dasharray="4,2"/>', SCALES["counties"]),
              "countries": mapnik_rule(f'<LineSymbolizer stroke="#{COUNTRIES}" stroke-width="1.2" stroke-linejoin="round"/>'),
              "roads-case": mapnik_roads(2), "roads-fill": mapnik_roads(3), "towns": mapnik_towns()}
    layers = {"land": ["land"], "counties": ["counties"], "countries": ["countries"], "roads": ["roads-case", "roads-fill"], "towns": ["towns"]}
    extent = f"-{MERCATOR},-{MERCATOR},{MERCATOR},{MERCATOR}"
    return (f'<?xml version="1.0" encoding="utf-8"?>\n<Map srs="{MERC}" background-color="#{SEA}" buffer-size="{BUFFER}">'
            f'<Parameters><Parameter name="maximum-extent">{extent}</Parameter></Parameters>'
            + "".join(f'<Style name="{name}">{rules}</Style>' for name, rules in styles.items())
            + "".join(mapnik_layer(name, of, database) for name, of in layers.items()) + "</Map>\n")


def mapnik_plugins():
    """Where Debian has Mapnik's readers, by its version."""
    from pathlib import Path
    found = sorted(Path("/usr/lib/mapnik").glob("*/input"))
    if not found or not peer("/usr/bin/renderd").exists():
        raise SystemExit("renderd and Mapnik are not installed: script/bootstrap bench does it")
    return found[-1]


def write_renderd(folder, database, threads):
    """The configuration of renderd; its tiles and socket lie in the folder, too."""
    (folder / "style.xml").write_text(mapnik_style(database))
    (folder / "renderd").mkdir()
    path = folder / "renderd.conf"
    path.write_text(f"""[renderd]
stats_file={folder}/renderd.stats
socketname={folder}/renderd.sock
pid_file={folder}/renderd.pid
num_threads={threads}
tile_dir={folder}/renderd
[mapnik]
plugins_dir={mapnik_plugins()}
font_dir=/usr/share/fonts/truetype/dejavu
font_dir_recurse=true
[default]
URI=/osm/
XML={folder}/style.xml
HOST=localhost
TILESIZE=256
MAXZOOM=18
TILEDIR={folder}/renderd
""")
    return path
