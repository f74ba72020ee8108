#!/usr/bin/python3
"""Pictures for docs/drawing.md: the same box in the same style by ours, MapServer and, where python3-qgis is installed, QGIS, side by side; and how much they differ.
Usage: pictures.py [--out docs/pictures]. The data is made or in the public domain but for the towns (GeoNames, CC BY 4.0)."""
import argparse
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

from PIL import Image, ImageDraw, ImageFont

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import frontends  # noqa: E402
from common.database import Database  # noqa: E402
from common.pixels import compare  # noqa: E402
from common.run import begin  # noqa: E402
from common.servers import ROOT, make_folder  # noqa: E402
from load import config as world_config  # noqa: E402
from load import data as world_data  # noqa: E402
from postgis import config  # noqa: E402
from postgis.data import SRID, Data  # noqa: E402

WIDTH, HEIGHT, TITLE = 420, 300, 22
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
# name, set of data, centre, units for a pixel
PLACES = (("villages", "villages", (650000, 190000), 120), ("roads", "roads", (600000, 200000), 15))
WORLDS = (("world", (1500000, 6000000), 9800), ("counties", (-9400000, 4150000), 1800))


def box_around(centre, pixel):
    return centre[0] - WIDTH / 2 * pixel, centre[1] - HEIGHT / 2 * pixel, centre[0] + WIDTH / 2 * pixel, centre[1] + HEIGHT / 2 * pixel


def sized(path):
    """The queries are for maps of other sizes."""
    head, _, _ = path.rpartition("&WIDTH=")
    return f"{head}&WIDTH={WIDTH}&HEIGHT={HEIGHT}"


def by_qgis(box, epsg, background, files):
    """PNG, or None without QGIS."""
    with tempfile.TemporaryDirectory(prefix="mapcache-qgis-") as folder:  # it leaves folders of its own there
        script, out = pathlib.Path(__file__).with_name("qgis_map.py"), pathlib.Path(folder) / "map.png"
        done = subprocess.run(["/usr/bin/python3", script, out, str(WIDTH), str(HEIGHT), ",".join(map(str, box)), str(epsg), background, *map(str, files)],
                              capture_output=True, text=True, env={**os.environ, "TMPDIR": folder})
        print(*(line for line in done.stderr.splitlines() if "left out" in line or "Error" in line), sep="\n", end="", file=sys.stderr)
        return out.read_bytes() if out.exists() else None


def fetch(server, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{frontends.port_of(server)}{path}") as reply:
        return reply.read()


def side_by_side(pictures):
    """Titled panels as one PNG of at most 256 colours."""
    panels = [(title, body) for title, body in pictures if body is not None]
    sheet = Image.new("RGB", (len(panels) * (WIDTH + 8) - 8, HEIGHT + TITLE), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.truetype(FONT, 13)
    for number, (title, body) in enumerate(panels):
        left = number * (WIDTH + 8)
        draw.text((left + 4, 3), title, "black", font)
        sheet.paste(Image.open(io.BytesIO(body)).convert("RGB"), (left, TITLE))
    return sheet.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)


def tell(name, ours, others):
    for title, body in others:
        if body is not None:
            found = compare(ours, body)
            print(f"| {name} | {title} | {found['max']} | {100 * found['over3']:.2f} % | {found['psnr']:.1f} dB |")


def keep(out, name, ours, theirs, qgis):
    side_by_side([("mapcache", ours), ("MapServer 8.0", theirs), ("QGIS 3.22", qgis)]).save(out / f"compare-{name}.png", optimize=True)
    tell(name, ours, [("MapServer", theirs), ("QGIS", qgis)])


def countries(out, work):
    folder = make_folder("pictures")
    with Database() as database:
        data = Data(work / "postgis", database)
        names = [place[1] for place in PLACES]
        for name in names:
            data.load(name)
        own = config.write_ours(folder, names, ["binary"], data)
        config.write_map_files(folder, names, data)
        with frontends.module("pictures", own) as ours, frontends.mapserver_fcgid("pictures-peer", folder, 2) as peer:
            for name, table, centre, pixel in PLACES:
                box = box_around(centre, pixel)
                keep(out, name, fetch(ours, sized(f"/mc?{config.query(f'{table}-binary', box)}")),
                     fetch(peer, sized(f"/mapserv?map={folder}/{table}-postgis.map&{config.query(table, box)}")),
                     by_qgis(box, SRID, config.html(config.BACKGROUND), [data.shapefile(table), folder / f"{table}.sld"]))


def worlds(out, work):
    folder = make_folder("pictures-world")
    data = world_data.make(work / "load")
    own = world_config.write_ours(folder, data)
    world_config.write_map_file(folder, data)
    with frontends.module("pictures", own) as ours, frontends.mapserver_fcgid("pictures-peer", folder, 2) as peer:
        for name, centre, pixel in WORLDS:
            box = box_around(centre, pixel)
            files = [file for layer in world_data.LAYERS for file in (data / f"{layer}.shp", folder / f"{layer}.sld")]
            keep(out, name, fetch(ours, sized(world_config.ours_path(box))), fetch(peer, sized(world_config.mapserver_path(folder)(box))),
                 by_qgis(box, 3857, f"#{world_config.SEA}", files))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default=str(ROOT / "docs" / "pictures"))
    parser.add_argument("--work", default=str(ROOT / "build" / "bench"), help="folder of the benchmarks' data")
    options = parser.parse_args()
    begin()
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    print("| map | against | greatest difference of 255 | pixels off by more than 3 | PSNR |\n|---|---|---|---|---|")
    countries(out, pathlib.Path(options.work))
    worlds(out, pathlib.Path(options.work))


if __name__ == "__main__":
    main()
