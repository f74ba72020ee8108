/* The page: search on the left, map in the middle, ways to ask for it and what they take on the right. */
import { allOn, dimension, isOn, matching, products, search, setAll, shown, take, toggle } from './products.js';
import { bar, startView, timed } from './timing.js';
import { comparedUrl, draw, highlight, map, productAt, setOpacity, setOutlines, showOutlines, zoomTo } from './map.js';

const byId = function (id) { return document.getElementById(id); };
const state = { alias: 'catalog-auto', protocol: 'map', drawn: '' };
let configurations = [];

function element(name, text, attributes) {
  const result = document.createElement(name);
  result.textContent = text;
  Object.assign(result, attributes);
  return result;
}

/* ---- the map's layer ---- */

function request(always) {
  const wanted = dimension();
  const now = JSON.stringify([state.alias, state.protocol, wanted]);
  if (now === state.drawn && !always) return;
  state.drawn = now;
  const asked = wanted === null ? 'nothing chosen'
    : (state.protocol === 'wmts' ? wanted.name.toUpperCase() : wanted.name === 'time' ? 'TIME' : 'DIM_PRODUCT') + '=' + wanted.value;
  byId('dimension').textContent = asked;
  startView();
  draw(state.alias, state.protocol, wanted, byId('opacity').value / 100);
}

/* ---- the list ---- */

function near(name, scroll) {
  if (!highlight(name)) return;
  for (const item of byId('products').children) {
    item.classList.toggle('near', item.dataset.name === name);
    if (scroll && item.dataset.name === name) item.scrollIntoView({ block: 'nearest' });
  }
}

function listEntry(product) {
  const item = element('li', '', { className: isOn(product) ? '' : 'off' });
  const box = element('input', '', { type: 'checkbox', checked: isOn(product) });
  item.dataset.name = product.name;
  box.setAttribute('aria-label', product.name);
  item.append(box, element('b', product.name), element('time', product.taken),
    element('small', product.keywords.join(', ') + ' · ' + product.style));
  box.addEventListener('click', function (event) {
    event.stopPropagation();
    toggle(product.name);
    update();
  });
  item.addEventListener('click', function () { zoomTo([product.name], products.maxzoom); });
  item.addEventListener('pointerenter', function () { near(product.name, false); });
  item.addEventListener('pointerleave', function () { near(null, false); });
  return item;
}

function update() {
  const list = matching();
  const count = shown().length;
  const place = byId('products').scrollTop;
  byId('products').replaceChildren(...list.map(listEntry));
  byId('products').scrollTop = place;
  byId('matching').textContent = count + ' of ' + list.length + ' drawn';
  byId('summary').textContent = products.all.length + ' products, each a SQLite file of its own';
  setOutlines(list, isOn);
  for (const chip of byId('keywords').children)
    chip.setAttribute('aria-pressed', String(chip.dataset.keyword === search.keyword));
  for (const month of byId('months').querySelectorAll('div'))
    month.classList.toggle('chosen', (search.from === '' || month.dataset.month >= search.from.slice(0, 7)) &&
      (search.to === '' || month.dataset.month <= search.to.slice(0, 7)));
  byId('from').value = search.from;
  byId('to').value = search.to;
  request(false);
}

function find(changes) {
  Object.assign(search, changes);
  allOn();
  update();
}

function zoomToShown() {
  zoomTo(shown().map(function (product) { return product.name; }), products.maxzoom);
}

/* ---- keywords and dates ---- */

function buildKeywords() {
  byId('keywords').replaceChildren(...products.keywords.map(function (pair) {
    const chip = element('button', pair[0] + ' ');
    chip.dataset.keyword = pair[0];
    chip.append(element('small', pair[1]));
    chip.addEventListener('click', function () {
      find({ keyword: search.keyword === pair[0] ? '' : pair[0] });
      zoomToShown();
    });
    return chip;
  }));
}

function lastDay(month) {
  return new Date(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5)), 0)).toISOString().slice(0, 10);
}

