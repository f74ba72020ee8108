/* Draws layers with MapLibre: images and vector tiles on grids of web maps. The same functions as of engine_ol.js. */
import { demandFile } from './libraries.js';
import { tileAddress, viewBox } from './protocols.js';
import { fetchTile } from './tile_log.js';
import { glLayersOf } from './vector_style.js';

const RADIUS = 6378137, HALF = Math.PI * RADIUS, SCHEME = 'mapcachetile';

/* Whether level z of a grid is level z of web maps. */
export function isWebGrid(grid) {
  return /(3857|900913|3785)$/.test(grid.srs) && grid.resolutions.every(function (resolution, z) {
    const wanted = 2 * HALF / 2 ** z, [left, top] = grid.origins[z];
    return z < grid.minzoom || (Math.abs(resolution * grid.tileSize[0] - wanted) < wanted * 1e-6 && grid.tileSize[0] === grid.tileSize[1] &&
      Math.abs(left + HALF) < wanted * 1e-4 && Math.abs(top - HALF) < wanted * 1e-4);
  });
}

/* NULL, or why MapLibre cannot draw here. */
export function whyNoGl() {
  try {
    return document.createElement('canvas').getContext('webgl2') ? null : 'This browser has no WebGL here, so vector tiles are drawn by OpenLayers.';
  } catch (error) {
    return 'WebGL does not work here (' + error.message + '), so vector tiles are drawn by OpenLayers.';
  }
}

function lonLat([x, y]) {
  return [x / RADIUS * 180 / Math.PI, Math.atan(Math.sinh(Math.max(-HALF, Math.min(HALF, y)) / RADIUS)) * 180 / Math.PI];
}

function metres({ lng, lat }) {
  return [lng * Math.PI / 180 * RADIUS, Math.asinh(Math.tan(lat * Math.PI / 180)) * RADIUS];
}

const zoomOf = function (resolution) { return Math.log2(2 * HALF / 512 / resolution); };
const resolutionOf = function (zoom) { return 2 * HALF / 512 / 2 ** zoom; };

const byKey = new Map(); /* the entry behind an address of our own scheme */
let library = null;

function tileOf(entry, z, x, row) {
  return { layer: entry.layer, grid: entry.grid, values: entry.values, density: entry.density, format: entry.format, z: z, x: x, row: row };
}

/* Tiles come through fetchTile, so that what is wrong with one is known. */
async function loadTile(request, abort) {
  const [key, z, x, row] = request.url.slice(SCHEME.length + 3).split('/').map(decodeURIComponent);
  const entry = byKey.get(key), url = entry && tileAddress(entry.by, tileOf(entry, Number(z), Number(x), Number(row)));
  const blob = url ? await fetchTile(url, { layer: entry.layer.title, z: Number(z), x: Number(x), row: Number(row) }, abort.signal) : null;
  if (blob !== null) return { data: await blob.arrayBuffer() };
  return { data: entry && entry.layer.image ? await emptyPicture() : new ArrayBuffer(0) };
}

let empty = null;
async function emptyPicture() {
  if (empty === null) {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 1;
    empty = await new Promise(function (done) { canvas.toBlob(done); });
  }
  return empty.arrayBuffer();
}

function sourceOf(entry) {
  const key = JSON.stringify([entry.layer.name, entry.grid.grid, entry.by, entry.density, entry.values]);
  byKey.set(key, entry);
  return { key: key, source: {
    type: entry.layer.image ? 'raster' : 'vector', tiles: [SCHEME + '://' + encodeURIComponent(key) + '/{z}/{x}/{y}'],
    minzoom: entry.grid.minzoom, maxzoom: entry.grid.maxzoom, ...(entry.layer.image ? { tileSize: entry.grid.tileSize[0] } : {})
  } };
}

/* A style with all entries, bottom first. */
function styleOf(entries) {
  const style = { version: 8, sources: {}, layers: [] };
  for (const entry of entries) {
    const { key, source } = sourceOf(entry);
    if (style.sources[key]) continue;
    style.sources[key] = source;
    if (!entry.visible) continue;
    if (entry.layer.image)
      style.layers.push({ id: key, type: 'raster', source: key, paint: { 'raster-opacity': entry.opacity, 'raster-fade-duration': 0 } });
    else style.layers.push(...glLayersOf(entry.layer, key, entry.opacity));
  }
  return style;
}

