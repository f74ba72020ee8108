"""How a script puts the images of a series into PostgreSQL as a cube of 32x32 pixels x all dates: what ours is compared with. The first way is what is left when a
script has memory for the whole cube; the others do what an array database does that stores each image when it comes: every tile is read, changed and written for
each image, so they are run for a few images and extrapolated, which flatters them (tiles are empty in the beginning, and compress)."""
import io
import struct
import time

import numpy
import psycopg2
from PIL import Image

from ingest.data import HEIGHT, WIDTH

SIDE = 32
HEAD = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
WAYS = {"assembled in memory, COPY": "assembled", "read, changed, written as large objects": "objects", "read, changed, written as bytea": "rows"}


def decode(path):
    with Image.open(path) as image:
        return numpy.asarray(image.convert("RGB"))


def tiles_of(picture):
    """rows x columns x side x side x 3"""
    rows, columns = picture.shape[0] // SIDE, picture.shape[1] // SIDE
    return picture.reshape(rows, SIDE, columns, SIDE, 3).transpose(0, 2, 1, 3, 4)


def copy_rows(cursor, rows):
    """Numbers and bytes, in the binary form of COPY."""
    text = io.BytesIO()
    text.write(HEAD)
    for number, data in rows:
        text.write(struct.pack("!hiii", 2, 4, number, len(data)))
        text.write(data)
    text.write(struct.pack("!h", -1))
    text.seek(0)
    cursor.copy_expert("COPY cube FROM STDIN WITH (FORMAT binary)", text, 1 << 20)


def assembled(connection, cursor, paths, _):
    rows, columns = HEIGHT // SIDE, WIDTH // SIDE
    cube = numpy.empty((rows, columns, len(paths), SIDE, SIDE, 3), numpy.uint8)
    for number, path in enumerate(paths):
        cube[:, :, number] = tiles_of(decode(path))
    for y in range(rows):
        copy_rows(cursor, [(y * columns + x, cube[y, x].tobytes()) for x in range(columns)])
    connection.commit()
    return len(paths)


class Objects:
    """Tiles as large objects."""

    def __init__(self, connection, cursor, count, empty):
        self.connection, self.numbers = connection, []
        for number in range(count):
            made = connection.lobject(0, "wb")
            made.write(empty)
            made.close()
            self.numbers.append(made.oid)
            cursor.execute("INSERT INTO cube VALUES(%s, %s)", (number, struct.pack("!I", made.oid)))

    def change(self, number, change):
        tile = self.connection.lobject(self.numbers[number], "rwb")
        data = change(tile.read())
        tile.seek(0)
        tile.write(data)
        tile.close()


class Rows:
    """Tiles as rows."""

    def __init__(self, _, cursor, count, empty):
        self.cursor = cursor
        for number in range(count):
            cursor.execute("INSERT INTO cube VALUES(%s, %s)", (number, psycopg2.Binary(empty)))

    def change(self, number, change):
        self.cursor.execute("SELECT data FROM cube WHERE id = %s", (number,))
        data = change(self.cursor.fetchone()[0])
        self.cursor.execute("UPDATE cube SET data = %s WHERE id = %s", (psycopg2.Binary(data), number))


def changed(store, connection, cursor, paths, limit):
    """A commit for each image; as many of them as the limit says. The empty cube is not counted."""
    size, rows, columns = SIDE * SIDE * 3, HEIGHT // SIDE, WIDTH // SIDE
    tiles = store(connection, cursor, rows * columns, bytes(size * len(paths)))
    connection.commit()
    began = time.monotonic()
    for number, path in enumerate(paths[:limit]):
        part = tiles_of(decode(path))

        def put(data, at=number):
            out = bytearray(data)
            out[at * size:(at + 1) * size] = piece
            return bytes(out)
        for index in range(rows * columns):
            piece = part[index // columns, index % columns].tobytes()
            tiles.change(index, put)
        connection.commit()
    return min(limit, len(paths)), time.monotonic() - began


def run(way, database, paths, limit):
    """Figures of one way, in a database of its own: seconds for all images (`measured` of them), sizes in MB."""
    database.sql("DROP DATABASE IF EXISTS script")
    database.sql("CREATE DATABASE script")
    connection = psycopg2.connect(database.connection().replace("dbname=postgres", "dbname=script"))
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE cube(id integer PRIMARY KEY, data bytea)")
    if way != "objects":
        cursor.execute("ALTER TABLE cube ALTER data SET STORAGE external")
    connection.commit()
    before = database.size("script"), database.logged()
    began = time.monotonic()
    if way == "assembled":
        measured, seconds = assembled(connection, cursor, paths, limit), None
    else:
        measured, seconds = changed(Objects if way == "objects" else Rows, connection, cursor, paths, limit)
    seconds = time.monotonic() - began if seconds is None else seconds
    connection.close()
    figures = {"seconds": seconds * len(paths) / measured, "measured": measured, "images": len(paths), "size": database.size("script"), "before": before[0],
               "logged": (database.logged() - before[1]) * len(paths) / measured}
    database.sql("DROP DATABASE script")
    return figures
