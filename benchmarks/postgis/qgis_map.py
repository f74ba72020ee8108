#!/usr/bin/python3
"""QGIS' picture of shapefiles with SLD files, from the bottom up. Usage: qgis_map.py OUT.png WIDTH HEIGHT MINX,MINY,MAXX,MAXY EPSG BACKGROUND SHP SLD [SHP SLD ...]"""
import os
import sys

os.environ["QT_QPA_PLATFORM"] = "offscreen"
from qgis.core import QgsApplication, QgsCoordinateReferenceSystem, QgsMapRendererSequentialJob, QgsMapSettings, QgsRectangle, QgsVectorLayer  # noqa: E402
from qgis.PyQt.QtCore import QSize  # noqa: E402
from qgis.PyQt.QtGui import QColor  # noqa: E402


def main():
    out, width, height, box, epsg, background, *files = sys.argv[1:]
    QgsApplication.setPrefixPath("/usr", True)
    application = QgsApplication([], False)
    application.initQgis()
    crs, layers = QgsCoordinateReferenceSystem(f"EPSG:{epsg}"), []
    for shape, style in zip(files[::2], files[1::2]):
        layer = QgsVectorLayer(shape, os.path.basename(shape), "ogr")
        layer.setCrs(crs)
        message, good = layer.loadSldStyle(style)
        if layer.isValid() and good:
            layers.insert(0, layer)
        else:
            print(f"left out: {shape}, {style}: {' '.join(message.split())}", file=sys.stderr)
    settings = QgsMapSettings()
    settings.setLayers(layers)
    settings.setDestinationCrs(crs)
    settings.setExtent(QgsRectangle(*[float(v) for v in box.split(",")]))
    settings.setOutputSize(QSize(int(width), int(height)))
    settings.setOutputDpi(0.0254 / 0.00028)  # pixels of 0.28 mm
    settings.setBackgroundColor(QColor(background))
    job = QgsMapRendererSequentialJob(settings)
    job.start()
    job.waitForFinished()
    job.renderedImage().save(out)
    os._exit(0)  # this version dies when it ends in order


if __name__ == "__main__":
    main()
