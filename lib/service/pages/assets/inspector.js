/* What a click hits: features of vector tiles, and what GetFeatureInfo says of images. */
import { offers } from './addresses.js';
import { byId, element } from './dom.js';
import { wmsUrl, wmsValues } from './protocols.js';
import { plainText } from './tile_log.js';

const MOST = 50;

function valueText(value) { return value !== null && typeof value === 'object' ? JSON.stringify(value) : String(value); }

function tableOf(properties) {
  const rows = Object.entries(properties).map(function ([name, value]) {
    return element('tr', {}, element('td', { text: name }), element('td', { text: valueText(value) }));
  });
  return rows.length > 0 ? element('table', {}, element('tbody', {}, ...rows)) : element('p', { text: 'no attributes' });
}

function featureOf(feature) {
  return element('div', {}, element('h3', { text: feature.title + (feature.id === undefined || feature.id === null ? '' : ' ' + feature.id) }), tableOf(feature.properties));
}

/* A box of a map around a point: GetFeatureInfo is asked for the pixel in its middle. */
function infoUrl(entry, [x, y], resolution, format) {
  const half = 50 * resolution;
  return wmsUrl({ REQUEST: 'GetFeatureInfo', LAYERS: entry.layer.name, QUERY_LAYERS: entry.layer.name, STYLES: '', SRS: entry.grid.srs,
    BBOX: [x - half, y - half, x + half, y + half].map(function (number) { return number.toPrecision(12); }).join(','), WIDTH: 101, HEIGHT: 101, X: 50, Y: 50,
    INFO_FORMAT: format, FEATURE_COUNT: 10, FORMAT: 'image/png', ...wmsValues(entry.layer, entry.values) });
}

async function askServer(entry, place, resolution) {
  const format = ['application/json', 'application/geo+json', 'text/plain'].find(function (known) { return entry.layer.infoFormats.includes(known); }) || entry.layer.infoFormats[0];
  const answer = await fetch(infoUrl(entry, place.coordinate, resolution, format)), text = await answer.text();
  if (!answer.ok) throw new Error(entry.layer.title + ': the server answers ' + answer.status + ': ' + plainText(text));
  if (!/json/.test(format)) return text.trim() ? [element('h3', { text: entry.layer.title }), element('pre', { text: /html|xml|gml/.test(format) ? plainText(text) : text })] : [];
  return (JSON.parse(text).features || []).map(function (feature) {
    return featureOf({ title: entry.layer.title, id: feature.id, properties: feature.properties || {} });
  });
}

/* Fills the panel; `found`: what the browser has drawn there. */
export async function inspect(offer, entries, found, place, resolution, viewSrs) {
  const list = byId('features');
  const asked = !offers(offer, 'wms') || place === null ? [] : entries.filter(function (entry) {
    return entry.visible && entry.layer.image && entry.layer.infoFormats.length > 0 && entry.grid.srs === viewSrs;
  });
  byId('found').hidden = false;
  list.replaceChildren(...found.slice(0, MOST).map(featureOf));
  if (asked.length > 0) list.append(element('p', { text: 'asking the server ...', className: 'asking' }));
  const answers = await Promise.allSettled(asked.map(function (entry) { return askServer(entry, place, resolution); }));
  for (const asking of list.querySelectorAll('.asking')) asking.remove();
  for (const answer of answers) list.append(...(answer.status === 'fulfilled' ? answer.value : [element('p', { className: 'bad', text: answer.reason.message })]));
  if (list.children.length === 0) list.append(element('p', { text: 'Nothing here.' }));
  byId('found').scrollIntoView({ block: 'nearest' });
}
