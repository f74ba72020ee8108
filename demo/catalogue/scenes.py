"""Pictures of the products: the Blue Marble, a shaded relief and the borders of Natural Earth over a product's box, in one of five
processings, and the pyramid of PNG tiles that is cut out of it. Coordinates are EPSG:3857 metres, rows count from the top."""
import io
import math
import random
import zlib

import numpy
from osgeo import ogr
from PIL import Image, ImageDraw, ImageFilter, ImageFont

ogr.UseExceptions()
Image.MAX_IMAGE_PIXELS = None
HALF = 20037508.342789248
TILE = 256
STYLES = ["natural", "infrared", "panchromatic", "relief", "map"]
LINES = {"relief": ((90, 60, 40), 2.0), "map": ((120, 60, 110), 3.0)}  # colour, width in pixels
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"


def resolution(zoom):
    return 2 * HALF / TILE / 2**zoom


def longitude(x):
    return x / HALF * 180


def latitude(y):
    return math.degrees(2 * math.atan(math.exp(y / HALF * math.pi)) - math.pi / 2)


class Sources:
    """The pictures and lines that every product takes its part of; opened once, shared by the processes that draw."""

    def __init__(self, folder):
        self.marble, self.relief = (Image.open(folder / name).convert("RGB") for name in ("bluemarble.jpg", "relief.jpg"))
        self.countries = folder / "countries.fgb"

    def part(self, picture, box, size):
        """A box of a picture of the whole world in degrees, as floats from 0 to 1. What a product's height spans is straight
        enough for a linear scale between its latitudes: a fifth of a pixel of the picture at 60 degrees."""
        minx, miny, maxx, maxy = box
        width, height = picture.size
        part = ((longitude(minx) + 180) / 360 * width, (90 - latitude(maxy)) / 180 * height,
                (longitude(maxx) + 180) / 360 * width, (90 - latitude(miny)) / 180 * height)
        return numpy.asarray(picture.resize(size, Image.BICUBIC, box=part), numpy.float32) / 255

    def lines(self, box):
        """Coasts and borders within a box: lists of points in pixels of a picture of 1 by 1."""
        minx, miny, maxx, maxy = box
        frame = ogr.CreateGeometryFromWkt("POLYGON(({0} {1},{2} {1},{2} {3},{0} {3},{0} {1}))".format(
            longitude(minx), latitude(miny), longitude(maxx), latitude(maxy)))
        dataset = ogr.Open(str(self.countries))
        layer = dataset.GetLayer(0)
        layer.SetSpatialFilter(frame)
        for feature in layer:
            clipped = feature.GetGeometryRef().Intersection(frame)
            for index in range(max(clipped.GetGeometryCount(), 1)):
                line = clipped.GetGeometryRef(index) if clipped.GetGeometryCount() else clipped
                if line.GetPointCount() < 2:
                    continue
                degrees = numpy.array(line.GetPoints())[:, :2]
                x = degrees[:, 0] / 180 * HALF
                y = numpy.log(numpy.tan((90 + degrees[:, 1]) * math.pi / 360)) / math.pi * HALF
                yield numpy.column_stack([(x - minx) / (maxx - minx), (maxy - y) / (maxy - miny)])


