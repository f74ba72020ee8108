/* Where tiles and documents of a layer are, as clients write it. `offer`: the protocols that the server has. */
import { base, here } from './dom.js';

export function offers(offer, type) {
  return offer.services.some(function (service) { return service.type === type; });
}

/* One element of a path. */
export function segment(text) {
  return encodeURIComponent(text).replace(/%(40|3A|2C|3D|21|24|27|28|29|2A)/gi, function (code) { return decodeURIComponent(code); });
}

/* The style that is chosen for a layer of several: among its values, under a name that no dimension of it has. */
export function styleOf(layer, values = {}) { return layer.styles && values.style ? values.style : 'default'; }

/* name[dimension=value]@grid */
export function layerKey(layer, grid, values = {}) {
  let text = layer.name;
  for (const [name, value] of Object.entries(values)) text += '[' + name + '=' + value + ']';
  return segment(text + '@' + grid);
}

/* The path of a layer's tiles, a template with {z}, {x} and {y}; NULL where no service has tiles by path. */
export function tileTemplate(offer, layer, grid, values, suffix = '') {
  const key = layerKey(layer, grid, values);
  const end = suffix + '.' + layer.extension;
  if (offers(offer, 'gmaps')) return { url: base + 'gmaps/' + key + '/{z}/{x}/{y}' + end, fromTop: true };
  if (offers(offer, 'tms')) return { url: base + 'tms/1.0.0/' + key + '/{z}/{x}/{y}' + end, fromTop: false };
  if (!offers(offer, 'wmts')) return null;
  const parts = Object.values(values || {}).map(function (value) { return segment(value) + '/'; }).join('');
  return { url: base + 'wmts/1.0.0/' + segment(layer.name) + '/default/' + parts + segment(grid + suffix) + '/{z}/{y}/{x}.' + layer.extension,
    fromTop: true };
}

export function tileUrl(template, z, x, row, rows) {
  return template.url.replace('{z}', z).replace('{x}', x).replace('{y}', template.fromTop ? row : rows - 1 - row);
}

/** What a layer is called by its tiles. */
export function formatText(layer) {
  if (isVector(layer)) return 'vector tiles';
  return layer.format || { 'image/png': 'PNG', 'image/jpeg': 'JPEG', 'image/webp': 'WebP', 'image/gif': 'GIF' }[layer.mime] || layer.mime;
}

export function isVector(layer) { return !layer.image && /mapbox-vector-tile|protobuf|mvt/i.test(layer.mime); }

function isWebMercator(grid) { return /(:|^)(3857|900913|3785)$/.test(grid.srs); }

/* What another program needs to use a layer, by a name for each: copied as it is. */
export function layerAddresses(offer, layer, grid) {
  const found = [], name = grid.grid, key = layerKey(layer, name);
  if (offers(offer, 'gmaps')) {
    found.push(['XYZ', base + 'gmaps/' + key + '/{z}/{x}/{y}.' + layer.extension]);
    for (const extension of layer.further || [])
      found.push(['XYZ, ' + extension, base + 'gmaps/' + key + '/{z}/{x}/{y}.' + extension]);
    found.push(['TileJSON', base + 'gmaps/' + key + '.json']);
  }
  if ((offers(offer, 'gmaps') || offers(offer, 'tms')) && isWebMercator(grid) && (layer.image || isVector(layer)))
    found.push(['Style', here + 'style.json?layer=' + key]);
  if (offers(offer, 'wmts')) {
    found.push(['WMTS', base + 'wmts/1.0.0/WMTSCapabilities.xml']);
    found.push(['WMTS tiles', base + 'wmts/1.0.0/' + segment(layer.name) + '/default/' +
      layer.dimensions.map(function (dimension) { return '{' + dimension + '}/'; }).join('') + segment(name) +
      '/{TileMatrix}/{TileRow}/{TileCol}.' + layer.extension]);
  }
  if (offers(offer, 'tms')) found.push(['TMS', base + 'tms/1.0.0/' + key + '/{z}/{x}/{-y}.' + layer.extension]);
  if (offers(offer, 'wms') && layer.image) {
    found.push(['WMS', base + '?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetCapabilities']);
    if (layer.legend) found.push(['Legend', legendUrl(layer)]);
  }
  if (offer.ogcapi && !layer.name.includes('/') && (layer.image || isVector(layer)))
    found.push(['OGC API', base + 'ogcapi/collections/' + segment(layer.name)]);
  if (offers(offer, 'kml') && layer.image && grid.kml) found.push(['KML', base + 'kml/' + key + '.kml']);
  return found.concat(snippets(offer, layer, grid));
}

export function legendUrl(layer, style = 'default') {
  return base + '?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetLegendGraphic&FORMAT=image/png&LAYER=' + encodeURIComponent(layer.name) +
    (style === 'default' ? '' : '&STYLE=' + encodeURIComponent(style));
}

function quoted(text) { return JSON.stringify(text); }

/* A word of a command line, whatever is in it: names of layers come from files of strangers. */
function shellQuoted(text) { return '\'' + text.replace(/'/g, '\'\\\'\'') + '\''; }

/* Lines for QGIS' Python console and for a shell. */
function snippets(offer, layer, grid) {
  const found = [], key = layerKey(layer, grid.grid), zooms = '&zmin=' + grid.minzoom + '&zmax=' + grid.maxzoom;
  const capabilities = base + 'wmts/1.0.0/WMTSCapabilities.xml';
  const xyz = offers(offer, 'gmaps') ? base + 'gmaps/' + key + '/{z}/{x}/{y}.' + layer.extension : null;
  const uri = 'type=xyz' + zooms + '&url=' + (xyz === null ? '' : encodeURIComponent(xyz));
  if (isVector(layer)) {
    if (xyz !== null && isWebMercator(grid))
      found.push(['QGIS', 'QgsProject.instance().addMapLayer(QgsVectorTileLayer(' + quoted(uri) + ', ' + quoted(layer.title) + '))']);
    if (xyz !== null)
      found.push(['GDAL', 'ogrinfo -ro -al -so -oo ' + shellQuoted('METADATA_FILE=' + base + 'gmaps/' + key + '.json') + ' -oo ' +
        shellQuoted('TILE_EXTENSION=' + layer.extension) + ' ' + shellQuoted('MVT:' + base + 'gmaps/' + key + '/' + grid.minzoom)]);
    return found;
  }
  if (xyz !== null && isWebMercator(grid))
    found.push(['QGIS', 'iface.addRasterLayer(' + quoted(uri) + ', ' + quoted(layer.title) + ', "wms")']);
  else if (offers(offer, 'wmts'))
    found.push(['QGIS', 'iface.addRasterLayer(' + quoted('crs=' + grid.srs + '&format=' + layer.mime + '&layers=' + encodeURIComponent(layer.name) +
      '&styles=default&tileMatrixSet=' + encodeURIComponent(grid.grid) + '&url=' + encodeURIComponent(capabilities)) + ', ' +
      quoted(layer.title) + ', "wms")']);
  if (offers(offer, 'wmts'))
    found.push(['GDAL', 'gdal_translate -outsize 1024 0 ' + shellQuoted('WMTS:' + capabilities + ',layer=' + layer.name + ',tilematrixset=' + grid.grid) +
      ' map.tif']);
  return found;
}

/* The map with one layer. */
export function mapUrl(layer, grid) { return here + 'map#layer=' + encodeURIComponent(layer.name) + (grid ? '&grid=' + encodeURIComponent(grid) : ''); }