/* Rejects where the library does not load; with `file` where one of its files is not there. */
export async function createGl(target, hooks) {
  if (library === null) {
    await demandFile('maplibre-gl.mjs');
    await demandFile('maplibre-gl-worker.mjs');
    library = await import('./maplibre-gl.mjs');
    library.addProtocol(SCHEME, loadTile);
  }
  let shown = [];
  const map = new library.Map({ container: target, style: styleOf([]), attributionControl: false, dragRotate: false, pitchWithRotate: false,
    touchPitch: false, renderWorldCopies: false, maxPitch: 0, fadeDuration: 0 });
  map.touchZoomRotate.disableRotation();
  map.addControl(new library.NavigationControl({ showCompass: false }), 'top-left');

  function fit(box) {
    const [west, south] = lonLat([box[0], box[1]]), [east, north] = lonLat([box[2], box[3]]);
    map.fitBounds([[west, south], [east, north]], { padding: 10, animate: false });
  }

  function featuresAt([x, y]) {
    const seen = new Set();
    return map.queryRenderedFeatures([[x - 4, y - 4], [x + 4, y + 4]]).map(function (feature) {
      return { title: byKey.get(feature.source).layer.title + ', ' + feature.sourceLayer, id: feature.id, properties: feature.properties };
    }).filter(function (found) { /* an area is drawn twice: filled, and its edge */
      const key = JSON.stringify(found);
      return !seen.has(key) && seen.add(key);
    });
  }

  function tilesInView() {
    const entry = shown.filter(function (other) { return other.visible; }).pop(), tiles = [];
    if (entry === undefined) return tiles;
    const base = entry.layer.image ? Math.round(map.getZoom() + Math.log2(512 / entry.grid.tileSize[0])) : Math.floor(map.getZoom());
    const z = Math.max(entry.grid.minzoom, Math.min(entry.grid.maxzoom, base)), side = 2 * HALF / 2 ** z;
    const bounds = map.getBounds(), [minx, miny] = metres(bounds.getSouthWest()), [maxx, maxy] = metres(bounds.getNorthEast());
    for (let row = Math.floor((HALF - maxy) / side); row <= (HALF - miny) / side && tiles.length < 400; row++)
      for (let x = Math.floor((minx + HALF) / side); x <= (maxx + HALF) / side && tiles.length < 400; x++) {
        const url = tileAddress(entry.by, tileOf(entry, z, x, row)), left = x * side - HALF, top = HALF - row * side;
        if (url) tiles.push({ z: z, x: x, row: row, url: url, corners: [[left, top], [left + side, top], [left + side, top - side], [left, top - side]]
          .map(function (corner) { const point = map.project(lonLat(corner)); return [point.x, point.y]; }) });
      }
    return tiles;
  }

  function placeOf(event) {
    const coordinate = metres(event.lngLat);
    return { coordinate: coordinate, text: event.lngLat.lng.toFixed(5) + ' ' + event.lngLat.lat.toFixed(5) };
  }

  map.on('moveend', function () { hooks.moved(); });
  map.on('render', function () { hooks.drawn(); });
  map.on('mousemove', function (event) { hooks.pointed(placeOf(event)); });
  map.on('click', function (event) { hooks.clicked([event.point.x, event.point.y], placeOf(event)); });
  map.on('error', function (event) { if (!event.tile && !event.sourceId) hooks.failed(event.error); }); /* tiles tell themselves */

  return {
    name: 'MapLibre', fit: fit, featuresAt: featuresAt, tilesInView: tilesInView,
    setView: function (grid, at) {
      map.setMinZoom(Math.max(-2, zoomOf(grid.resolutions[grid.minzoom]) - 2));
      map.setMaxZoom(Math.min(24, zoomOf(grid.finest) + 4));
      if (at) map.jumpTo({ center: lonLat(at), zoom: zoomOf(at[2]) });
      else fit(viewBox(grid));
    },
    setLayers: function (entries) { shown = entries; map.setStyle(styleOf(entries), { diff: map.isStyleLoaded() === true }); },
    setSwipe: function () { /* OpenLayers draws where there is one */ },
    at: function () { return [...metres(map.getCenter()), resolutionOf(map.getZoom())]; },
    resize: function () { map.resize(); },
    destroy: function () { map.remove(); target.replaceChildren(); },
    map: map
  };
}
