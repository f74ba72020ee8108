"""Our animated PNG in the eyes of others: Pillow and headless Chromium see every frame as it was."""
import base64
import http.server
import io
import os
import pathlib
import subprocess
import threading

import numpy
import pytest
from browser import Browser
from conftest import ROOT, free_port
from PIL import Image

FRAMES, DELAY, LOOPS = 5, 120, 2

# Every frame of an image as the browser's decoder shows it, straight R, G, B, A.
DECODE = """
const bytes = Uint8Array.from(atob(%r), c => c.charCodeAt(0));
return (async () => {
    const decoder = new ImageDecoder({ data: bytes, type: 'image/png' });
    await decoder.tracks.ready;
    await decoder.completed;
    const track = decoder.tracks.selectedTrack, frames = [];
    for (let i = 0; i < track.frameCount; i++) {
        const { image } = await decoder.decode({ frameIndex: i });
        const canvas = new OffscreenCanvas(image.displayWidth, image.displayHeight);
        const drawing = canvas.getContext('2d');
        drawing.drawImage(image, 0, 0);
        const pixels = drawing.getImageData(0, 0, canvas.width, canvas.height).data;
        frames.push({ width: canvas.width, duration: image.duration, pixels: Array.from(pixels) });
    }
    return { animated: track.animated, repetitions: track.repetitionCount, frames: frames };
})();
"""


@pytest.fixture(scope="module")
def animation(tmp_path_factory):
    """The bytes of the animation that the unit test makes, and its frames as RGBA arrays from plain PNGs."""
    build = pathlib.Path(os.environ.get("MAPCACHE_BUILD", ROOT / "build" / "release")).resolve()
    folder = tmp_path_factory.mktemp("animation")
    subprocess.run([build / "tests" / "test_apng"], check=True, env={**os.environ, "MAPCACHE_APNG": str(folder)})
    frames = [numpy.array(Image.open(folder / f"{i}.png").convert("RGBA")) for i in range(FRAMES)]
    return (folder / "all.png").read_bytes(), frames


def test_pillow_sees_every_frame(animation):
    data, frames = animation
    image = Image.open(io.BytesIO(data))
    assert image.is_animated and image.n_frames == FRAMES and image.info["loop"] == LOOPS
    for index, frame in enumerate(frames):
        image.seek(index)
        assert image.info["duration"] == DELAY
        assert numpy.array_equal(numpy.array(image.convert("RGBA")), frame), f"frame {index}"


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!DOCTYPE html><title>animation</title>")

    def log_message(self, *_):
        pass


@pytest.fixture
def page():
    """A page of this host, which the browser trusts with its decoders."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_chromium_sees_every_frame(animation, page):
    data, frames = animation
    with Browser() as browser:
        browser.open(page)
        seen = browser.script(DECODE % base64.b64encode(data).decode())
    assert seen["animated"] and len(seen["frames"]) == FRAMES
    # The file counts how often it is played, the browser how often again.
    assert seen["repetitions"] == LOOPS - 1
    for index, (shown, frame) in enumerate(zip(seen["frames"], frames)):
        assert shown["duration"] == DELAY * 1000
        pixels = numpy.array(shown["pixels"], dtype=numpy.uint8).reshape(-1, shown["width"], 4)
        # Its canvas is premultiplied: translucent colours come back rounded.
        assert numpy.abs(pixels.astype(int) - frame).max() <= 2, f"frame {index}"
