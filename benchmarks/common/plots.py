"""Pictures of results: SVG and PNG, by matplotlib without a screen."""
import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402


def save(figure, folder, name):
    figure.tight_layout()
    for ending in ("svg", "png"):
        figure.savefig(folder / f"{name}.{ending}", dpi=140)
    pyplot.close(figure)
