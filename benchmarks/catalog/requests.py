"""The case study's requests: windows, URLs, published figures, and this project's own targets."""
import random

HALF_WORLD = 20037508.342
# zoom, column and row (from the north) of the upper left tile of a window of 4x4 tiles
WINDOWS = [(2, 0, 0), (3, 0, 1), (4, 2, 4), (5, 5, 10), (6, 14, 22), (7, 29, 44), (8, 60, 90), (9, 121, 181),
           (10, 245, 366), (11, 493, 734), (12, 986, 1471), (13, 1971, 2945)]
# Mean milliseconds of the case study: a development version of MapCache 1.10 on other hardware.
PUBLISHED = {
    "catalog": [8000, 10000, 11000], "catalog wmts": [5000, 5000, 5500],
    "catalog-geo": [500, 400, 300, 350, 360, 270, 120, 90, 120, 95, 75, 75],
    "catalog-mtgeo": [280, 185, 160, 160, 130, 100, 60, 50, 55, 60, 65, 65],
    "catalog-amtgeo": [540, 460, 320, 400, 300, 210, 95, 80, 95, 90, 75, 70],
}
# Median milliseconds of MapCache 1.14 (repeated maps with the filter; 16 unfiltered tiles at zoom 2) on the machine for which the targets were set:
# divided by a target, they say how many times better than MapCache that is, on any machine.
MEASURED = {"catalog-geo": [235, 183, 130, 176, 124, 80, 72, 47, 117, 201, 276, 306], "catalog wmts": [580]}
PUBLISHED_BASE = {"WMTS_1": 0.102, "WMS_256": 0.098, "WMTS_16": 38.8, "WMS_1024": 36.6}


def by_zoom(table, key, zoom):
    values = table.get(key, [])
    return values[zoom - 2] if zoom - 2 < len(values) else None


def published(key, zoom):
    return by_zoom(PUBLISHED, key, zoom)


def filtered_target(zoom, state):
    """Milliseconds at most for a filtered map: `first` request of a process, with files open (`open`), or repeated (`warm`)."""
    if zoom == 2:
        return {"first": 45, "open": 25, "warm": 5}[state]
    if zoom <= 5:
        return {"first": 30, "open": 20, "warm": 5}[state]
    if zoom <= 9:
        return {"first": 15, "open": 15, "warm": 6}[state]
    return {"first": 35, "open": 35, "warm": 12}[state]


class Case:
    """One measured request, or several that go out at once."""

    def __init__(self, name, paths, edge, target=None, measured=None, published=None):
        self.name, self.paths, self.edge, self.target, self.published = name, paths, edge, target, published
        self.target_ratio = measured / target if measured and target else None


def tile_box(zoom, column, row, across, down):
    edge = 2 * HALF_WORLD / (1 << zoom)
    return -HALF_WORLD + column * edge, HALF_WORLD - (row + down) * edge, -HALF_WORLD + (column + across) * edge, HALF_WORLD - row * edge


def wms(alias, layers, box, width, height, extra=""):
    box = ",".join(f"{v:.5f}" for v in box)
    return (f"/{alias}?SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&LAYERS={layers}&STYLES=&SRS=EPSG:3857&BBOX={box}"
            f"&WIDTH={width}&HEIGHT={height}{extra}")


def wmts(alias, layer, zoom, column, row, extra=""):
    return (f"/{alias}/wmts?SERVICE=WMTS&REQUEST=GetTile&VERSION=1.0.0&LAYER={layer}&STYLE=default&TILEMATRIXSET=GoogleMapsCompatible"
            f"&TILEMATRIX={zoom}&TILEROW={row}&TILECOL={column}{extra}")


def wms_1024(alias, zoom, column, row, layers="catalog", extra="", **about):
    return Case(f"WMS_1024 z{zoom} {alias}", [wms(alias, layers, tile_box(zoom, column, row, 4, 4), 1024, 1024, extra)], 1024, **about)


def wmts_16(alias, zoom, column, row, layer="catalog", **about):
    paths = [wmts(alias, layer, zoom, column + x, row + y) for x in range(4) for y in range(4)]
    return Case(f"WMTS_16 z{zoom} {alias}", paths, 256, **about)


def base_cases():
    for alias in ("base-disk", "base-sqlite"):
        yield Case(f"WMTS_1 z0 {alias}", [wmts(alias, "base", 0, 0, 0)], 256, published=PUBLISHED_BASE["WMTS_1"])
        yield Case(f"WMS_256 z0 {alias}", [wms(alias, "base", tile_box(0, 0, 0, 1, 1), 256, 256)], 256, published=PUBLISHED_BASE["WMS_256"])
        yield wmts_16(alias, 2, 0, 0, "base", published=PUBLISHED_BASE["WMTS_16"])
        yield wms_1024(alias, 2, 0, 0, "base", published=PUBLISHED_BASE["WMS_1024"])


