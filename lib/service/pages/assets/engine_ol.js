/* Draws layers with OpenLayers: images and vector tiles, in any grid and CRS. An entry is a layer as the map shows it: layer, grid,
   by, density, format, values, opacity, visible. */
import { hasProj4 } from './libraries.js';
import { tileAddress, viewBox, wmsUrl, wmsValues } from './protocols.js';
import { fetchTile } from './tile_log.js';
import { olStyleOf } from './vector_style.js';

const FAILED = 3; /* ol.TileState.ERROR */

/* The CRS of a grid. What the server knows of it is told to proj4, so that layers in other CRSs can be warped. */
export function projectionOf(grid) {
  const known = ol.proj.get(grid.srs);
  if (known) return known;
  if (grid.proj && hasProj4()) {
    proj4.defs(grid.srs, grid.proj);
    ol.proj.proj4.register(proj4);
    const made = ol.proj.get(grid.srs);
    if (made) return made;
  }
  const made = new ol.proj.Projection({ code: grid.srs, units: grid.units, extent: grid.gridExtent });
  ol.proj.addProjection(made);
  return made;
}

function tileGridOf(grid) {
  return new ol.tilegrid.TileGrid({ extent: grid.gridExtent, minZoom: grid.minzoom, origins: grid.origins, resolutions: grid.resolutions,
    tileSizes: grid.resolutions.map(function () { return grid.tileSize; }), sizes: grid.sizes });
}

function addressOf(entry, [z, x, row]) {
  return tileAddress(entry.by, { layer: entry.layer, grid: entry.grid, values: entry.values, density: entry.density, format: entry.format, z: z, x: x, row: row });
}

function whatOf(entry, [z, x, row]) { return { layer: entry.layer.title, z: z, x: x, row: row }; }

function showBlob(image, blob) {
  if (blob === null) {
    image.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==';
    return;
  }
  image.src = URL.createObjectURL(blob);
  image.addEventListener('load', function () { URL.revokeObjectURL(image.src); }, { once: true });
}

function imageSource(entry) {
  return new ol.source.TileImage({
    projection: projectionOf(entry.grid), tileGrid: tileGridOf(entry.grid), wrapX: false, tilePixelRatio: entry.density, transition: 0,
    tileUrlFunction: function (coordinate) { return addressOf(entry, coordinate); },
    tileLoadFunction: function (tile, url) {
      fetchTile(url, whatOf(entry, tile.getTileCoord())).then(function (blob) { showBlob(tile.getImage(), blob); })
        .catch(function () { tile.setState(FAILED); });
    }
  });
}

function vectorSource(entry) {
  return new ol.source.VectorTile({
    projection: projectionOf(entry.grid), tileGrid: tileGridOf(entry.grid), wrapX: false, transition: 0,
    format: new ol.format.MVT(),
    tileUrlFunction: function (coordinate) { return addressOf(entry, coordinate); },
    tileLoadFunction: function (tile, url) {
      tile.setLoader(function (extent, resolution, projection) {
        fetchTile(url, whatOf(entry, tile.getTileCoord()))
          .then(function (blob) { return blob === null ? [] : blob.arrayBuffer(); })
          .then(function (bytes) {
            tile.setFeatures(bytes.byteLength ? tile.getFormat().readFeatures(bytes, { extent: extent, featureProjection: projection }) : []);
          })
          .catch(function () { tile.setState(FAILED); });
      });
    }
  });
}

function wholeMapSource(entry) {
  return new ol.source.ImageWMS({
    url: wmsUrl({}).replace(/\?.*/, ''), projection: projectionOf(entry.grid), ratio: 1, serverType: entry.grid.densities.length > 0 ? 'mapserver' : undefined,
    params: { LAYERS: entry.layer.name, VERSION: '1.1.1', FORMAT: entry.format, STYLES: '', TRANSPARENT: 'TRUE', ...wmsValues(entry.layer, entry.values) },
    imageLoadFunction: function (image, url) {
      fetchTile(url, { layer: entry.layer.title }).then(function (blob) { showBlob(image.getImage(), blob); })
        .catch(function () { image.getImage().src = 'data:,'; });
    }
  });
}

function makeLayer(entry) {
  if (!entry.layer.image) return new ol.layer.VectorTile({ source: vectorSource(entry), style: olStyleOf(entry.layer), declutter: false });
  if (entry.by === 'map') return new ol.layer.Image({ source: wholeMapSource(entry) });
  return new ol.layer.Tile({ source: imageSource(entry), preload: 0 });
}

/* What lies to the right of the swipe is cut off from a layer. */
function clipLayer(layer, swipeOf) {
  layer.on('prerender', function (event) {
    const share = swipeOf(layer), context = event.context;
    if (share === null || !context.save) return;
    const size = event.frameState.size, ratio = event.frameState.pixelRatio;
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.beginPath();
    context.rect(0, 0, size[0] * share * ratio, size[1] * ratio);
    context.clip();
  });
  layer.on('postrender', function (event) { if (swipeOf(layer) !== null && event.context.restore) event.context.restore(); });
}

