/* How each protocol asks for a tile. Levels, columns and rows are those of the grid, rows from the top. */
import { layerKey, offers, segment, styleOf } from './addresses.js';
import { base } from './dom.js';

function suffix(density) { return density > 1 ? '@' + density + 'x' : ''; }

function quadkey(z, x, row) {
  let text = '';
  for (let bit = z - 1; bit >= 0; bit--) text += ((x >> bit) & 1) + 2 * ((row >> bit) & 1);
  return text;
}

/* Of a tile: minx, miny, maxx, maxy. */
export function tileBox(grid, z, x, row) {
  const [left, top] = grid.origins[z], width = grid.resolutions[z] * grid.tileSize[0], height = grid.resolutions[z] * grid.tileSize[1];
  return [left + x * width, top - (row + 1) * height, left + (x + 1) * width, top - row * height];
}

/* The box of the data with a margin, inside of the grid: symbols of features on the edge are drawn beyond it. */
export function viewBox(grid) {
  const [minx, miny, maxx, maxy] = grid.data, x = 0.05 * (maxx - minx), y = 0.05 * (maxy - miny), [left, bottom, right, top] = grid.extent;
  return [Math.max(Math.min(left, minx), minx - x), Math.max(Math.min(bottom, miny), miny - y),
    Math.min(Math.max(right, maxx), maxx + x), Math.min(Math.max(top, maxy), maxy + y)];
}

/* Dimensions as WMS names them, and the style. */
export function wmsValues(layer, values) {
  const params = styleOf(layer, values) === 'default' ? {} : { STYLES: values.style };
  for (const [name, value] of Object.entries(values))
    if (!layer.styles || name !== 'style')
      params[/^(time|elevation)$/i.test(name) ? name.toUpperCase() : 'DIM_' + name.toUpperCase()] = value;
  return params;
}

export function wmsUrl(params) {
  return base + '?' + new URLSearchParams({ SERVICE: 'WMS', VERSION: '1.1.1', ...params });
}

const ADDRESSES = {
  gmaps: function (tile) {
    return base + 'gmaps/' + layerKey(tile.layer, tile.grid.grid, tile.values) + '/' + tile.z + '/' + tile.x + '/' + tile.row + suffix(tile.density) +
      '.' + tile.layer.extension;
  },
  tms: function (tile) {
    return base + 'tms/1.0.0/' + layerKey(tile.layer, tile.grid.grid, tile.values) + '/' + tile.z + '/' + tile.x + '/' +
      (tile.grid.sizes[tile.z][1] - 1 - tile.row) + suffix(tile.density) + '.' + tile.layer.extension;
  },
  wmts: function (tile) {
    const dimensions = tile.layer.dimensions.map(function (dimension) {
      return segment(tile.values[dimension.name] === undefined ? dimension.default : tile.values[dimension.name]) + '/';
    });
    return base + 'wmts/1.0.0/' + segment(tile.layer.name) + '/' + segment(styleOf(tile.layer, tile.values)) + '/' + dimensions.join('') + segment(tile.grid.grid + suffix(tile.density)) + '/' +
      tile.z + '/' + tile.row + '/' + tile.x + '.' + tile.layer.extension;
  },
  ve: function (tile) {
    return tile.z === 0 ? undefined : base + 've?layer=' + layerKey(tile.layer, tile.grid.grid) + '&tile=' + quadkey(tile.z, tile.x, tile.row);
  },
  mapguide: function (tile) {
    const r = Math.floor(tile.row / 30) * 30, c = Math.floor(tile.x / 30) * 30;
    return base + 'mg/S' + (tile.grid.maxzoom - tile.z) + '/' + layerKey(tile.layer, tile.grid.grid) + '/R' + r + '/C' + c + '/' + (tile.row - r) + '_' +
      (tile.x - c) + '.' + tile.layer.extension;
  },
  wms: function (tile) {
    const box = tileBox(tile.grid, tile.z, tile.x, tile.row);
    return wmsUrl({ REQUEST: 'GetMap', LAYERS: tile.layer.name, STYLES: '', SRS: tile.grid.srs, BBOX: box.join(','), FORMAT: tile.format,
      WIDTH: tile.grid.tileSize[0] * tile.density, HEIGHT: tile.grid.tileSize[1] * tile.density, TRANSPARENT: 'TRUE',
      ...(tile.density > 1 ? { MAP_RESOLUTION: 90 * tile.density } : {}), ...wmsValues(tile.layer, tile.values) });
  }
};
ADDRESSES.kml = ADDRESSES.tms;

const ORDER = ['gmaps', 'wmts', 'tms', 'wms', 've', 'mapguide'];

/* The protocols that can be chosen: a list of [value, title]. */
export function protocolChoices(offer) {
  const choices = offer.services.filter(function (service) { return ADDRESSES[service.type] !== undefined; })
    .map(function (service) { return [service.type, service.title + (service.type === 'wms' ? ', tile by tile' : '')]; });
  if (offers(offer, 'wms') && offer.assembles) choices.push(['map', 'WMS, one map']);
  return choices;
}

/* The protocol that a layer is asked by: the chosen one, or what suits; NULL where none can be. */
export function protocolOf(offer, layer, chosen) {
  const wanted = chosen === 'map' ? 'wms' : chosen;
  const possible = function (type) { return offers(offer, type) && (layer.image || type !== 'wms'); };
  if (wanted && possible(wanted)) return chosen === 'map' && offer.assembles ? 'map' : wanted;
  return ORDER.find(possible) || null;
}

/* Pixels of a tile for one of the page, on screens that have them, where the layer and the protocol do. */
export function densityOf(grid, by) {
  if (by === 've' || by === 'mapguide') return 1;
  const most = Math.ceil(window.devicePixelRatio - 0.25);
  return Math.max(1, ...grid.densities.filter(function (offered) { return offered <= most; }));
}

/* The address of a tile; undefined where there is no such tile. */
export function tileAddress(by, tile) {
  const [columns, rows] = tile.grid.sizes[tile.z] || [0, 0];
  if (tile.x < 0 || tile.row < 0 || tile.x >= columns || tile.row >= rows || tile.z < tile.grid.minzoom) return undefined;
  return ADDRESSES[by](tile);
}
