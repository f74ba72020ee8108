/* The page: which map, out of which data, in which form; what a click hits; the legend. */
import { startView } from '../catalogue/timing.js';
import { boundsOf, featureInfoUrl, legendUrl, map, show } from './map.js';

const byId = function (id) { return document.getElementById(id); };
const CHOICES = { layer: ['world', 'counties'], data: ['shapefile', 'postgis'], form: ['map', 'tiles', 'vector'] };
const SAYS = { shapefile: 'Mapped into memory, cut by the boxes of their records.', postgis: 'Binary rows of one prepared statement for each layer.' };
const state = { layer: 'world', data: 'shapefile', form: 'map' };
const popup = new ol.Overlay({ element: byId('popup'), positioning: 'bottom-center', offset: [0, -8], autoPan: { animation: { duration: 150 } } });

/* ---- choices ---- */

function update() {
  for (const [name, values] of Object.entries(CHOICES))
    for (const button of byId(name).children)
      button.setAttribute('aria-checked', String(button.dataset.value === state[name]));
  byId('says').textContent = SAYS[state.data];
  history.replaceState(null, '', '#' + [state.layer, state.data, state.form].join('/'));
  popup.setPosition(undefined);
  startView();
  byId('address').textContent = show(state);
  showLegend();
}

function showLegend() {
  const legend = legendUrl(state);
  if (byId('legend').getAttribute('src') !== legend) byId('legend').src = legend;
}

function choose(name, value) {
  const moved = name === 'layer' && state.layer !== value;
  state[name] = value;
  if (moved) map.getView().fit(boundsOf(value), { padding: [20, 20, 20, 20] });
  update();
}

function fromAddress() {
  const words = location.hash.slice(1).split('/');
  Object.keys(CHOICES).forEach(function (name, index) {
    if (CHOICES[name].includes(words[index])) state[name] = words[index];
  });
}

/* PostGIS is there if the server was started with it. */
async function lookForData() {
  const there = await (await fetch('sources.json', { cache: 'no-cache' })).json();
  for (const button of byId('data').children) {
    button.disabled = !there.includes(button.dataset.value);
    if (button.disabled) button.title = 'script/server --postgis';
  }
  if (!there.includes(state.data)) state.data = there[0];
}

/* ---- what a click hits ---- */

function element(name, text) {
  const result = document.createElement(name);
  result.textContent = text;
  return result;
}

function described(properties) {
  const table = document.createElement('table');
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'name' || name === 'colour' || name === 'id' || value === null || value === '') continue;
    const row = document.createElement('tr');
    row.append(element('td', name), element('td', name === 'area' ? Number(value).toLocaleString('en') + ' km²' : value));
    table.append(row);
  }
  return [element('h3', properties.name), table];
}

/* A feature stands in several layers: for its area, its point, its name. */
function distinct(features) {
  const seen = new Set();
  return features.map(function (feature) { return feature.properties; }).filter(function (properties) {
    const key = JSON.stringify(properties);
    const wanted = properties.area !== undefined && properties.name && !seen.has(key);
    seen.add(key);
    return wanted;
  });
}

async function ask(event) {
  const reply = await fetch(featureInfoUrl(state, event.coordinate));
  if (!reply.ok) throw new Error('GetFeatureInfo: ' + reply.status);
  const found = distinct((await reply.json()).features);
  byId('found').replaceChildren(...(found.length ? found.flatMap(described) : [element('p', 'Nothing here but sea.')]));
  byId('popup').hidden = false;
  popup.setPosition(event.coordinate);
}

/* ---- all together ---- */

function fail(error) {
  byId('problem').textContent = String(error);
  byId('problem').hidden = false;
}

async function start() {
  fromAddress();
  await lookForData();
  map.addOverlay(popup);
  byId('map').map = map; // for a look at it from the console
  for (const name of Object.keys(CHOICES))
    for (const button of byId(name).children)
      button.addEventListener('click', function () { choose(name, button.dataset.value); });
  byId('close').addEventListener('click', function () { popup.setPosition(undefined); });
  map.getView().on('change:resolution', showLegend);
  map.on('singleclick', function (event) { ask(event).catch(fail); });
  map.getView().fit(boundsOf(state.layer), { padding: [20, 20, 20, 20] });
  update();
}

start().catch(fail);
