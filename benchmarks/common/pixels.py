"""How much two pictures differ."""
import io
import math

import numpy
from PIL import Image


def premultiplied(body):
    """RGBA as floats of 0..255, colours multiplied by their alpha: what is invisible does not count."""
    rgba = numpy.asarray(Image.open(io.BytesIO(body)).convert("RGBA"), numpy.float32)
    out = rgba.copy()
    out[..., :3] *= rgba[..., 3:4] / 255
    return out


def compare(one, other):
    """Greatest difference of a channel, share of the pixels with a channel off by more than 3, PSNR in dB (999: equal)."""
    a, b = premultiplied(one), premultiplied(other)
    if a.shape != b.shape:
        return {"max": 255, "over3": 1.0, "psnr": 0.0}
    difference = numpy.abs(a - b)
    square = float((difference ** 2).mean())
    return {"max": int(round(float(difference.max()))), "over3": float((difference.max(2) > 3.5).mean()),
            "psnr": 999.0 if square == 0 else 10 * math.log10(255 ** 2 / square)}


def difference_picture(one, other):
    """A PNG of the difference, amplified so that small ones are seen."""
    difference = numpy.abs(premultiplied(one) - premultiplied(other)).max(2)
    out = io.BytesIO()
    Image.fromarray(numpy.clip(difference * 16, 0, 255).astype(numpy.uint8)).save(out, "PNG")
    return out.getvalue()
