/* The map page: what is chosen, the link to it, and the engine that draws it. */
import { isVector } from './addresses.js';
import { byId, copyText, element, fetchJson, here } from './dom.js';
import { createGl, isWebGrid, whyNoGl } from './engine_gl.js';
import { createOl } from './engine_ol.js';
import { bytesText, clearFrames, drawFrames, timeText } from './frames.js';
import { inspect } from './inspector.js';
import { absentText, hasOpenLayers, hasProj4 } from './libraries.js';
import { showLegends, showOffered, showStack } from './layers_panel.js';
import { clearProblems, reportProblem } from './problems.js';
import { densityOf, protocolChoices, protocolOf, viewBox } from './protocols.js';
import { emptyState, packState, unpackState } from './state.js';
import { placeSwipe, startSwipe } from './swipe.js';
import { onTile } from './tile_log.js';

let state = emptyState(), offer = { services: [], layers: [] }, entries = [], engine = null, viewGrid = null, round = 0, noGl = null;
const details = new Map();
const counts = { tiles: 0, bytes: 0, ms: 0, server: 0, timed: 0, failed: 0 };

/* ---- what is chosen ---- */

function detailOf(name) {
  if (!details.has(name)) {
    const asked = fetchJson(here + 'layers.json?layer=' + encodeURIComponent(name));
    details.set(name, asked);
    asked.catch(function () { details.delete(name); });
  }
  return details.get(name);
}

function gridOf(layer, wanted) {
  return layer.grids.find(function (grid) { return grid.grid === wanted.grid; }) || layer.grids.find(function (grid) { return grid.srs === wanted.srs; }) ||
    layer.grids[0];
}

/* A layer of the state with all that is known of it; `trouble` says why it cannot be drawn. */
async function entryOf(chosen) {
  try {
    const layer = await detailOf(chosen.name);
    const trouble = layer.trouble || (layer.grids.length === 0 ? 'The layer has no grid.' : null) ||
      (layer.image || isVector(layer) ? null : 'Tiles of ' + layer.mime + ' cannot be drawn by a browser.');
    return { ...chosen, layer: layer, title: layer.title, trouble: trouble, format: offer.format };
  } catch (error) {
    return { ...chosen, layer: null, title: chosen.name, trouble: error.message };
  }
}

/* Whether images can be warped from and to the CRS of a grid. */
function needsProj4(grid) { return !/(^|:)(3857|900913|4326)$/.test(grid.srs); }

function isKnown(grid) { return !needsProj4(grid) || (Boolean(grid.proj) && hasProj4()); }

/* A layer that cannot be warped into the map's CRS, and why not. */
async function whyNotWarped(entry) {
  if (entry.layer.image && !hasProj4() && [entry.grid, viewGrid].some(function (grid) { return needsProj4(grid) && grid.proj; }))
    return absentText('proj4', 'proj4.js', 'so this layer cannot be warped into ' + viewGrid.srs);
  return 'The layer has no grid in ' + viewGrid.srs + ', and cannot be warped there.';
}

async function resolveGrids(all) {
  const drawable = all.filter(function (entry) { return entry.trouble === null; });
  const first = drawable.find(function (entry) { return entry.layer.grids.some(function (grid) { return grid.grid === state.grid; }); }) || drawable[0];
  if (first === undefined) return;
  viewGrid = { ...gridOf(first.layer, { grid: state.grid, srs: null }) };
  state.grid = viewGrid.grid;
  for (const entry of drawable) {
    entry.grid = gridOf(entry.layer, viewGrid);
    entry.by = protocolOf(offer, entry.layer, state.by);
    if (entry.by === null) entry.trouble = 'No service has tiles of this layer: gmaps, wmts, tms and wms are off.';
    else if (entry.grid.srs !== viewGrid.srs && !(entry.layer.image && isKnown(entry.grid) && isKnown(viewGrid)))
      entry.trouble = await whyNotWarped(entry);
    entry.density = densityOf(entry.grid, entry.by);
  }
  /* One zooms in as far as the layer with the finest tiles goes. */
  viewGrid.finest = Math.min(...drawable.filter(function (entry) { return entry.grid.srs === viewGrid.srs; })
    .map(function (entry) { return entry.grid.resolutions[entry.grid.maxzoom]; }));
}

/* The first layer that can be seen; below one with transparency another without, if there is one. */
function chooseFirst() {
  const usable = offer.layers.filter(function (layer) { return !layer.trouble && layer.grids.length > 0 && (layer.image || isVector(layer)); });
  const first = usable[0];
  if (first === undefined) return;
  state.grid = state.grid || first.grids[0].grid;
  state.layers = [{ name: first.name, opacity: 1, visible: true, values: {} }];
}

