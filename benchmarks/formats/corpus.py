"""True-colour pictures of each kind that a map server writes: drawn maps, overlays, relief, maps over relief, and what looks like photographs. The same ones in each run."""
import math
import random
import struct

import numpy
from catalog.pictures import PALETTES, fractal, ramp, shade, texture
from PIL import Image, ImageDraw, ImageFont

FINE = 3  # drawn that many times larger, then made smaller: soft borders
LAND = (242, 239, 233, 255)
AREAS = [((173, 209, 158), 14, 200), ((200, 250, 204), 12, 120), ((170, 211, 223), 8, 180), ((224, 223, 223), 30, 100)]
ROADS = [(5, (200, 200, 200), (255, 255, 255), 50), (8, (215, 180, 120), (247, 250, 191), 14), (11, (220, 110, 90), (252, 214, 164), 6)]
PARTS = ["ba", "ko", "ri", "ten", "fel", "mo", "su", "wald", "berg", "dorf"]


def ring(numbers, x, y, radius, count=24):
    turns = [2 * math.pi * i / count for i in range(count)]
    return [(x + radius * (.7 + .5 * numbers.random()) * math.cos(turn), y + radius * (.7 + .5 * numbers.random()) * math.sin(turn)) for turn in turns]


def house(numbers, edge):
    x, y, turn = numbers.random() * edge, numbers.random() * edge, numbers.random() * 3
    width, depth = (6 + numbers.random() * 16) * FINE, (6 + numbers.random() * 12) * FINE
    corners = ((0, 0), (1, 0), (1, 1), (0, 1))
    return [(x + a * width * math.cos(turn) - b * depth * math.sin(turn), y + a * width * math.sin(turn) + b * depth * math.cos(turn)) for a, b in corners]


def road(numbers, edge):
    x, y, turn, line = numbers.random() * edge, numbers.random() * edge, numbers.random() * 6.3, []
    for _ in range(30):
        line.append((x, y))
        turn += numbers.gauss(0, .25)
        x, y = x + math.cos(turn) * 25 * FINE, y + math.sin(turn) * 25 * FINE
    return line


def draw_areas(pen, numbers, edge, size):
    for colour, count, radius in AREAS:
        for _ in range(count):
            pen.polygon(ring(numbers, numbers.random() * edge, numbers.random() * edge, radius * (.5 + numbers.random()) * size / 340), fill=(*colour, 255))
    for _ in range(size):
        pen.polygon(house(numbers, edge), fill=(217, 208, 201, 255), outline=(190, 180, 170, 255))


def draw_names(pen, numbers, edge, size):
    font = ImageFont.truetype("DejaVuSans.ttf", 12 * FINE)
    for _ in range(size // 12):
        name = "".join(numbers.choice(PARTS) for _ in range(numbers.randint(2, 4))).title()
        pen.text((numbers.random() * edge, numbers.random() * edge), name, font=font, fill=(40, 40, 40, 255), stroke_width=FINE, stroke_fill=(255, 255, 255, 255))


def drawn_map(size, seed, areas):
    """Areas, houses, roads of three classes with their casings, and names; without areas on a transparent ground. RGBA."""
    numbers, edge = random.Random(seed), size * FINE
    picture = Image.new("RGBA", (edge, edge), LAND if areas else (0, 0, 0, 0))
    pen = ImageDraw.Draw(picture)
    if areas:
        draw_areas(pen, numbers, edge, size)
    for width, casing, fill, count in ROADS:
        lines = [road(numbers, edge) for _ in range(max(count * size // 512, 1))]
        for colour, wide in ((casing, width), (fill, width - 2)):
            for line in lines:
                pen.line(line, fill=(*colour, 255), width=wide * FINE, joint="curve")
    draw_names(pen, numbers, edge, size)
    return numpy.array(picture.resize((size, size), Image.BOX))


def opaque(rgb):
    return numpy.dstack([rgb, numpy.full(rgb.shape[:2], 255, numpy.uint8)])


def relief(size, seed):
    height = fractal(size, seed, 2.0, 1.5)
    return numpy.clip(ramp(height, PALETTES[1]) * shade(height, 12.0)[..., None], 0, 255).astype(numpy.uint8)


def map_over(ground, size, seed):
    over = drawn_map(size, seed, False).astype(float)
    share = over[..., 3:] / 255
    return (ground * (1 - share) + over[..., :3] * share).astype(numpy.uint8)


def footprint(rgb):
    """One scene of imagery, turned, on a transparent ground."""
    size = rgb.shape[0]
    mask = Image.new("L", (size, size), 0)
    ImageDraw.Draw(mask).polygon([(size * x, size * y) for x, y in ((.2, .1), (.88, .24), (.76, .93), (.09, .74))], fill=255)
    alpha = numpy.array(mask)
    return numpy.dstack([rgb * (alpha > 0)[..., None], alpha]).astype(numpy.uint8)


def pictures(size):
    """Name and RGBA pixels, straight alpha."""
    yield "drawn map", drawn_map(size, 1, True)
    yield "overlay", drawn_map(size, 2, False)
    yield "relief", opaque(relief(size, 3))
    yield "map over relief", opaque(map_over(relief(size, 9), size, 4))
    yield "photograph", opaque(texture(0, size, 5))
    yield "calm photograph", opaque(texture(2, size, 6))
    yield "scene", footprint(texture(3, size, 7))


def read_photographs(folder, size):
    """Pictures of the user's own, their middle."""
    for path in sorted(folder.iterdir()):
        picture = Image.open(path).convert("RGB")
        edge = min(picture.size)
        left, top = (picture.width - edge) // 2, (picture.height - edge) // 2
        yield path.stem, opaque(numpy.array(picture.crop((left, top, left + edge, top + edge)).resize((size, size), Image.LANCZOS)))


def write_raw(path, rgba):
    """Width and height, then rows of R, G, B, A: what micro_formats reads."""
    path.write_bytes(struct.pack("<2I", rgba.shape[1], rgba.shape[0]) + rgba.astype(numpy.uint8).tobytes())