export function createOl(target, hooks) {
  const made = new Map();
  let swipe = null, shown = [], viewGrid = null;
  const map = new ol.Map({ target: target, keyboardEventTarget: target.parentElement, layers: [], pixelRatio: window.devicePixelRatio,
    controls: ol.control.defaults.defaults({ attribution: false, rotate: false }),
    interactions: ol.interaction.defaults.defaults({ altShiftDragRotate: false, pinchRotate: false }) });

  function swipeOf(layer) {
    const top = shown.filter(function (other) { return other.getVisible(); }).pop();
    return swipe !== null && layer === top ? swipe : null;
  }

  function layerOf(entry) {
    const key = JSON.stringify([entry.layer.name, entry.grid.grid, entry.by, entry.density, entry.values]);
    if (!made.has(key)) {
      made.set(key, makeLayer(entry));
      clipLayer(made.get(key), swipeOf);
    }
    const layer = made.get(key);
    layer.setOpacity(entry.opacity);
    layer.setVisible(entry.visible);
    layer.entry = entry;
    return layer;
  }

  function setView(grid, at) {
    viewGrid = grid;
    const levels = grid.resolutions.slice(grid.minzoom);
    map.setView(new ol.View({ projection: projectionOf(grid), center: ol.extent.getCenter(grid.data), resolution: levels[0],
      maxResolution: levels[0] * 4, minResolution: grid.finest / 8, enableRotation: false, showFullExtent: true }));
    if (at) {
      map.getView().setCenter([at[0], at[1]]);
      map.getView().setResolution(at[2]);
    } else map.getView().fit(viewBox(grid), { size: map.getSize(), padding: [10, 10, 10, 10] });
  }

  function setLayers(entries) {
    shown = entries.map(layerOf);
    map.setLayers(shown);
    for (const [key, layer] of made) if (!shown.includes(layer)) made.delete(key);
  }

  function featuresAt([x, y]) {
    const found = new Map(); /* what several tiles have is one feature */
    map.forEachFeatureAtPixel([x, y], function (feature, layer) {
      const { layer: id, ...properties } = feature.getProperties();
      delete properties.geometry;
      const one = { title: layer.entry.layer.title + ', ' + id, id: feature.getId(), properties: properties };
      found.set(JSON.stringify(one), one);
    }, { hitTolerance: 4 });
    return [...found.values()];
  }

  /* The tiles of the uppermost visible layer that cover the map, with their corners in pixels. */
  function tilesInView() {
    const layer = shown.filter(function (other) { return other.getVisible() && other.entry.by !== 'map'; }).pop(), size = map.getSize();
    const tiles = [];
    if (layer === undefined || size === undefined) return tiles;
    const source = layer.getSource(), grid = source.getTileGrid(), from = projectionOf(layer.entry.grid), to = map.getView().getProjection();
    const box = ol.proj.transformExtent(map.getView().calculateExtent(size), to, from);
    const middle = ol.proj.transform(map.getView().getCenter(), to, from);
    const resolution = from === to ? map.getView().getResolution() : ol.reproj.calculateSourceResolution(from, to, ol.proj.transform(middle, from, to), map.getView().getResolution());
    const z = grid.getZForResolution(resolution, layer.entry.layer.image ? source.zDirection : 0);
    grid.forEachTileCoord(box, z, function (coordinate) {
      if (tiles.length >= 400) return;
      const [minx, miny, maxx, maxy] = grid.getTileCoordExtent(coordinate), url = addressOf(layer.entry, coordinate);
      if (url === undefined) return;
      tiles.push({ z: coordinate[0], x: coordinate[1], row: coordinate[2], url: url, corners: [[minx, maxy], [maxx, maxy], [maxx, miny], [minx, miny]]
        .map(function (corner) { return map.getPixelFromCoordinate(ol.proj.transform(corner, from, to)); }) });
    });
    return tiles;
  }

  function placeAt(pixel) {
    const place = map.getCoordinateFromPixel(pixel);
    return place ? { text: viewGrid.srs + ' ' + place.map(function (number) { return number.toFixed(map.getView().getResolution() < 0.01 ? 5 : 1); }).join(' '), coordinate: place } : null;
  }

  map.on('moveend', function () { hooks.moved(); });
  map.on('postrender', function () { hooks.drawn(); });
  map.on('pointermove', function (event) { hooks.pointed(placeAt(event.pixel)); });
  map.on('singleclick', function (event) { hooks.clicked(event.pixel, placeAt(event.pixel)); });

  return {
    name: 'OpenLayers', setView: setView, setLayers: setLayers, featuresAt: featuresAt, tilesInView: tilesInView,
    setSwipe: function (share) { swipe = share; map.render(); },
    at: function () { const view = map.getView(); return view.getCenter() ? [...view.getCenter(), view.getResolution()] : null; },
    fit: function (box) { map.getView().fit(box, { size: map.getSize(), padding: [10, 10, 10, 10] }); },
    resize: function () { map.updateSize(); },
    destroy: function () { map.setTarget(undefined); map.dispose(); target.replaceChildren(); },
    map: map
  };
}