function months() {
  const counts = new Map();
  for (const product of products.all) counts.set(product.taken.slice(0, 7), (counts.get(product.taken.slice(0, 7)) || 0) + 1);
  const known = [...counts.keys()].sort();
  const last = known[known.length - 1];
  const all = [];
  // At most four years: more would be too narrow to hit.
  for (let date = new Date(known[0] + '-01T00:00:00Z'); date.toISOString().slice(0, 7) <= last; date.setUTCMonth(date.getUTCMonth() + 1))
    all.push(date.toISOString().slice(0, 7));
  return all.slice(-48).map(function (month) { return [month, counts.get(month) || 0]; });
}

function buildMonths() {
  const bars = months();
  const most = Math.max(1, ...bars.map(function (pair) { return pair[1]; }));
  byId('months').replaceChildren(...bars.map(function (pair) {
    const column = element('div', '', { title: pair[0] + ': ' + pair[1] });
    const full = element('i', '');
    column.dataset.month = pair[0];
    full.style.height = 100 * pair[1] / most + '%';
    column.append(full);
    return column;
  }));
  bars.forEach(function (pair, index) {
    if (!pair[0].endsWith('-01')) return;
    const year = element('span', pair[0].slice(0, 4));
    year.style.left = 100 * index / bars.length + '%';
    byId('months').append(year);
  });
}

function dragMonths() {
  let first = null;
  const monthAt = function (event) {
    const columns = [...byId('months').querySelectorAll('div')];
    const box = byId('months').getBoundingClientRect();
    const index = Math.floor((event.clientX - box.left) / box.width * columns.length);
    return columns[Math.max(0, Math.min(columns.length - 1, index))].dataset.month;
  };
  const choose = function (event) {
    const range = [first, monthAt(event)].sort();
    const dates = { from: range[0] + '-01', to: lastDay(range[1]) };
    if (dates.from !== search.from || dates.to !== search.to) find(dates);
  };
  byId('months').addEventListener('pointerdown', function (event) {
    first = monthAt(event);
    byId('months').setPointerCapture(event.pointerId);
    choose(event);
  });
  byId('months').addEventListener('pointermove', function (event) { if (first !== null) choose(event); });
  byId('months').addEventListener('pointerup', function () { first = null; });
}

/* ---- configurations ---- */

function configured(alias) {
  state.alias = alias;
  const current = configurations.find(function (configuration) { return configuration.name === alias; });
  byId('configuration').value = alias;
  byId('says').textContent = current.options === null ? 'Nothing is set: the server decides by itself.'
    : current.says[0].toUpperCase() + current.says.slice(1) + '.';
  for (const chip of byId('options').children)
    chip.setAttribute('aria-pressed', String(current.options !== null && current.options.includes(chip.dataset.option)));
  request(false);
}

/* With one option more or less; from no option set, with this one alone. */
function switchOption(option) {
  const current = configurations.find(function (configuration) { return configuration.name === state.alias; }).options || [];
  const wanted = current.includes(option) ? current.filter(function (other) { return other !== option; }) : [...current, option];
  configured(configurations.find(function (configuration) {
    return configuration.options !== null && configuration.options.length === wanted.length &&
      wanted.every(function (other) { return configuration.options.includes(other); });
  }).name);
}

function buildConfigurations(described) {
  configurations = described.configurations;
  byId('configuration').replaceChildren(...configurations.map(function (configuration) {
    return new Option(configuration.name, configuration.name);
  }));
  byId('options').replaceChildren(...Object.entries(described.words).map(function (pair) {
    const chip = element('button', pair[0], { title: pair[1] });
    chip.dataset.option = pair[0];
    chip.addEventListener('click', function () { switchOption(pair[0]); });
    return chip;
  }));
  byId('configuration').addEventListener('change', function (event) { configured(event.target.value); });
}

function median(numbers) {
  const known = numbers.filter(function (number) { return number !== null; }).sort(function (a, b) { return a - b; });
  return known.length ? known[Math.floor(known.length / 2)] : null;
}

