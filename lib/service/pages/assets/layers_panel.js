/* The panel's list of layers: order, opacity, what is seen, dimensions; layers to add; legends. */
import { formatText, isVector, legendUrl, offers, styleOf } from './addresses.js';
import { byId, element } from './dom.js';
import { wmsValues } from './protocols.js';
import { timesOf } from './times.js';
import { colourOf } from './vector_style.js';

const OFFERED = 60; /* layers that are listed at once */

function button(text, label, act, disabled = false) {
  return element('button', { type: 'button', text: text, ariaLabel: label, title: label, disabled: disabled, on: { click: act } });
}

/* A slider where there is a list of values, and the list; else a field for any value. */
function dimensionField(dimension, value, choose) {
  const label = element('div', { className: 'dimension', data: { dimension: dimension.name } }, element('span', { text: dimension.name }));
  const known = dimension.periods ? timesOf(dimension.periods) : dimension.values;
  const values = known.includes(dimension.default) || known.length < 2 ? known : [dimension.default, ...known];
  if (values.length < 2) {
    const field = element('input', { type: 'text', value: value, ariaLabel: dimension.name });
    field.addEventListener('change', function () { choose(field.value); });
    label.append(field);
    return label;
  }
  const list = element('select', { ariaLabel: dimension.name }), slider = element('input', { type: 'range', min: 0, max: values.length - 1, step: 1, ariaLabel: dimension.name });
  for (const one of values) list.append(new Option(one, one));
  if (!values.includes(value)) list.append(new Option(value, value));
  list.value = value;
  slider.value = Math.max(0, values.indexOf(value));
  slider.addEventListener('input', function () { list.value = values[Number(slider.value)]; });
  slider.addEventListener('change', function () { choose(values[Number(slider.value)]); });
  list.addEventListener('change', function () { choose(list.value); });
  slider.style.gridColumn = '1 / -1';
  label.append(list, slider);
  return label;
}

/* A list of the styles of a layer; nothing where it has one. */
function styleField(layer, values, choose) {
  if (!layer.styles) return [];
  const list = element('select', { ariaLabel: 'style' });
  for (const style of layer.styles) list.append(new Option(style.title, style.name));
  list.value = styleOf(layer, values);
  list.addEventListener('change', function () { choose(list.value); });
  return [element('div', { className: 'dimension', data: { dimension: 'style' } }, element('span', { text: 'style' }), list)];
}

function noteOf(entry) {
  if (entry.trouble) return element('div', { className: 'note bad', text: entry.trouble });
  const words = [entry.layer.name, formatText(entry.layer),
    'zooms ' + entry.grid.minzoom + '–' + entry.grid.maxzoom];
  return element('div', { className: 'note', text: words.join(' · ') });
}

function itemOf(entry, index, count, act) {
  const seen = element('input', { type: 'checkbox', checked: entry.visible, ariaLabel: 'show ' + entry.title });
  const opacity = element('input', { type: 'range', min: 0, max: 1, step: 0.05, value: entry.opacity, ariaLabel: 'opacity of ' + entry.title, title: 'opacity' });
  seen.addEventListener('change', function () { act.change(index, { visible: seen.checked }); });
  opacity.addEventListener('input', function () { act.change(index, { opacity: Number(opacity.value) }); });
  const fields = entry.layer ? entry.layer.dimensions.map(function (dimension) {
    const value = entry.values[dimension.name] === undefined ? dimension.default : entry.values[dimension.name];
    return dimensionField(dimension, value, function (chosen) { act.change(index, { values: { ...entry.values, [dimension.name]: chosen } }); });
  }) : [];
  if (entry.layer) fields.unshift(...styleField(entry.layer, entry.values, function (chosen) { act.change(index, { values: { ...entry.values, style: chosen } }); }));
  return element('li', { data: { layer: entry.name } }, element('div', { className: 'head' }, seen, element('b', { text: entry.title }),
    button('↑', 'up', function () { act.move(index, 1); }, index === count - 1), button('↓', 'down', function () { act.move(index, -1); }, index === 0),
    button('×', 'remove', function () { act.remove(index); })), noteOf(entry), opacity, ...fields);
}

/* The uppermost layer first. A slider that is being moved stays what it is. */
export function showStack(entries, act) {
  const list = byId('stack');
  if (list.contains(document.activeElement) && document.activeElement.type === 'range' && list.children.length === entries.length) return;
  list.replaceChildren(...entries.map(function (entry, index) { return itemOf(entry, index, entries.length, act); }).reverse());
  if (entries.length === 0) list.append(element('li', { className: 'note', text: 'No layer is chosen.' }));
}

export function showOffered(offer, shown, add) {
  const words = byId('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = offer.layers.filter(function (layer) {
    const text = (layer.title + ' ' + layer.name).toLowerCase();
    return !shown.includes(layer.name) && words.every(function (word) { return text.includes(word); });
  });
  byId('layers').replaceChildren(...found.slice(0, OFFERED).map(function (layer) {
    return element('li', {}, element('button', { type: 'button', on: { click: function () { add(layer.name); } } }, layer.title + ' ', element('small', { text: layer.name })));
  }));
  if (found.length > OFFERED) byId('layers').append(element('li', { className: 'note', text: 'and ' + (found.length - OFFERED) + ' more' }));
}

function swatches(entry) {
  return (entry.layer.vectorLayers || []).map(function (known) {
    const swatch = element('i');
    swatch.style.background = colourOf(entry.layer, known.id);
    return element('div', {}, swatch, known.id);
  });
}

/* With as many pixels as the screen has, where the server draws the layer for such screens. */
function legendPicture(entry, failed) {
  const density = entry.layer.grids.some(function (grid) { return grid.densities.length > 0; }) ? Math.min(3, Math.ceil(window.devicePixelRatio - 0.25)) : 1;
  const { STYLES: style, ...values } = wmsValues(entry.layer, entry.values), params = { ...values, ...(density > 1 ? { MAP_RESOLUTION: 90 * density } : {}) };
  const picture = element('img', { alt: 'Legend of ' + entry.title, loading: 'lazy', on: { error: failed } });
  picture.addEventListener('load', function () { picture.style.width = picture.naturalWidth / density + 'px'; });
  picture.src = legendUrl(entry.layer, style) + Object.entries(params).map(function ([name, value]) { return '&' + encodeURIComponent(name) + '=' + encodeURIComponent(value); }).join('');
  return picture;
}

function legendOf(offer, entry) {
  const figure = element('figure', {}, element('figcaption', { text: entry.title }));
  if (isVector(entry.layer)) figure.append(...swatches(entry));
  else if ((entry.layer.legend || styleOf(entry.layer, entry.values) !== 'default') && offers(offer, 'wms'))
    figure.append(legendPicture(entry, function () { figure.append(element('p', { className: 'bad', text: 'The legend does not load.' })); }));
  else return null;
  return figure;
}

export function showLegends(offer, entries) {
  const key = JSON.stringify(entries.map(function (entry) { return [entry.name, entry.visible, entry.values]; }));
  if (byId('legend').dataset.key === key) return;
  byId('legend').dataset.key = key;
  const figures = entries.filter(function (entry) { return entry.layer && entry.visible; }).map(function (entry) { return legendOf(offer, entry); })
    .filter(Boolean).reverse();
  byId('legend').replaceChildren(...figures);
  byId('legends').hidden = figures.length === 0;
}