def grain(size, dice):
    """Noise of several widths between -1 and 1: magnified pictures have no detail of their own."""
    result = numpy.zeros((size[1], size[0]), numpy.float32)
    for cells, weight in ((3, 0.35), (9, 0.25), (27, 0.2), (81, 0.15), (243, 0.1)):
        shape = (max(2, cells * size[1] // size[0]), cells)
        noise = numpy.frombuffer(dice.randbytes(shape[0] * shape[1]), numpy.uint8).reshape(shape)
        result += weight * (numpy.asarray(Image.fromarray(noise).resize(size, Image.BICUBIC), numpy.float32) / 127.5 - 1)
    return result


def slopes(relief):
    """The shading alone, around 1."""
    gray = Image.fromarray((relief.mean(axis=2) * 255).astype(numpy.uint8))
    even = numpy.asarray(gray.filter(ImageFilter.GaussianBlur(max(gray.size) / 12)), numpy.float32)
    return numpy.clip((numpy.asarray(gray, numpy.float32) + 1) / (even + 1), 0.5, 1.5)


def processed(style, marble, relief, noise):
    """Red, green and blue between 0 and 1 in one of the processings."""
    shade = (slopes(relief) ** 1.5 * (1 + 0.16 * noise))[..., None]
    bright = numpy.clip(marble, 0, 1) ** 0.65
    red, green, blue = (bright[..., band] for band in range(3))
    if style == "natural":
        return bright * numpy.float32([1.05, 1.08, 0.95]) * shade
    if style == "infrared":
        return numpy.stack([1.75 * green - 0.55 * blue, 0.75 * red, 0.35 * green + 0.45 * blue], axis=2) * shade
    if style == "panchromatic":
        return (0.45 * red + 0.9 * green + 0.1 * blue)[..., None] * shade * numpy.ones(3, numpy.float32)
    if style == "relief":
        return relief * (1 + 0.06 * noise)[..., None]
    sea = (relief[..., 2] > relief[..., 1] + 0.03)[..., None]  # low land is green, the sea is blue
    return numpy.where(sea, numpy.float32([0.67, 0.83, 0.93]), numpy.float32([0.96, 0.94, 0.88]) * (1 + 0.35 * (shade - 1)))


def draw(sources, product):
    """The picture of a product at its last level, opaque."""
    box, size = product["box"], product["size"]
    dice = random.Random(zlib.crc32(product["name"].encode()))
    colors = processed(product["style"], sources.part(sources.marble, box, size), sources.part(sources.relief, box, size),
                       grain(size, dice))
    picture = Image.fromarray((numpy.clip(colors, 0, 1) * 255).astype(numpy.uint8))
    if product["style"] in LINES:
        color, width = LINES[product["style"]]
        twice = Image.new("L", (2 * size[0], 2 * size[1]))  # drawn at twice the size: lines without steps
        pen = ImageDraw.Draw(twice)
        for line in sources.lines(box):
            pen.line([tuple(point) for point in line * twice.size], fill=255, width=round(width * 2), joint="curve")
        picture.paste(color, mask=twice.resize(size, Image.BOX))
    pen = ImageDraw.Draw(picture)
    pen.text((10, size[1] - 26), f"{product['name']}  {product['taken']}", fill="white", stroke_width=2,
             stroke_fill=(20, 24, 30), font=ImageFont.truetype(FONT, 14))
    return numpy.asarray(picture)


def halved(pixels, left, top):
    """Half the size by averages of four, on the lattice of the level above. Colours are multiplied by opacity, so that what
    is outside does not darken the edges. Returns pixels, left, top."""
    height, width = pixels.shape[:2]
    pixels = numpy.pad(pixels, ((top % 2, (top + height) % 2), (left % 2, (left + width) % 2), (0, 0)))
    return (pixels[::2, ::2] + pixels[1::2, ::2] + pixels[::2, 1::2] + pixels[1::2, 1::2]) / 4, left // 2, top // 2


def plain(pixels):
    """Red, green, blue and alpha in bytes out of premultiplied floats."""
    alpha = pixels[..., 3:]
    result = numpy.empty(pixels.shape, numpy.uint8)
    result[..., :3] = numpy.divide(pixels[..., :3] * 255, alpha, out=numpy.zeros_like(pixels[..., :3]), where=alpha > 0) + 0.5
    result[..., 3] = pixels[..., 3] * 255 + 0.5
    return result


def encoded(tile):
    """PNG bytes; opaque tiles have no alpha channel. None where there is nothing."""
    if not tile[..., 3].any():
        return None
    picture = Image.fromarray(tile[..., :3] if tile[..., 3].min() == 255 else tile)
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=6)
    return file.getvalue()


def tiles(sources, product):
    """All tiles of a product: (zoom, column, row from the top, PNG bytes)."""
    left, top = product["corner"]
    picture = draw(sources, product)
    pixels = numpy.concatenate([picture / numpy.float32(255), numpy.ones((*picture.shape[:2], 1), numpy.float32)], axis=2)
    for zoom in range(product["zoom"], -1, -1):
        shown = plain(pixels)
        height, width = shown.shape[:2]
        for row in range(top // TILE, (top + height - 1) // TILE + 1):
            for column in range(left // TILE, (left + width - 1) // TILE + 1):
                x, y = column * TILE - left, row * TILE - top  # of the tile's corner in the picture
                part = shown[max(y, 0):y + TILE, max(x, 0):x + TILE]
                tile = numpy.zeros((TILE, TILE, 4), numpy.uint8)
                tile[max(-y, 0):, max(-x, 0):][:part.shape[0], :part.shape[1]] = part
                data = encoded(tile)
                if data is not None:
                    yield zoom, column, row, data
        pixels, left, top = halved(pixels, left, top)