/* The same map with each configuration: once to get ready, then the median of three. */
async function compare() {
  const wanted = dimension();
  if (wanted === null) return;
  byId('compare').disabled = true;
  const results = [];
  const requests = configurations.map(function (configuration) { // now: the map may be moved meanwhile
    return [configuration.name, comparedUrl(configuration.name, wanted)];
  });
  for (const [name, url] of requests) {
    const times = [];
    for (let turn = 0; turn < 4; turn++) times.push(await timed(url));
    const counted = times.slice(1);
    results.push({ name: name.replace('catalog-', ''), url: url, status: times[3].status,
      server: median(counted.map(function (time) { return time.server; })),
      client: median(counted.map(function (time) { return time.client; })) });
    const longest = Math.max(1, ...results.map(function (result) { return result.client; }));
    byId('comparison').replaceChildren(...results.map(function (result) { return bar(result, longest, result.name); }));
  }
  byId('compare').disabled = false;
}

/* ---- all together ---- */

function protocol(name) {
  state.protocol = name;
  for (const button of byId('protocol').children)
    button.setAttribute('aria-checked', String(button.dataset.protocol === name));
  request(false);
}

function listen() {
  byId('text').addEventListener('input', function (event) { find({ text: event.target.value }); });
  byId('from').addEventListener('change', function (event) { find({ from: event.target.value }); });
  byId('to').addEventListener('change', function (event) { find({ to: event.target.value }); });
  byId('clear').addEventListener('click', function () { find({ from: '', to: '' }); });
  byId('all').addEventListener('click', function () { setAll(true); update(); });
  byId('none').addEventListener('click', function () { setAll(false); update(); });
  byId('zoom').addEventListener('click', zoomToShown);
  byId('opacity').addEventListener('input', function (event) { setOpacity(event.target.value / 100); });
  byId('outlines').addEventListener('change', function (event) { showOutlines(event.target.checked); });
  byId('compare').addEventListener('click', compare);
  for (const button of byId('protocol').children)
    button.addEventListener('click', function () { protocol(button.dataset.protocol); });
  map.on('pointermove', function (event) {
    const name = event.dragging ? null : productAt(event.pixel);
    near(name, true);
    byId('tip').hidden = name === null;
    map.getTargetElement().style.cursor = name === null ? '' : 'pointer';
    if (name === null) return;
    byId('tip').textContent = name + ', ' + products.byName.get(name).taken;
    byId('tip').style.left = event.pixel[0] + 14 + 'px';
    byId('tip').style.top = event.pixel[1] + 14 + 'px';
  });
  map.on('singleclick', function (event) {
    const name = productAt(event.pixel);
    if (name === null) return;
    toggle(name);
    update();
  });
  map.getViewport().addEventListener('pointerleave', function () { near(null, false); byId('tip').hidden = true; });
}

let seen = '';

/* Reads the list again; true if it is another one. */
async function refresh() {
  const response = await fetch('products.geojson', { cache: 'no-cache' });
  if (!response.ok) throw new Error('products.geojson: ' + response.status);
  const text = await response.text();
  if (text === seen) return false;
  const before = new Set(products.byName.keys());
  seen = text;
  take(JSON.parse(text));
  const more = products.all.filter(function (product) { return !before.has(product.name); }).length;
  const fewer = before.size + more - products.all.length;
  if (before.size > 0) {
    byId('news').textContent = [more && more + ' new', fewer && fewer + ' gone'].filter(Boolean).join(', ') || 'products changed';
    byId('news').hidden = false;
    setTimeout(function () { byId('news').hidden = true; }, 5000);
  }
  return true;
}

function fail(error) {
  byId('problem').textContent = String(error);
  byId('problem').hidden = false;
}

/* Products come and go while the page is open. */
function watch() {
  setInterval(function () {
    refresh().then(function (changed) {
      byId('problem').hidden = true;
      if (!changed) return;
      buildKeywords();
      buildMonths();
      update();
      request(true);
    }).catch(fail);
  }, 3000);
}

async function start() {
  const described = await (await fetch('configurations.json')).json();
  await refresh();
  buildConfigurations(described);
  buildKeywords();
  buildMonths();
  dragMonths();
  listen();
  update();
  configured('catalog-auto');
  protocol('map');
  watch();
}

start().catch(fail);