/* ---- drawing ---- */

function wantsGl() {
  const drawn = entries.filter(function (entry) { return entry.trouble === null; });
  const possible = drawn.length > 0 && state.swipe === null && viewGrid !== null && drawn.every(function (entry) {
    return isWebGrid(entry.grid) && entry.by !== 'map' && (!isVector(entry.layer) || ((entry.layer.vectorLayers || []).length > 0 && !entry.layer.discovered)); /* else it is not known what to draw */
  });
  if (state.engine === 'ol' || !possible) return false;
  const wanted = state.engine === 'gl' || !hasOpenLayers() || drawn.some(function (entry) { return isVector(entry.layer); });
  if (!wanted) return false;
  if (noGl === null) noGl = whyNoGl() || '';
  if (noGl) reportProblem(noGl);
  return noGl === '';
}

async function useEngine(gl) {
  if (gl && !hasOpenLayers()) reportProblem(await absentText('OpenLayers', 'ol.js', 'so MapLibre draws the map'));
  const name = gl ? 'MapLibre' : 'OpenLayers';
  if (engine !== null && engine.name === name) return false;
  const at = engine === null ? null : engine.at();
  if (engine !== null) engine.destroy();
  engine = null;
  byId('map').replaceChildren(element('div'));
  const target = byId('map').firstChild;
  if (gl) {
    try {
      engine = await createGl(target, hooks);
    } catch (error) {
      noGl = await absentText('MapLibre', error.file || 'maplibre-gl.mjs', 'so OpenLayers draws the map');
      reportProblem(noGl);
      return useEngine(false);
    }
  } else if (!hasOpenLayers()) throw new Error(await absentText('OpenLayers', 'ol.js', 'so there is no map'));
  else engine = createOl(target, hooks);
  byId('map').map = engine.map; /* for a look at it from the console */
  byId('map').dataset.engine = name;
  if (at !== null) state.at = at;
  return true;
}

async function apply() {
  const mine = ++round, before = viewGrid;
  const all = await Promise.all(state.layers.map(entryOf));
  if (mine !== round) return;
  await resolveGrids(all);
  if (mine !== round) return;
  entries = all;
  for (const entry of entries) if (entry.trouble !== null) reportProblem(entry.trouble, entry.title);
  showPanel();
  if (viewGrid === null) return;
  const changed = await useEngine(wantsGl());
  if (mine !== round) return;
  if (before !== null && before.srs !== viewGrid.srs) state.at = null;
  if (changed || before === null || before.srs !== viewGrid.srs || before.grid !== viewGrid.grid || before.finest !== viewGrid.finest) engine.setView(viewGrid, state.at);
  engine.setLayers(entries.filter(function (entry) { return entry.trouble === null; }));
  engine.setSwipe(state.swipe);
  placeSwipe(state.swipe);
  remember();
}

function remember() {
  const text = packState(state);
  if (text !== location.hash) history.replaceState(null, '', text);
}

function change(fresh = true) {
  if (fresh) {
    clearProblems();
    Object.keys(counts).forEach(function (key) { counts[key] = 0; });
  }
  apply().catch(fail);
}

function fail(error) { reportProblem(error.message); }

/* ---- what engines tell ---- */

const hooks = {
  moved: function () {
    const at = engine && engine.at();
    if (!at) return;
    state.at = at;
    remember();
    const levels = viewGrid.resolutions, z = Math.log2(levels[viewGrid.minzoom] / at[2]);
    const nearest = levels.reduce(function (best, resolution, index) { return Math.abs(Math.log(resolution / at[2])) < Math.abs(Math.log(levels[best] / at[2])) ? index : best; }, 0);
    byId('zoom').textContent = 'zoom ' + (isWebGrid(viewGrid) ? (viewGrid.minzoom + z).toFixed(1) : nearest + ' (' + Number(at[2].toPrecision(3)) + ' ' + viewGrid.units + '/px)');
  },
  drawn: function () {
    if (state.borders && engine) drawFrames(engine.tilesInView());
  },
  pointed: function (place) { byId('place').textContent = place ? place.text : ''; },
  clicked: function (pixel, place) {
    inspect(offer, entries.filter(function (entry) { return entry.trouble === null; }), engine.featuresAt(pixel), place, engine.at()[2], viewGrid.srs).catch(fail);
  },
  failed: function (error) { reportProblem('The map cannot be drawn: ' + (error && error.message ? error.message : String(error))); }
};

