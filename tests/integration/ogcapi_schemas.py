"""JSON Schemas of the documents of the OGC API, written after the tables and fragments of the standards: names, types and obligations of members. Members that a standard does not name are allowed, as in the published ones."""

TEXT, WHOLE, NUMBER, URI = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "number"}, {"type": "string", "pattern": "^(https?://|urn:)"}


def listed(items, least=0):
    return {"type": "array", "items": items, "minItems": least}


def record(needed, **members):
    """An object with members, of which those in `needed`, words, are mandatory."""
    return {"type": "object", "required": needed.split(), "properties": members}


# OGC 17-083r4, tables 15 and 5 to 9; OGC 20-057, 9.3
LINK = record("href rel", href={"type": "string", "pattern": "^https?://"}, rel=TEXT, type={"type": "string", "pattern": "^[a-z]+/[-.+;=a-z0-9]+$"}, title=TEXT, templated={"type": "boolean"})
LINKS = listed(LINK, 1)
POINT = {**listed(NUMBER, 2), "maxItems": 2}
BOX = record("lowerLeft upperRight", lowerLeft=POINT, upperRight=POINT, crs=URI, orderedAxes={**listed(TEXT, 2), "maxItems": 2})
SIZE = {"type": "integer", "minimum": 1}
TILE_MATRIX = record("id scaleDenominator cellSize pointOfOrigin tileWidth tileHeight matrixWidth matrixHeight", id=TEXT, title=TEXT, scaleDenominator={"type": "number", "exclusiveMinimum": 0},
                     cellSize={"type": "number", "exclusiveMinimum": 0}, cornerOfOrigin={"enum": ["topLeft", "bottomLeft"]}, pointOfOrigin=POINT, tileWidth=SIZE, tileHeight=SIZE, matrixWidth=SIZE, matrixHeight=SIZE)
TILE_MATRIX_SET = record("crs tileMatrices", id=TEXT, title=TEXT, uri=URI, crs=URI, orderedAxes={**listed(TEXT, 2), "maxItems": 2}, wellKnownScaleSet=URI, boundingBox=BOX, tileMatrices=listed(TILE_MATRIX, 1), links=LINKS)
LIMITS = record("tileMatrix minTileRow maxTileRow minTileCol maxTileCol", tileMatrix=TEXT, minTileRow=WHOLE, maxTileRow=WHOLE, minTileCol=WHOLE, maxTileCol=WHOLE)
DATA_TYPE = {"enum": ["map", "vector", "coverage"]}
PROPERTY = record("", type={"enum": ["array", "boolean", "integer", "null", "number", "object", "string"]}, title=TEXT)
LAYER = record("id dataType", id=TEXT, title=TEXT, description=TEXT, dataType=DATA_TYPE, geometryType={"enum": ["points", "lines", "polygons"]}, minTileMatrix=TEXT, maxTileMatrix=TEXT,
               propertiesSchema=record("type", type={"const": "object"}, properties={"type": "object", "additionalProperties": PROPERTY}), boundingBox=BOX, links=LINKS)
TILE_SET_ITEM = record("dataType crs links", title=TEXT, dataType=DATA_TYPE, crs=URI, tileMatrixSetURI=URI, links=LINKS)
TILE_SET = record("dataType crs links", title=TEXT, description=TEXT, attribution=TEXT, keywords=listed(TEXT), mediaTypes=listed(TEXT, 1), dataType=DATA_TYPE, tileMatrixSetLimits=listed(LIMITS, 1), crs=URI, boundingBox=BOX,
                  layers=listed(LAYER, 1), tileMatrixSetURI=URI, links=LINKS)
TILE_SETS = record("tilesets", tilesets=listed(TILE_SET_ITEM), links=LINKS)
TILE_MATRIX_SETS = record("tileMatrixSets", tileMatrixSets=listed(record("links", id=TEXT, title=TEXT, uri=URI, crs=URI, links=LINKS), 1))

# OGC 19-072, 8; OGC 20-024, 7; extents of further dimensions: OGC 20-058, 15.2
CORNERS = {"type": "array", "items": NUMBER, "oneOf": [{"minItems": 4, "maxItems": 4}, {"minItems": 6, "maxItems": 6}]}
BOUND = {"type": ["string", "number", "null"]}
INTERVALS = listed({**listed(BOUND, 2), "maxItems": 2}, 1)
TIMES = listed({"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": ["string", "null"], "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}}, 1)
DIMENSION = {**record("interval", interval=INTERVALS, definition=URI, trs=TEXT, vrs=TEXT, unit=TEXT, grid=record("", cellsCount=WHOLE, coordinates=listed(BOUND, 1))),
             "oneOf": [{"required": ["definition"]}, {"required": ["trs"]}, {"required": ["vrs"]}]}
EXTENT = {**record("spatial", spatial=record("bbox", bbox=listed(CORNERS, 1), crs=URI, storageCrsBbox=listed(CORNERS, 1)), temporal=record("interval", interval=TIMES, trs=URI)), "additionalProperties": DIMENSION}
COLLECTION = record("id links", id=TEXT, title=TEXT, description=TEXT, attribution=TEXT, dataType=DATA_TYPE, extent=EXTENT, crs=listed(URI, 1), storageCrs=URI, links=LINKS)
COLLECTIONS = record("links collections", links=LINKS, collections=listed(COLLECTION))
LANDING = record("links", title=TEXT, description=TEXT, attribution=TEXT, links=LINKS, extent=EXTENT, crs=listed(URI, 1), storageCrs=URI)
CONFORMANCE = record("conformsTo", conformsTo={**listed(URI, 1), "uniqueItems": True})
PROBLEM = record("type title status", type=TEXT, title=TEXT, status={"type": "integer", "minimum": 400, "maximum": 599}, detail=TEXT, instance=TEXT)

# OGC 20-009, 7.3 and 7.5
STYLES = record("styles", default=TEXT, styles=listed(record("id links", id=TEXT, title=TEXT, links=LINKS)), links=LINKS)
SHEET = record("link", title=TEXT, version=TEXT, specification=URI, native={"type": "boolean"}, link=LINK)
STYLE = record("id", id=TEXT, title=TEXT, description=TEXT, scope={"const": "style"}, stylesheets=listed(SHEET, 1), layers=listed(record("id", id=TEXT), 1), links=LINKS)
