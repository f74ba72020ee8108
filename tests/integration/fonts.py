"""Fonts made for tests: families of which each knows its own characters, drawn as full squares."""
import struct


def _table_sum(data):
    data += b"\0" * (-len(data) % 4)
    return sum(struct.unpack(f">{len(data) // 4}I", data)) & 0xFFFFFFFF


def _names(family):
    records, text = b"", b""
    for number, name in ((1, family), (2, "Regular"), (4, family), (6, family.replace(" ", ""))):
        encoded = name.encode("utf-16-be")
        records += struct.pack(">6H", 3, 1, 0x409, number, len(encoded), len(text))
        text += encoded
    return struct.pack(">3H", 0, 4, 6 + len(records)) + records + text


def _glyph(left, bottom, right, top):
    """A square of four corners, all of them on the outline."""
    points = [(left, bottom), (left, top), (right, top), (right, bottom)]
    steps = [(x - px, y - py) for (x, y), (px, py) in zip(points, [(0, 0), *points[:-1]])]
    glyph = struct.pack(">5hHH", 1, left, bottom, right, top, 3, 0) + bytes([1] * 4)
    glyph += b"".join(struct.pack(">h", x) for x, _ in steps) + b"".join(struct.pack(">h", y) for _, y in steps)
    return glyph + b"\0" * (-len(glyph) % 4)


def make_font(path, family, characters):
    """A TrueType font: characters are squares of 0.8 em; what it lacks is a square of a fifth of that."""
    lacking, full = _glyph(0, 0, 160, 160), _glyph(0, 0, 800, 800)
    groups = b"".join(struct.pack(">3I", c, c, 1) for c in sorted(characters))
    tables = {
        b"OS/2": struct.pack(">HhHHHhhhhhhhhhhh10s4I4sHHHhhhHH2Ihh3H", 4, 900, 400, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, bytes(10),
                             0, 0, 0, 0, b"TEST", 0x40, min(characters) & 0xFFFF, max(characters) & 0xFFFF, 800, -200, 0, 800, 200,
                             0, 0, 500, 800, 0, 32, 1),
        b"cmap": struct.pack(">2H2HI", 0, 1, 3, 10, 12) + struct.pack(">2H3I", 12, 0, 16 + len(groups), 0, len(characters)) + groups,
        b"glyf": lacking + full,
        b"head": struct.pack(">2I2I2H2q4h2H3h", 0x10000, 0x10000, 0, 0x5F0F3CF5, 0, 1000, 0, 0, 0, 0, 800, 800, 0, 8, 2, 1, 0),
        b"hhea": struct.pack(">I3hH11hH", 0x10000, 800, -200, 0, 900, 0, 0, 800, 1, 0, 0, 0, 0, 0, 0, 0, 2),
        b"hmtx": struct.pack(">4h", 900, 0, 900, 0),
        b"loca": struct.pack(">3I", 0, len(lacking), len(lacking) + len(full)),
        b"maxp": struct.pack(">I14H", 0x10000, 2, 4, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0),
        b"name": _names(family),
        b"post": struct.pack(">2i2h5I", 0x30000, 0, -100, 50, 0, 0, 0, 0, 0),
    }
    head = struct.pack(">I4H", 0x10000, len(tables), 128, 3, len(tables) * 16 - 128)
    place, records, body = 12 + 16 * len(tables), b"", b""
    for tag, data in sorted(tables.items()):
        records += struct.pack(">4s3I", tag, _table_sum(data), place + len(body), len(data))
        body += data + b"\0" * (-len(data) % 4)
    path.write_bytes(head + records + body)


def configure(folder, directories):
    """A configuration of fontconfig's that knows the fonts of some folders and no others; its path."""
    path = folder / "fonts.conf"
    path.write_text('<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>'
                    + "".join(f"<dir>{directory}</dir>" for directory in directories)
                    + f"<cachedir>{folder}/font-cache</cachedir></fontconfig>")
    return path
