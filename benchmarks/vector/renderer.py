#!/usr/bin/python3
"""Draws image tiles by the library of a peer, without a server around it: renderer.py maplibre|mapnik STYLE EDGE.

A line on standard input is a JSON list: level, column, row from the top, and the path of a file for the picture. The answer to each is a line, with the bytes of the
picture or "error" and why. The first line says which version the library has.
"""
import json
import math
import sys

HALF = 20037508.342789244


def box_of(level, column, row):
    side = 2 * HALF / 2 ** level
    return column * side - HALF, HALF - (row + 1) * side, (column + 1) * side - HALF, HALF - row * side


def maplibre(style, edge):
    import pymgl
    canvas = pymgl.Map(style, edge, edge, 1)

    def draw(level, column, row):
        x, y = (column + .5) / 2 ** level, (row + .5) / 2 ** level
        canvas.setCenter(x * 360 - 180, math.degrees(math.atan(math.sinh(math.pi * (1 - 2 * y)))))
        canvas.setZoom(level)
        return canvas.renderPNG()
    return pymgl.__version__, draw


def mapnik(style, edge):
    import mapnik as library
    canvas = library.Map(edge, edge)
    library.load_map_from_string(canvas, style)

    def draw(level, column, row):
        canvas.zoom_to_box(library.Box2d(*box_of(level, column, row)))
        picture = library.Image(edge, edge)
        library.render(canvas, picture)
        return picture.tostring("png32")
    return ".".join(str(library.mapnik_version() // unit % 100) for unit in (100000, 100, 1)), draw


def main():
    kind, style, edge = sys.argv[1:]
    with open(style, encoding="utf-8") as text:
        version, draw = {"maplibre": maplibre, "mapnik": mapnik}[kind](text.read(), int(edge))
    print(version, flush=True)
    for line in sys.stdin:
        *tile, path = json.loads(line)
        try:
            picture = draw(*tile)
        except RuntimeError as error:
            print("error", str(error).replace("\n", " "), flush=True)
            continue
        if path:
            with open(path, "wb") as out:
                out.write(picture)
        print(len(picture), flush=True)


if __name__ == "__main__":
    main()
