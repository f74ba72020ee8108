"""The same map of five layers for both servers."""
from load.data import LAYERS, MERCATOR

SEA = "b5d0d0"
HALO = 1
# Scale denominators of MapServer count 72 pixels an inch, those of SLD pixels of 0.28 mm (OGC 05-077r4, 10.2).
OF_MAPSERVER = 72 / 0.0254 * 0.00028
OF_FONTS = 72 / 96  # its letters are larger than the pixels that it is told
ROADS = ((1, 20e6, ("606060", 5), ("e892a2", 3.5)), (2, 5e6, ("707070", 3.5), ("fcd6a4", 2.2)), (3, 2e6, ("ffffff", 1.6)))
TOWNS = ((500000, None, 40e6, 9, "222222"), (30000, 500000, 5e6, 7.5, "333333"), (None, 30000, 1.2e6, 7, "444444"))


def stroke(color, width, **more):
    values = {"stroke": f"#{color}", "stroke-width": width, **{key.replace("_", "-"): value for key, value in more.items()}}
    return "<Stroke>" + "".join(f'<CssParameter name="{key}">{value}</CssParameter>' for key, value in values.items()) + "</Stroke>"


def rule(symbols, scale=None, condition=""):
    limit = f"<MaxScaleDenominator>{scale:.0f}</MaxScaleDenominator>" if scale else ""
    chosen = f'<ogc:Filter>{condition}</ogc:Filter>' if condition else ""
    return f"<Rule>{chosen}{limit}{symbols}</Rule>"


def compare(kind, name, value):
    return f"<ogc:PropertyIs{kind}><ogc:PropertyName>{name}</ogc:PropertyName><ogc:Literal>{value}</ogc:Literal></ogc:PropertyIs{kind}>"


def label(size, color):
    font = f'<Font><CssParameter name="font-family">DejaVu Sans</CssParameter><CssParameter name="font-size">{size}</CssParameter></Font>'
    halo = f'<Halo><Radius>{HALO}</Radius><Fill><CssParameter name="fill">#ffffff</CssParameter></Fill></Halo>'
    return (f"<TextSymbolizer><Label><ogc:PropertyName>name</ogc:PropertyName></Label>{font}"
            "<LabelPlacement><PointPlacement><AnchorPoint><AnchorPointX>0.5</AnchorPointX><AnchorPointY>0</AnchorPointY></AnchorPoint>"
            "<Displacement><DisplacementX>0</DisplacementX><DisplacementY>2</DisplacementY></Displacement></PointPlacement></LabelPlacement>"
            f'{halo}<Fill><CssParameter name="fill">#{color}</CssParameter></Fill></TextSymbolizer>')


def town_condition(above, to):
    both = [compare("GreaterThan", "pop", above)] if above else []
    both += [compare("LessThanOrEqualTo", "pop", to)] if to else []
    return f"<ogc:And>{''.join(both)}</ogc:And>" if len(both) > 1 else both[0]


def styles():
    """Layer -> its rules."""
    return {
        "land": rule('<PolygonSymbolizer><Fill><CssParameter name="fill">#f2efe9</CssParameter></Fill></PolygonSymbolizer>'),
        "counties": rule(f"<LineSymbolizer>{stroke('b0a0b0', .6, stroke_dasharray='4 2')}</LineSymbolizer>", 8e6),
        "countries": rule(f"<LineSymbolizer>{stroke('9e4f9e', 1.2)}</LineSymbolizer>"),
        "roads": "".join(rule("".join(f"<LineSymbolizer>{stroke(color, width, stroke_linejoin='round')}</LineSymbolizer>" for color, width in lines), scale,
                              compare("EqualTo", "class", kind)) for kind, scale, *lines in ROADS),
        "towns": "".join(rule(label(size, color), scale, town_condition(above, to)) for above, to, scale, size, color in TOWNS),
    }


def sld(name, rules):
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<StyledLayerDescriptor version="1.0.0" xmlns="http://www.opengis.net/sld" xmlns:ogc="http://www.opengis.net/ogc">
  <NamedLayer><Name>{name}</Name><UserStyle><FeatureTypeStyle>{rules}</FeatureTypeStyle></UserStyle></NamedLayer>
