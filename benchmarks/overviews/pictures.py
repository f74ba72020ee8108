"""Maps with and without overviews side by side."""
import io

import numpy
from common.pixels import difference_picture
from PIL import Image, ImageDraw


class Gallery:
    """Of each set the map that is off most, and some others as they come."""

    def __init__(self, folder, every):
        self.folder, self.every, self.worst, self.count = folder, every, {}, 0
        folder.mkdir(parents=True, exist_ok=True)

    def keep(self, record, level, full):
        share = record["off"] / max(record["painted"], 1)
        if record["painted"] > 0 and share > self.worst.get(record["set"], -1):
            self.worst[record["set"]] = share
            self.write(f"{record['set']}-worst.png", record, level, full)
        if self.count % self.every == 0:
            self.write(f"{record['set']}-{self.count % 1000:03d}.png", record, level, full)
        self.count += 1

    def write(self, name, record, level, full):
        panels = [Image.alpha_composite(Image.new("RGBA", image.size, (235, 242, 250, 255)), image).convert("RGB")
                  for image in (Image.open(io.BytesIO(body)).convert("RGBA") for body in (full, level))]
        panels.append(Image.fromarray(255 - numpy.asarray(Image.open(io.BytesIO(difference_picture(level, full))))).convert("RGB"))
        width, height = panels[0].size
        out = Image.new("RGB", (3 * width + 8, height + 16), "white")
        titles = ("the table", "its overview", f"difference times 16: {100 * record['off'] / max(record['painted'], 1):.3f} % off, {record['resolution']:.0f} a pixel")
        for number, (panel, title) in enumerate(zip(panels, titles)):
            out.paste(panel, (number * (width + 4), 16))
            ImageDraw.Draw(out).text((number * (width + 4) + 4, 2), title, fill="black")
        out.save(self.folder / name)
