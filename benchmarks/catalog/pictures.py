"""What the tiles show: fractal terrain in a few palettes, with fine grain and roads; PNG and JPEG encoding."""
import functools
import io

import numpy
from PIL import Image

LAND = [(-3, (10, 26, 62)), (-.6, (24, 66, 118)), (-.05, (70, 132, 168)), (0, (214, 202, 160)), (.12, (104, 134, 74)),
        (.8, (86, 112, 58)), (1.5, (138, 116, 82)), (2.2, (178, 168, 158)), (3, (248, 248, 250))]
PALETTES = [
    LAND,
    [(-3, (226, 222, 212)), (-1, (196, 210, 180)), (0, (170, 196, 150)), (1, (238, 230, 196)), (3, (206, 178, 140))],
    [(-3, (60, 72, 50)), (-1, (92, 104, 64)), (0, (128, 120, 84)), (1, (176, 150, 112)), (3, (226, 214, 196))],
    [(-3, (40, 40, 46)), (-.5, (92, 94, 100)), (.5, (160, 162, 166)), (3, (244, 244, 246))],
]


def fractal(edge, seed, slope, lowest=1.0):
    """Periodic noise of edge x edge pixels with a spectrum f**-slope above a lowest frequency: mean zero, deviation one."""
    rng = numpy.random.default_rng(seed)
    frequency = numpy.hypot(numpy.fft.fftfreq(edge)[:, None] * edge, numpy.fft.rfftfreq(edge)[None, :] * edge).astype(numpy.float32)
    frequency[0, 0] = 1
    amplitude = numpy.where(frequency < lowest, 0, frequency ** (-slope))
    phase = rng.random(frequency.shape, dtype=numpy.float32) * (2 * numpy.pi)
    field = numpy.fft.irfft2(amplitude * (numpy.cos(phase) + 1j * numpy.sin(phase)), s=(edge, edge)).astype(numpy.float32)
    return (field - field.mean()) / field.std()


def shade(height, strength):
    """Light from the upper left: a factor for each pixel."""
    dx = numpy.roll(height, -1, 1) - numpy.roll(height, 1, 1)
    dy = numpy.roll(height, -1, 0) - numpy.roll(height, 1, 0)
    return numpy.clip(0.78 + strength * (dx + dy), 0.35, 1.25)


def ramp(values, stops):
    """Colours of a field of values by linear interpolation between (value, colour)."""
    positions = [position for position, _ in stops]
    return numpy.stack([numpy.interp(values, positions, [colour[c] for _, colour in stops]) for c in range(3)], -1).astype(numpy.float32)


@functools.lru_cache(maxsize=None)
def texture(palette, edge, seed):
    """A periodic RGB picture of terrain, edge x edge."""
    height = fractal(edge, seed * 131 + palette, 1.75, 2)
    rgb = ramp(height, PALETTES[palette]) * shade(height, 6.0)[..., None]
    rgb += (fractal(edge, seed * 137 + palette, 0.9, 8) * 1.2)[..., None]
    roads = numpy.abs(fractal(edge, seed * 139 + palette, 1.9, 3)) < 0.012
    rgb[roads] = rgb[roads] * 0.35 + numpy.array((232, 214, 150), numpy.float32) * 0.65
    return numpy.clip(rgb, 0, 255).astype(numpy.uint8)


@functools.lru_cache(maxsize=None)
def world(edge, seed):
    """The basemap's picture (about 38 % land) and the grain that deep zooms get on top."""
    height = fractal(edge, seed * 11 + 5, 1.55, 1.5)
    height -= numpy.quantile(height, 0.62)
    height /= height.std()
    rgb = numpy.clip(ramp(height, LAND) * shade(height, 9.0)[..., None], 0, 255).astype(numpy.uint8)
    return rgb, fractal(1024, seed * 11 + 9, 0.8, 6)


def png(rgba):
    out = io.BytesIO()
    Image.fromarray(rgba, "RGBA").save(out, "PNG", compress_level=6)
    return out.getvalue()


def jpeg(rgb, quality=82):
    out = io.BytesIO()
    Image.fromarray(rgb, "RGB").save(out, "JPEG", quality=quality)
    return out.getvalue()
