/* The front page: each layer as a card with a small picture, what it is, and how other programs get at it. */
import { formatText, isVector, layerAddresses, mapUrl, offers } from './addresses.js';
import { base, byId, copyText, element, fetchJson, here } from './dom.js';
import { showPicture } from './picture.js';

const AT_ONCE = 120; /* cards that are made before somebody asks for more */
let offer = { services: [], layers: [] }, wanted = [], shown = 0;

/* As many decimals as it takes to tell the edges of a box apart. */
function degrees(number, size, positive, negative) {
  const decimals = Math.min(5, Math.max(1, Math.ceil(1.5 - Math.log10(Math.max(size, 1e-9)))));
  return Math.abs(number).toFixed(decimals) + '°' + (number < 0 ? negative : positive);
}

function boxText([west, south, east, north]) {
  if (west <= -180 && east >= 180 && south <= -85 && north >= 85) return 'the world';
  const size = Math.min(east - west, north - south);
  return degrees(west, size, 'E', 'W') + ' to ' + degrees(east, size, 'E', 'W') + ', ' + degrees(south, size, 'N', 'S') + ' to ' +
    degrees(north, size, 'N', 'S');
}

function zoomText(layer) {
  const texts = layer.grids.map(function (grid) { return grid.minzoom + '–' + grid.maxzoom + ' in ' + grid.grid + ' (' + grid.srs + ')'; });
  return texts.length > 3 ? texts.slice(0, 3).join('; ') + ' and ' + (texts.length - 3) + ' more' : texts.join('; ');
}

function addressOf([name, text]) {
  const button = element('button', { type: 'button', text: 'copy', ariaLabel: 'copy ' + name });
  button.addEventListener('click', function () { copyText(text, button); });
  return element('div', { className: 'address', data: { name: name } }, element('b', {}, element('span', { text: name }), button), element('code', { text: text }));
}

/* Made when it is opened: there may be hundreds of layers. */
function addressesOf(layer) {
  const list = element('div'), choice = element('select', { ariaLabel: 'Grid', hidden: layer.grids.length < 2 });
  for (const [index, grid] of layer.grids.entries()) choice.append(new Option(grid.grid, index));
  function fill() {
    const grid = layer.grids[Number(choice.value)];
    list.replaceChildren(element('p', { text: grid.grid + ', in ' + grid.srs }), ...layerAddresses(offer, layer, grid).map(addressOf));
  }
  choice.addEventListener('change', fill);
  const details = element('details', {}, element('summary', { text: 'Addresses, QGIS, GDAL' }));
  details.addEventListener('toggle', function () {
    if (!details.open || details.contains(choice)) return;
    details.append(choice, list);
    fill();
  });
  return details;
}

function row(list, term, text) {
  if (text) list.append(element('dt', { text: term }), element('dd', { text: text }));
}

function cardOf(layer) {
  const map = mapUrl(layer, layer.grids[0] ? layer.grids[0].grid : '');
  const picture = element('a', { className: 'picture', href: map, tabIndex: -1, ariaHidden: 'true' });
  const list = element('dl');
  row(list, 'Zooms', zoomText(layer));
  row(list, 'Box', boxText(layer.box));
  row(list, 'Format', formatText(layer));
  row(list, 'Dimensions', layer.dimensions.join(', '));
  row(list, 'By', layer.attribution);
  if (layer.trouble) list.append(element('dt', { text: 'Trouble' }), element('dd', { className: 'bad', text: layer.trouble }));
  if (layer.mime !== 'image/jpeg') picture.classList.toggle('clear', layer.image);
  showPicture(picture, offer, layer);
  return element('li', { className: 'card', data: { layer: layer.name } }, picture, element('div', { className: 'body' },
    element('h2', {}, element('a', { href: map, text: layer.title })), element('code', { text: layer.name }),
    layer.abstract ? element('p', { text: layer.abstract, title: layer.abstract }) : null, list,
    layer.grids.length > 0 ? addressesOf(layer) : null));
}

function showMore() {
  const next = wanted.slice(shown, shown + AT_ONCE);
  byId('cards').append(...next.map(cardOf));
  shown += next.length;
  byId('more').hidden = shown >= wanted.length;
  byId('more').textContent = 'Show ' + Math.min(AT_ONCE, wanted.length - shown) + ' more';
}

function search() {
  const words = byId('filter').value.toLowerCase().split(/\s+/).filter(Boolean), kind = byId('kind').value;
  wanted = offer.layers.filter(function (layer) {
    const text = (layer.name + ' ' + layer.title + ' ' + (layer.abstract || '')).toLowerCase();
    return (kind === '' || (kind === 'vector') === isVector(layer)) && words.every(function (word) { return text.includes(word); });
  });
  shown = 0;
  byId('cards').replaceChildren();
  byId('count').textContent = wanted.length === offer.layers.length ? wanted.length + ' layers' : wanted.length + ' of ' + offer.layers.length + ' layers';
  showMore();
}

function links() {
  const list = byId('links');
  list.append(element('a', { href: here + 'map', text: 'Map' }));
  if (offers(offer, 'wms')) list.append(element('a', { href: base + '?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetCapabilities', text: 'WMS capabilities' }));
  if (offers(offer, 'wmts')) list.append(element('a', { href: base + 'wmts/1.0.0/WMTSCapabilities.xml', text: 'WMTS capabilities' }));
  if (offers(offer, 'tms')) list.append(element('a', { href: base + 'tms/1.0.0/', text: 'TMS' }));
  if (offer.ogcapi) list.append(element('a', { href: base + 'ogcapi', text: 'OGC API' }));
  if (offer.jobs) list.append(element('a', { href: base + 'jobs/', text: 'Jobs' }));
}

async function start() {
  offer = await fetchJson(here + 'layers.json');
  links();
  if (offer.layers.length === 0) {
    byId('notice').textContent = 'No layers are configured: the configuration has no <tileset>.';
    return;
  }
  /* the only layer's map is more to the point than a list of one */
  if (offer.layers.length === 1 && offer.layers[0].grids.length > 0 && new URLSearchParams(location.search).get('list') === null) {
    location.replace(mapUrl(offer.layers[0], offer.layers[0].grids[0].grid));
    return;
  }
  byId('search').hidden = offer.layers.length < 2;
  byId('search').addEventListener('submit', function (event) { event.preventDefault(); });
  byId('filter').addEventListener('input', search);
  byId('kind').addEventListener('change', search);
  byId('kind').hidden = !offer.layers.some(isVector) || offer.layers.every(isVector);
  byId('more').addEventListener('click', showMore);
  search();
}

start().catch(function (error) { byId('notice').textContent = 'The list of layers does not load. ' + error.message; });
