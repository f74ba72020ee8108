/* How the browser draws vector tiles: as the styles of the server draw the maps. */
const COLOURS = ['#f7e6c4', '#dde8c3', '#f3d6c9', '#e3d9e8', '#fbf3cf'];
const FONT = '"DejaVu Sans", sans-serif';

function fill(colour) { return new ol.style.Style({ fill: new ol.style.Fill({ color: colour }) }); }

function line(colour, width, dashes) {
  return new ol.style.Style({ stroke: new ol.style.Stroke({ color: colour, width: width, lineDash: dashes, lineJoin: 'round' }) });
}

function label(text, size, colour, weight) {
  return [new ol.style.Style({ text: new ol.style.Text({ text: text, font: weight + ' ' + size + 'px ' + FONT, overflow: false,
    fill: new ol.style.Fill({ color: colour }), stroke: new ol.style.Stroke({ color: 'rgba(255, 255, 255, .8)', width: 3.2 }) }) })];
}

const SEA = fill('#cfe2ec');
const ABROAD = fill('#eeece8');
const ICE = fill('#fafcfd');
const AREAS = COLOURS.map(fill);
const GRATICULE = line('#b3cfdd', 0.7);
const SHORE = line('#aecfe0', 5);
const COAST = line('#6f9db7', 0.8);
const BORDER = line('#98708f', 0.7);
const BORDER_NEAR = [line('rgba(155, 111, 150, .22)', 6), line('#7b4d74', 1.2, [8, 2.5, 1.5, 2.5])];
const CLAIM = line('#98708f', 1, [3, 3]);
const COUNTY = line('#b3977f', 0.7);
const STATE = line('#8a6a58', 0.9);
const STATE_NEAR = [line('rgba(255, 255, 255, .75)', 4.5), line('#8a6a58', 1.6, [9, 3, 2, 3])];

function border(kind, zoom) {
  if (kind === 'coast') return COAST;
  if (kind === 'claim') return CLAIM;
  return zoom >= 4 ? BORDER_NEAR : BORDER;
}

function limit(kind, zoom) {
  if (kind === 'county') return zoom >= 4 ? COUNTY : null;
  if (kind === 'outside') return COAST;
  return zoom >= 5 ? STATE_NEAR : STATE;
}

/* The larger the country, the earlier its name. */
function countryName(feature, zoom) {
  const area = Number(feature.get('area'));
  if (area < [1e99, 1e99, 1500000, 250000, 30000, 1000, 0][Math.min(Math.floor(zoom), 6)]) return null;
  return label(feature.get('name'), area >= 250000 ? 12 : 10, '#4a3a4f', area >= 250000 ? 'bold' : '');
}

function stateName(feature, zoom) {
  if (zoom < 4 || zoom >= 7) return null;
  if (zoom < 5) return Number(feature.get('area')) >= 30000 ? label(feature.get('code'), 11, '#6b4b3c', 'bold') : null;
  return label(feature.get('name'), 14, '#6b4b3c', 'bold');
}

const DRAW = {
  sea: function () { return SEA; },
  graticule: function () { return GRATICULE; },
  shores: function (feature) { return feature.get('kind') === 'coast' ? SHORE : null; },
  abroad: function () { return ABROAD; },
  countries: function (feature) { return feature.get('iso') === '010' ? ICE : AREAS[Number(feature.get('colour'))]; },
  counties: function (feature) { return AREAS[Number(feature.get('colour'))]; },
  borders: function (feature, zoom) { return border(feature.get('kind'), zoom); },
  limits: function (feature, zoom) { return limit(feature.get('kind'), zoom); },
  states: stateName,
  names: function (feature, zoom) {
    if (feature.get('fips') === undefined) return countryName(feature, zoom);
    return zoom >= 7 ? label(feature.get('name'), 10, '#51433b', '') : null;
  }
};

export function drawFeature(feature, resolution) {
  const draw = DRAW[feature.get('layer')];
  return draw === undefined ? null : draw(feature, Math.round(Math.log2(156543.03392804097 / resolution)));
}