function showCounts() {
  const rows = [['engine', engine ? engine.name : '–'], ['tiles', String(counts.tiles)], ['bytes', bytesText(counts.bytes)],
    ['each', counts.tiles ? timeText(counts.ms / counts.tiles) : '–'], ['server', counts.timed ? timeText(counts.server / counts.timed) : '–'], ['failed', String(counts.failed)]];
  byId('tiles').replaceChildren(...rows.flatMap(function ([term, text]) { return [element('dt', { text: term }), element('dd', { text: text })]; }));
}

onTile(function (record) {
  if (!record.counted) {
    record.counted = true;
    counts.tiles += 1;
    counts.bytes += record.bytes;
    counts.ms += record.ms;
    if (record.error !== null) {
      counts.failed += 1;
      reportProblem(record.error, record.layer, record.z === undefined ? '' : record.z + '/' + record.x + '/' + record.row);
    }
  }
  if (record.server !== null && !record.kept && !record.timed) {
    record.timed = true;
    counts.timed += 1;
    counts.server += record.server;
  }
  showCounts();
  hooks.drawn();
});

/* ---- the panel ---- */

const acts = {
  change: function (index, values) {
    Object.assign(state.layers[index], values);
    change(values.values !== undefined);
  },
  move: function (index, by) {
    const [layer] = state.layers.splice(index, 1);
    state.layers.splice(index + by, 0, layer);
    change(false);
  },
  remove: function (index) {
    state.layers.splice(index, 1);
    change();
  }
};

function add(name) {
  if (state.layers.length < 20) state.layers.push({ name: name, opacity: 1, visible: true, values: {} });
  change();
}

function fillSelect(id, choices, value) {
  byId(id).replaceChildren(...choices.map(function ([key, title]) { return new Option(title, key); }));
  byId(id).value = value;
}

function showPanel() {
  showStack(entries, acts);
  showOffered(offer, state.layers.map(function (layer) { return layer.name; }), add);
  showLegends(offer, entries);
  const grids = new Map(entries.flatMap(function (entry) { return entry.layer ? entry.layer.grids.map(function (grid) { return [grid.grid, grid]; }) : []; }));
  fillSelect('grid', [...grids.keys()].map(function (name) { return [name, name]; }), state.grid);
  byId('crs').textContent = grids.has(state.grid) ? 'in ' + grids.get(state.grid).srs : '';
  fillSelect('by', [['', 'what suits'], ...protocolChoices(offer)], state.by);
  byId('engine').value = state.engine;
  byId('borders').setAttribute('aria-pressed', String(state.borders));
  byId('swiping').setAttribute('aria-pressed', String(state.swipe !== null));
  byId('credit').textContent = [...new Set(entries.filter(function (entry) { return entry.visible && entry.layer; }).map(function (entry) { return entry.layer.attribution; }).filter(Boolean))].join(', ');
  showCounts();
}

function listen() {
  byId('filter').addEventListener('input', showPanel);
  byId('grid').addEventListener('change', function (event) { state.grid = event.target.value; change(); });
  byId('by').addEventListener('change', function (event) { state.by = event.target.value; change(); });
  byId('engine').addEventListener('change', function (event) { state.engine = event.target.value; change(); });
  byId('borders').addEventListener('click', function () {
    state.borders = !state.borders;
    clearFrames();
    hooks.drawn();
    showPanel();
    remember();
  });
  byId('swiping').addEventListener('click', function () { state.swipe = state.swipe === null ? 0.5 : null; change(false); });
  byId('whole').addEventListener('click', function () { if (engine) engine.fit(viewBox(viewGrid)); });
  byId('link').addEventListener('click', function (event) { copyText(location.href, event.target); });
  byId('fold').addEventListener('click', function () {
    const folded = byId('panel').classList.toggle('folded');
    byId('fold').setAttribute('aria-expanded', String(!folded));
  });
  startSwipe(function (share) { state.swipe = share; engine.setSwipe(share); remember(); });
  new ResizeObserver(function () { if (engine) engine.resize(); hooks.drawn(); }).observe(byId('stage'));
  window.addEventListener('hashchange', function () {
    if (location.hash === packState(state)) return;
    state = unpackState(location.hash);
    viewGrid = null;
    change();
  });
}

async function start() {
  state = unpackState(location.hash);
  listen();
  offer = await fetchJson(here + 'layers.json');
  if (document.body.dataset.service && !state.by) state.by = document.body.dataset.service;
  if (offer.layers.length === 0) throw new Error('No layers are configured: the configuration has no <tileset>.');
  if (state.layers.length === 0) chooseFirst();
  await apply();
}

start().catch(function (error) { reportProblem('The map does not start. ' + error.message); });