</StyledLayerDescriptor>
"""


def write_ours(folder, data):
    layers = ""
    for name, rules in styles().items():
        (folder / f"{name}.sld").write_text(sld(name, rules))
        layers += f'<layer name="{name}"><data>{data}/{name}.shp</data><style>{folder}/{name}.sld</style></layer>'
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <cache name="disk" type="disk"><base>{folder}/cache</base></cache>
  <source name="world" type="shapefile">{layers}</source>
  <tileset name="world"><source>world</source><cache>disk</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <default_format>PNG</default_format>
  <service type="wms" enabled="true"><full_wms>forward</full_wms><format allow_client_override="true">PNG</format></service>
</mapcache>
""")
    return path


def rgb(color):
    return " ".join(str(int(color[i:i + 2], 16)) for i in (0, 2, 4))


def limit(scale):
    return f"MAXSCALEDENOM {scale * OF_MAPSERVER:.0f}" if scale else ""


def road_classes():
    text = 'CLASSITEM "class"\n'
    for kind, scale, *lines in ROADS:
        drawn = " ".join(f"STYLE COLOR {rgb(color)} WIDTH {width} LINECAP BUTT LINEJOIN ROUND END" for color, width in lines)
        text += f'CLASS EXPRESSION "{kind}" {limit(scale)} {drawn} END\n'
    return text


def town_classes():
    text = 'LABELITEM "name"\n'
    for above, to, scale, size, color in TOWNS:
        condition = " AND ".join([f"[pop] > {above}"] * bool(above) + [f"[pop] <= {to}"] * bool(to))
        text += (f'CLASS EXPRESSION ({condition}) {limit(scale)} LABEL TYPE TRUETYPE FONT "sans" SIZE {size * OF_FONTS} COLOR {rgb(color)} OUTLINECOLOR 255 255 255 '
                 f"OUTLINEWIDTH {HALO} POSITION UC END END\n")
    return text


def map_classes():
    """Layer -> kind and classes."""
    return {"land": ("POLYGON", f"CLASS STYLE COLOR {rgb('f2efe9')} END END"),
            "counties": ("LINE", f"{limit(8e6)} CLASS STYLE COLOR {rgb('b0a0b0')} WIDTH 0.6 LINECAP BUTT PATTERN 4 2 END END END"),
            "countries": ("LINE", f"CLASS STYLE COLOR {rgb('9e4f9e')} WIDTH 1.2 LINECAP BUTT END END"),
            "roads": ("LINE", road_classes()), "towns": ("POINT", town_classes())}


def write_map_file(folder, data):
    (folder / "fonts.list").write_text("sans /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf\n")
    layers = "".join(f'LAYER NAME "{name}" TYPE {kind} STATUS ON DATA "{name}" PROJECTION "init=epsg:3857" END METADATA "wms_title" "{name}" END {classes} END\n'
                     for name, (kind, classes) in map_classes().items())
    (folder / "world.map").write_text(f"""MAP
NAME "world"
SIZE 600 400
EXTENT -{MERCATOR} -{MERCATOR} {MERCATOR} {MERCATOR}
PROJECTION "init=epsg:3857" END
IMAGECOLOR {rgb(SEA)}
FONTSET "{folder}/fonts.list"
SHAPEPATH "{data}"
OUTPUTFORMAT NAME "png" DRIVER AGG/PNG MIMETYPE "image/png" IMAGEMODE RGB EXTENSION "png" END
WEB METADATA "wms_title" "world" "wms_onlineresource" "http://127.0.0.1/" "wms_srs" "EPSG:3857" "wms_enable_request" "*" END END
{layers}END
""")


def query(box, layers):
    return (f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS={layers}&STYLES=&SRS=EPSG:3857&FORMAT=image/png&BGCOLOR=0x{SEA}"
            f"&BBOX={','.join('%.3f' % v for v in box)}&WIDTH=600&HEIGHT=400")


def ours_path(box):
    return f"/mc?{query(box, 'world')}"


def mapserver_path(folder):
    return lambda box: f"/mapserv?map={folder}/world.map&{query(box, ','.join(LAYERS))}"
