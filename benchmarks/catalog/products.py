"""Which products the catalogue holds and where they lie: EPSG:3857 metres, the same for the same seed."""
import random

HALF_WORLD = 20037508.3427892480
TILE = 256
UNIT = 2 * HALF_WORLD / 4096  # a tile of zoom 12, about 9784 m
SHAPES = {"h": (12, 8), "v": (8, 12), "s": (10, 10)}  # width and height in units

# name, centre, shape, keywords
NAMED = [
    ("bern", 828195, 5933741, "h", "un,europe"), ("geneva", 685269, 5813644, "h", "un,europe"),
    ("london", -8439, 6711752, "s", "un,europe"), ("madrid", -410918, 4925262, "v", "un,europe"),
    ("montreal", -8197998, 5702978, "v", "un,america"), ("nairobi", 4099769, -143816, "s", "un,africa"),
    ("newyork", -8233564, 4979863, "v", "un,america"), ("paris", 260025, 6251309, "s", "un,europe"),
    ("rome", 1389633, 5146158, "v", "un,europe"), ("thehague", 481406, 6814756, "s", "un,europe"),
    ("vienna", 1822648, 6141611, "h", "un,europe"), ("washington", -8575669, 4707022, "v", "un,america"),
    ("kilimanjaro", 4158738, -341315, "s", "peak,africa"), ("aconcagua", -7793642, -3849409, "s", "peak,america"),
    ("everest", 9676427, 3247443, "s", "peak,asia"), ("elbrus", 4724162, 5365787, "s", "peak,europe"),
]
# prefix, how many of 401, keywords, box of the centres
REGIONS = [
    ("usa", 200, "usa,america", (-12973503, 3456176, -9069712, 6281289)),
    ("europe", 80, "europe", (523440, 5557277, 3204240, 7044436)),
    ("australia", 105, "australia,oceania", (13585000, -3708113, 16256015, -1995923)),
]
# The windows of zoom 10 to 13 all lie inside the first of these products (the others overlap it), so that none of them is empty.
HOT = (-10408000.0, 5609000.0)
HOT_OFFSETS = [(0, 0, "s"), (-32000, 18000, "h"), (27000, -22000, "v"), (15000, 30000, "s"), (-22000, -34000, "h"), (52000, 9000, "v")]


class Scale:
    """How much data: `small` for a try in seconds, `full` as large as the case study."""

    def __init__(self, full, seed=20260101):
        self.full, self.seed = full, seed
        self.name = "full" if full else "small"
        self.products = 401 if full else 40
        self.zoom = 10 if full else 9          # of an ordinary product
        self.hot_zoom = 13 if full else 9      # of those under the windows
        self.base_zoom = 6 if full else 4
        self.world = 4096 if full else 2048    # edge of the basemap's picture, pixels
        self.texture = 2048 if full else 1024  # edge of the products' periodic textures, pixels


def clamp(value, low, high):
    return min(high, max(low, value))


def place(rnd, box, centres):
    """Shape and centre of an ordinary product: half of them gather around the centres of clusters."""
    shape = rnd.choice("hvs")
    west, south, east, north = box
    if rnd.random() < 0.5:
        x, y = rnd.choice(centres)
        return shape, clamp(rnd.gauss(x, 110e3), west, east), clamp(rnd.gauss(y, 110e3), south, north)
    return shape, rnd.uniform(west, east), rnd.uniform(south, north)


def region_products(rnd, region, share):
    prefix, count, keywords, box = region
    west, south, east, north = box
    count = int(round(count * share))
    centres = [(rnd.uniform(west, east), rnd.uniform(south, north)) for _ in range(max(1, count // 14))]
    for i in range(count):
        hot = prefix == "usa" and i < len(HOT_OFFSETS)
        if hot:
            dx, dy, shape = HOT_OFFSETS[i]
            x, y = HOT[0] + dx, HOT[1] + dy
        else:
            shape, x, y = place(rnd, box, centres)
        name = f"{prefix}_{i:03d}_{rnd.getrandbits(32):08x}"
        yield {"name": name, "x": x, "y": y, "shape": shape, "hot": hot, "keywords": keywords + ",solo" if hot and i == 0 else keywords}


def product_list(scale):
    """All products, with their boxes and deepest zooms, in the order of the catalogue (the last one is drawn on top)."""
    rnd = random.Random(scale.seed)
    products = [{"name": name, "x": x, "y": y, "shape": shape, "hot": False, "keywords": keywords} for name, x, y, shape, keywords in NAMED]
    share = 1.0 if scale.full else max(0.0, (scale.products - len(NAMED)) / 385.0)
    for region in REGIONS:
        products += region_products(rnd, region, share)
    for index, product in enumerate(products):
        width, height = SHAPES[product["shape"]]
        x, y = product["x"], product["y"]
        product.update(index=index, minx=round(x - width * UNIT / 2, 2), maxx=round(x + width * UNIT / 2, 2),
                       miny=round(y - height * UNIT / 2, 2), maxy=round(y + height * UNIT / 2, 2),
                       zmax=scale.hot_zoom if product["hot"] else scale.zoom)
    return products
