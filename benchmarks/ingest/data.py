"""Images of 1024x608 that are made: a slowly moving field of colours with the noise of a sensor. As a mosaic of 15 columns, each with its own world file; and as a
series of dates, which all lie on the same place."""
import datetime
import os
import pathlib

import numpy
from PIL import Image

WIDTH, HEIGHT, COLUMNS, IMAGES = 1024, 608, 15, 150
PIXEL = 100.0                    # metres of EPSG:3857
WEST, NORTH = -700000, 6500000   # of the mosaic, and of each image of the series
FIRST = datetime.date(2020, 1, 1)
WAVES = 6


def box(column, row):
    """West, south, east, north."""
    west, north = WEST + column * WIDTH * PIXEL, NORTH - row * HEIGHT * PIXEL
    return west, north - HEIGHT * PIXEL, west + WIDTH * PIXEL, north


def world_file(column, row):
    west, _, _, north = box(column, row)
    return "%f\n0\n0\n%f\n%f\n%f\n" % (PIXEL, -PIXEL, west + PIXEL / 2, north - PIXEL / 2)


def pictures(count):
    """Height x width x 3 bytes each."""
    numbers = numpy.random.default_rng(5)
    y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH].astype(numpy.float32)
    phase, along_x, along_y, strength = (numbers.uniform(low, high, (3, WAVES)) for low, high in ((0, 6.28), (.002, .05), (.002, .05), (4, 26)))
    for number in range(count):
        picture = numpy.empty((HEIGHT, WIDTH, 3), numpy.uint8)
        for band in range(3):
            field = numpy.full((HEIGHT, WIDTH), 118, numpy.float32)
            for k in range(WAVES):
                field += strength[band, k] * numpy.sin(along_x[band, k] * x + along_y[band, k] * y + phase[band, k] + .08 * number * (k + 1))
            picture[..., band] = numpy.clip(field + numbers.normal(0, 2.0, (HEIGHT, WIDTH)), 0, 255)
        yield picture


def date_of(number):
    return FIRST + datetime.timedelta(days=number)


def make(folder, count):
    """The folder, with `mosaic` and `series` in it, of the same pixels; made once."""
    folder = pathlib.Path(folder).resolve()
    mosaic, series = folder / "mosaic", folder / "series"
    last = series / f"{date_of(count - 1)}.pgw"
    if last.exists():
        return folder
    for part in (mosaic, series):
        part.mkdir(parents=True, exist_ok=True)
    for number, picture in enumerate(pictures(count)):
        path, dated = mosaic / f"img{number:03d}.png", series / f"{date_of(number)}.png"
        Image.fromarray(picture).save(path, compress_level=6)
        path.with_suffix(".pgw").write_text(world_file(number % COLUMNS, number // COLUMNS))
        dated.unlink(missing_ok=True)
        os.link(path, dated)
        dated.with_suffix(".pgw").write_text(world_file(0, 0))
    return folder


def mosaic(folder, count):
    return [folder / "mosaic" / f"img{number:03d}.png" for number in range(count)]


def series(folder, count):
    return [folder / "series" / f"{date_of(number)}.png" for number in range(count)]
