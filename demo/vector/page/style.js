/* How the browser draws vector tiles: as the styles of the server draw its maps. What lies above has the higher number. */
const COLOURS = ['#f7e6c4', '#dde8c3', '#f3d6c9', '#e3d9e8', '#fbf3cf'];
const FONT = '"DejaVu Sans", sans-serif';
const UNDER = 1, LAND = 2, CASING = 3, LINE = 4, NAME = 5;

function fill(colour) { return new ol.style.Style({ zIndex: LAND, fill: new ol.style.Fill({ color: colour }) }); }

function line(zIndex, colour, width, dashes) {
  return new ol.style.Style({ zIndex: zIndex,
    stroke: new ol.style.Stroke({ color: colour, width: width, lineDash: dashes, lineJoin: 'round' }) });
}

function label(text, size, colour, weight) {
  return new ol.style.Style({ zIndex: NAME, text: new ol.style.Text({ text: text, font: weight + ' ' + size + 'px ' + FONT,
    fill: new ol.style.Fill({ color: colour }), stroke: new ol.style.Stroke({ color: 'rgba(255, 255, 255, .8)', width: 3.2 }) }) });
}

const ABROAD = fill('#eeece8');
const ICE = fill('#fafcfd');
const AREAS = COLOURS.map(fill);
const GRATICULE = line(0, '#b3cfdd', 0.7);
const CIRCLE = line(0, '#94b9cc', 0.8, [7, 4]);
const COAST = [line(UNDER, '#aecfe0', 5), line(LINE, '#6f9db7', 0.8)];
const COAST_NEAR = [line(UNDER, '#c0d9e6', 11), ...COAST];
const BORDER = line(LINE, '#98708f', 0.7);
const BORDER_NEAR = [line(CASING, 'rgba(155, 111, 150, .22)', 6), line(LINE, '#7b4d74', 1.2, [8, 2.5, 1.5, 2.5])];
const CLAIM = line(LINE, '#98708f', 1, [3, 3]);
const COUNTY_FAR = line(CASING, '#c3a992', 0.35);
const COUNTY = line(CASING, '#b3977f', 0.7);
const STATE = line(LINE, '#8a6a58', 0.9);
const STATE_NEAR = [line(CASING, 'rgba(255, 255, 255, .75)', 4.5), line(LINE, '#8a6a58', 1.6, [9, 3, 2, 3])];
const OUTSIDE = line(LINE, '#6f9db7', 1);
const SMALL = new ol.style.Style({ zIndex: NAME, image: new ol.style.Circle({ radius: 3, fill: new ol.style.Fill({ color: '#fff' }),
  stroke: new ol.style.Stroke({ color: '#7b4d74', width: 1.2 }) }) });

/* The larger the country, the earlier its name. */
function countryName(feature, zoom) {
  const area = Number(feature.get('area'));
  const least = [Infinity, Infinity, 1500000, 250000, 30000, 1000, 0][Math.min(zoom, 6)];
  if (area < 1000 && feature.get('iso') && zoom >= 4 && zoom < 8)
    return least > area ? SMALL : [SMALL, label(feature.get('name'), 10, '#5c4b61', '')];
  return area < least ? null : label(feature.get('name'), area >= 250000 ? 12 : 10, '#4a3a4f', area >= 250000 ? 'bold' : '');
}

function stateName(feature, zoom) {
  if (zoom < 4 || zoom >= 7) return null;
  if (zoom === 4) return Number(feature.get('area')) >= 30000 ? label(feature.get('code'), 11, '#6b4b3c', 'bold') : null;
  return label(feature.get('name'), 14, '#6b4b3c', 'bold');
}

const DRAW = {
  lines: function (feature, zoom) {
    if (feature.get('kind') === 'named') return CIRCLE;
    return zoom > 2 || Number(feature.get('step')) === 30 ? GRATICULE : null;
  },
  abroad: function () { return ABROAD; },
  countries: function (feature) { return feature.get('iso') === '010' ? ICE : AREAS[Number(feature.get('colour'))]; },
  counties: function (feature) { return AREAS[Number(feature.get('colour'))]; },
  borders: function (feature, zoom, inUnitedStates) {
    if (feature.get('kind') === 'coast') return inUnitedStates ? COAST[0] : zoom > 2 ? COAST_NEAR : COAST;
    if (inUnitedStates) return null;
    return feature.get('kind') === 'claim' ? CLAIM : zoom >= 4 ? BORDER_NEAR : BORDER;
  },
  limits: function (feature, zoom) {
    if (feature.get('kind') === 'outside') return OUTSIDE;
    if (feature.get('kind') === 'state') return zoom >= 5 ? STATE_NEAR : STATE;
    return zoom >= 5 ? COUNTY : zoom >= 4 ? COUNTY_FAR : null;
  },
  names: countryName,
  states: stateName,
  'county names': function (feature, zoom) { return zoom >= 7 ? label(feature.get('name'), 10, '#51433b', '') : null; }
};

export function styleOf(layer) {
  return function (feature, resolution) {
    const draw = DRAW[feature.get('layer')];
    const zoom = Math.round(Math.log2(156543.03392804097 / resolution));
    return draw === undefined ? null : draw(feature, zoom, layer === 'counties');
  };
}
