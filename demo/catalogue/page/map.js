/* The map: a base, the products as the server draws them, their outlines. */
import { counted } from './timing.js';
import { products, shown } from './products.js';

/* The folder above the pages, where the aliases are: the same behind another prefix. */
const ROOT = new URL('..', import.meta.url).href;
const GRID = 'GoogleMapsCompatible';
const NOTHING = 'data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7';
const outlines = new ol.source.Vector();
const byName = new Map();
let near = null;

const layers = {
  base: new ol.layer.Tile({ source: new ol.source.XYZ({
    url: ROOT + 'catalog-auto/wmts/1.0.0/base/default/' + GRID + '/{z}/{y}/{x}.jpg', maxZoom: 6,
    attributions: 'Blue Marble: NASA. Relief and borders: Natural Earth.' }) }),
  outlines: new ol.layer.Vector({ source: outlines, style: drawOutline, updateWhileInteracting: true })
};
export const map = new ol.Map({
  target: 'map', layers: [layers.base, layers.outlines],
  view: new ol.View({ center: [1400000, 6250000], zoom: 5, minZoom: 1, maxZoom: 12, constrainResolution: true })
});

const quiet = new ol.style.Style({ stroke: new ol.style.Stroke({ color: 'rgba(255, 214, 90, .8)', width: 1.2 }) });
const loud = [new ol.style.Style({ stroke: new ol.style.Stroke({ color: 'rgba(10, 20, 30, .75)', width: 5 }), zIndex: 1 }),
  new ol.style.Style({ stroke: new ol.style.Stroke({ color: '#fff', width: 2.5 }), fill: new ol.style.Fill({ color: 'rgba(255, 255, 255, .12)' }), zIndex: 2 })];
const faint = new ol.style.Style({ stroke: new ol.style.Stroke({ color: 'rgba(255, 255, 255, .35)', width: 1, lineDash: [3, 4] }) });
const hit = new ol.style.Fill({ color: 'rgba(0, 0, 0, 0.001)' }); // so that the inside counts, too
quiet.setFill(hit);
faint.setFill(hit);

function drawOutline(feature) {
  return feature.getId() === near ? loud : feature.get('on') ? quiet : faint;
}

/* Outlines of what matches the search; dashed where it is switched off. */
export function setOutlines(matching, isOn) {
  outlines.clear();
  byName.clear();
  for (const product of matching) {
    const feature = new ol.Feature({ geometry: new ol.geom.Polygon([product.ring]).transform('EPSG:4326', 'EPSG:3857') });
    feature.setId(product.name);
    feature.set('on', isOn(product));
    byName.set(product.name, feature);
  }
  outlines.addFeatures([...byName.values()]);
}

export function highlight(name) {
  if (near === name) return false;
  near = name;
  layers.outlines.changed();
  return true;
}

export function showOutlines(on) { layers.outlines.setVisible(on); }

export function zoomTo(names, maxZoom) {
  const extent = ol.extent.createEmpty();
  for (const name of names) if (byName.has(name)) ol.extent.extend(extent, byName.get(name).getGeometry().getExtent());
  if (!ol.extent.isEmpty(extent)) map.getView().fit(extent, { padding: [40, 40, 40, 40], maxZoom: maxZoom, duration: 250 });
}

/* The name of the product under a pixel, the smallest where there are several. */
export function productAt(pixel) {
  const found = map.getFeaturesAtPixel(pixel, { layerFilter: function (layer) { return layer === layers.outlines; } });
  const area = function (feature) { return feature.getGeometry().getArea(); };
  return found.length ? found.sort(function (a, b) { return area(a) - area(b); })[0].getId() : null;
}

function wmsParams(wanted) {
  const params = { LAYERS: wanted.layer, VERSION: '1.1.1', FORMAT: 'image/png', STYLES: '', TRANSPARENT: 'TRUE' };
  params[wanted.name === 'time' ? 'TIME' : 'DIM_' + wanted.name.toUpperCase()] = wanted.value;
  return params;
}

async function load(element, url) {
  const time = await counted(url);
  if (time.status !== 200) throw new Error(url + ': ' + time.status);
  element.src = URL.createObjectURL(time.blob);
  element.addEventListener('load', function () { URL.revokeObjectURL(element.src); }, { once: true });
}

/* Where no product is, a map has nothing to show, and the server says 404: it is not asked. */
function isEmpty(url) {
  const box = new URL(url, location.href).searchParams.get('BBOX');
  return box !== null && !shown().some(function (product) {
    return byName.get(product.name).getGeometry().intersectsExtent(box.split(',').map(Number));
  });
}

function loadTile(tile, url) {
  if (isEmpty(url)) tile.getImage().src = NOTHING;
  else load(tile.getImage(), url).catch(function () { tile.setState(3); }); // 3: an error; the others go on
}

function loadMap(image, url) {
  if (isEmpty(url)) image.getImage().src = NOTHING;
  else load(image.getImage(), url).catch(function () { image.getImage().src = 'data:,'; });
}

function source(alias, protocol, wanted) {
  const grid = ol.tilegrid.createXYZ({ maxZoom: products.maxzoom });
  if (protocol === 'map')
    return new ol.source.ImageWMS({ url: ROOT + alias, params: wmsParams(wanted), ratio: 1, hidpi: false, imageLoadFunction: loadMap });
  if (protocol === 'wms')
    return new ol.source.TileWMS({ url: ROOT + alias, params: wmsParams(wanted), tileGrid: grid, hidpi: false, wrapX: false,
      transition: 0, tileLoadFunction: loadTile });
  return new ol.source.WMTS({
    url: ROOT + alias + '/wmts', layer: wanted.layer, matrixSet: GRID, format: 'image/png', style: 'default', wrapX: false,
    dimensions: { [wanted.name]: wanted.value }, transition: 0, tileLoadFunction: loadTile,
    tileGrid: new ol.tilegrid.WMTS({ origin: ol.extent.getTopLeft(grid.getExtent()), extent: grid.getExtent(),
      resolutions: grid.getResolutions(), matrixIds: grid.getResolutions().map(function (_, z) { return String(z); }) })
  });
}

/* The products' layer; nothing is drawn if `wanted` is null. */
export function draw(alias, protocol, wanted, opacity) {
  const all = [layers.base, layers.outlines];
  if (wanted !== null) {
    layers.products = protocol === 'map' ? new ol.layer.Image() : new ol.layer.Tile({ preload: 0 });
    layers.products.setOpacity(opacity);
    layers.products.setSource(source(alias, protocol, wanted));
    all.splice(1, 0, layers.products);
  }
  map.setLayers(all);
}

export function setOpacity(opacity) { if (layers.products) layers.products.setOpacity(opacity); }

/* One map of 1024 by 1024 pixels around the middle of the view, as the case study measures it. */
export function comparedUrl(alias, wanted) {
  const [x, y] = map.getView().getCenter();
  const half = 512 * map.getView().getResolution();
  const params = { SERVICE: 'WMS', REQUEST: 'GetMap', ...wmsParams(wanted), SRS: 'EPSG:3857',
    BBOX: [x - half, y - half, x + half, y + half].join(','), WIDTH: 1024, HEIGHT: 1024 };
  return ROOT + alias + '?' + new URLSearchParams(params);
}
