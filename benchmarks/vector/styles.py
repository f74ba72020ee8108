"""The same styles in the languages of MapLibre and Mapnik; the SLD of benchmarks/postgis is the original."""
import json

from postgis.config import AREA, BACKGROUND, BORDER, MARK, RIM, ROADS, html
from postgres import USER
from seed.config import MERC


def maplibre_layers(name):
    source = {"source": "tiles", "source-layer": name}
    if name == "roads":
        return [{"id": f"class{kind}", "type": "line", **source, "filter": ["==", "class", kind], "paint": {"line-color": html(color), "line-width": width}}
                for kind, color, width in ROADS]
    if name == "points":
        return [{"id": "marks", "type": "circle", **source, "paint": {"circle-color": html(MARK), "circle-radius": 2.5, "circle-stroke-width": 1, "circle-stroke-color": html(RIM)}}]
    return [{"id": "areas", "type": "fill", **source, "paint": {"fill-color": html(AREA)}},
            {"id": "borders", "type": "line", **source, "paint": {"line-color": html(BORDER), "line-width": 1}}]


def maplibre(name, address):
    """`address`: of the vector tiles, with {z}, {x} and {y}."""
    return json.dumps({"version": 8, "sources": {"tiles": {"type": "vector", "tiles": [address], "minzoom": 0, "maxzoom": 22}},
                       "layers": [{"id": "background", "type": "background", "paint": {"background-color": html(BACKGROUND)}}, *maplibre_layers(name)]})


def mapnik_rules(name):
    if name == "roads":
        return "".join(f'<Rule><Filter>[class] = {kind}</Filter><LineSymbolizer stroke="{html(color)}" stroke-width="{width}"/></Rule>' for kind, color, width in ROADS)
    if name == "points":
        return (f'<Rule><MarkersSymbolizer width="6" height="6" fill="{html(MARK)}" stroke="{html(RIM)}" stroke-width="1" allow-overlap="true" '
                'ignore-placement="true" marker-type="ellipse"/></Rule>')
    return f'<Rule><PolygonSymbolizer fill="{html(AREA)}"/><LineSymbolizer stroke="{html(BORDER)}" stroke-width="1"/></Rule>'


def mapnik(name, database, box):
    columns = "(select class, geom from roads) as found" if name == "roads" else f"(select geom from {name}) as found"
    source = "".join(f'<Parameter name="{key}">{value}</Parameter>' for key, value in {
        "type": "postgis", "host": "127.0.0.1", "port": database.port, "dbname": "postgres", "user": USER, "table": columns, "geometry_table": name,
        "geometry_field": "geom", "srid": 3857, "extent": ",".join(map(repr, box))}.items())
    return (f'<Map srs="{MERC}" background-color="{html(BACKGROUND)}"><Style name="style">{mapnik_rules(name)}</Style>'
            f'<Layer name="{name}" srs="{MERC}"><StyleName>style</StyleName><Datasource>{source}</Datasource></Layer></Map>')