def filtered_cases(alias, windows, state):
    for zoom, column, row in windows:
        target = filtered_target(zoom, state) if alias == "catalog-geo" else None
        yield wms_1024(alias, zoom, column, row, target=target, measured=by_zoom(MEASURED, alias, zoom), published=published(alias, zoom))


def unfiltered_cases(windows, state):
    """WMS, then 16 tiles at once, of the first three windows. What WMS may take is relative to the filtered map: see report.py."""
    for zoom, column, row in windows[:3]:
        yield wms_1024("catalog", zoom, column, row, published=published("catalog", zoom))
    for zoom, column, row in windows[:3]:
        target = {"first": 60, "open": 60, "warm": 12}[state] if zoom == 2 else None
        yield wmts_16("catalog", zoom, column, row, target=target, measured=by_zoom(MEASURED, "catalog wmts", zoom), published=published("catalog wmts", zoom))


def one_product_cases(windows):
    """The deep windows with the one product that covers them all, and four peaks over the basemap."""
    for alias in ("catalog-geo", "catalog-mtgeo"):
        for zoom, column, row in windows:
            if zoom >= 10:
                case = wms_1024(alias, zoom, column, row, extra="&DIM_PRODUCT=solo", published=published(alias, zoom))
                case.name += " one product"
                yield case
    yield Case("WMS_256 z0 base and peaks", [wms("catalog", "base,catalog", tile_box(0, 0, 0, 1, 1), 256, 256, "&DIM_PRODUCT=peak")], 256, published=15.1)
    yield Case("WMS_512 z1 base and peaks", [wms("catalog", "base,catalog", tile_box(1, 0, 0, 2, 2), 512, 512, "&DIM_PRODUCT=peak")], 512, published=115)


class RandomMaps:
    """Maps that somebody may ask for: near a product, at any zoom, along the tiles' edges or not, all products or those of a keyword."""

    def __init__(self, dataset, seed=7):
        self.rnd = random.Random(seed)
        self.items = dataset.items
        self.deepest = dataset.scale.zoom

    def centre(self):
        """A place in a product, which is remembered for its keywords."""
        self.item = item = self.rnd.choice(self.items)
        return self.rnd.uniform(item["minx"], item["maxx"]), self.rnd.uniform(item["miny"], item["maxy"])

    def aligned(self):
        """Alias parameters of a map whose edges are edges of tiles: zoom, box, width, height."""
        zoom = self.rnd.randint(1, self.deepest)
        x, y = self.centre()
        edge = 2 * HALF_WORLD / (1 << zoom)
        across, down = (min(1 << zoom, self.rnd.randint(1, 4)) for _ in range(2))
        column = min(max(int((x + HALF_WORLD) / edge) - self.rnd.randrange(across), 0), (1 << zoom) - across)
        row = min(max(int((HALF_WORLD - y) / edge) - self.rnd.randrange(down), 0), (1 << zoom) - down)
        return zoom, tile_box(zoom, column, row, across, down), 256 * across, 256 * down

    def resampled(self):
        """A map at a resolution between two zooms, anywhere around a product."""
        zoom = self.rnd.uniform(1, self.deepest)
        x, y = self.centre()
        pixel = 2 * HALF_WORLD / 256 / 2 ** zoom
        width, height = self.rnd.randint(200, 1024), self.rnd.randint(200, 1024)
        west, south = x - self.rnd.random() * width * pixel, y - self.rnd.random() * height * pixel
        return zoom, (west, south, west + width * pixel, south + height * pixel), width, height

    def make(self, count):
        """Dictionaries with kind, name, path, half of them aligned."""
        for number in range(count):
            kind = "aligned" if number % 2 == 0 else "resampled"
            zoom, box, width, height = self.aligned() if kind == "aligned" else self.resampled()
            keyword = self.rnd.choice(["%", "%", *self.item["kw"].split(",")])
            layers = self.rnd.choice(["catalog", "catalog", "base,catalog"])
            alias = self.rnd.choice(["catalog", "catalog-geo", "catalog-mtgeo"])
            extra = f"&DIM_PRODUCT={keyword.replace('%', '%25')}"
            yield {"kind": kind, "name": f"{number:03d} {kind} z{zoom:.1f} {layers} {keyword} {alias}", "path": wms(alias, layers, box, width, height, extra)}
