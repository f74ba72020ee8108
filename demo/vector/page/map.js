/* The map, and how each form of it is asked for. */
import { counted } from '../catalogue/timing.js';
import { styleOf } from './style.js';

/* The folder above the pages, where the aliases are: the same behind another prefix. */
const ROOT = new URL('..', import.meta.url).href;
const GRID = 'GoogleMapsCompatible';
const GRID_OPTIONS = { maxZoom: 10, tileSize: 256 };
const BOUNDS = { world: [-17000000, -7500000, 19500000, 16500000], counties: [-13600000, 3000000, -7700000, 6100000] };

export const map = new ol.Map({
  target: 'map', layers: [],
  view: new ol.View({ center: [0, 0], zoom: 2, minZoom: 1, maxZoom: 10, constrainResolution: true })
});

export function boundsOf(layer) { return BOUNDS[layer]; }

function wmsUrl(state, params) {
  return ROOT + state.data + '?' + new URLSearchParams({ SERVICE: 'WMS', VERSION: '1.1.1', ...params });
}

/* Of what can be seen at this scale: the standardised pixel is 0.28 mm wide. */
export function legendUrl(state) {
  const scale = Math.round(map.getView().getResolution() / 0.00028);
  return wmsUrl(state, { REQUEST: 'GetLegendGraphic', LAYER: state.layer, FORMAT: 'image/png', SCALE: scale });
}

function wms(state) {
  return new ol.source.ImageWMS({ url: ROOT + state.data, ratio: 1, hidpi: false, imageLoadFunction: loadImage,
    params: { LAYERS: state.layer, VERSION: '1.1.1', FORMAT: 'image/png', STYLES: '' } });
}

/* What lies under a point; never through the tiles. */
export function featureInfoUrl(state, place) {
  return wms(state).getFeatureInfoUrl(place, map.getView().getResolution(), 'EPSG:3857',
    { INFO_FORMAT: 'application/json', FEATURE_COUNT: 50 });
}

async function blobOf(url) {
  const answer = await counted(url);
  if (answer.status !== 200) throw new Error(url + ': ' + answer.status);
  return answer.blob;
}

function loadInto(element, url) {
  return blobOf(url).then(function (blob) {
    element.src = URL.createObjectURL(blob);
    element.addEventListener('load', function () { URL.revokeObjectURL(element.src); }, { once: true });
  });
}

function loadTile(tile, url) {
  loadInto(tile.getImage(), url).catch(function () { tile.setState(3); }); // 3: an error; the others go on
}

function loadImage(image, url) {
  loadInto(image.getImage(), url).catch(function () { image.getImage().src = 'data:,'; });
}

function loadVector(tile, url) {
  tile.setLoader(function (extent, resolution, projection) {
    blobOf(url).then(function (blob) { return blob.arrayBuffer(); }).then(function (bytes) {
      tile.setFeatures(tile.getFormat().readFeatures(bytes, { extent: extent, featureProjection: projection }));
    }).catch(function () { tile.setState(3); });
  });
}

function tileAddress(state, extension) {
  const layer = extension === 'png' ? state.layer : state.layer + '-vector';
  return ROOT + state.data + '/wmts/1.0.0/' + layer + '/default/' + GRID + '/{z}/{y}/{x}.' + extension;
}

const FORMS = {
  map: function (state) {
    return [new ol.layer.Image({ source: wms(state) }), ROOT + state.data + '?REQUEST=GetMap&LAYERS=' + state.layer];
  },
  tiles: function (state) {
    const url = tileAddress(state, 'png');
    return [new ol.layer.Tile({ preload: 0, source: new ol.source.XYZ({ url: url, tileGrid: ol.tilegrid.createXYZ(GRID_OPTIONS),
      transition: 0, tileLoadFunction: loadTile }) }), url];
  },
  vector: function (state) {
    const url = tileAddress(state, 'mvt');
    return [new ol.layer.VectorTile({ declutter: true, style: styleOf(state.layer), source: new ol.source.VectorTile({ url: url,
      format: new ol.format.MVT(), tileGrid: ol.tilegrid.createXYZ(GRID_OPTIONS), transition: 0, tileLoadFunction: loadVector }) }), url];
  }
};

/* Draws a map; returns the address that it is asked for at. */
export function show(state) {
  const [layer, address] = FORMS[state.form](state);
  layer.getSource().setAttributions(state.layer === 'world' ? 'Natural Earth' : 'US Census Bureau, Natural Earth');
  map.setLayers([layer]);
  return address;
}
