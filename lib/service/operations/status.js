/* The status page: asks for status.json every two seconds while somebody sees the page, and fills figures and tables. All that
   comes from the server is put in as text, never as markup. */
import { byId, element, fetchJson, here } from './dom.js';
import { bytes, difference, drawRates, duration, hitShare, milliseconds, number, percent, quantile, rateText } from './status_chart.js';
import { drawFlame } from './status_flame.js';

const INTERVAL = 2000, LONGEST = 60000, WINDOW = 60000, RATES = 90, LISTED = 12;
const looks = []; /* of the last minute, the latest one last */
const rates = []; /* requests a second between two looks */
let offset = 0, wait = INTERVAL, timer = 0, asking = false, again = false;

/* --- tables ---------------------------------------------------------------------------------------------------- */

/* A column: its head, the text of an item, and what is special: small text below, a class, a whole line on a phone. */
const failedText = function (item) {
  return item.failures ? number(item.failures) + (item.failed_seconds_ago === undefined ? '' : ', last ' + duration(item.failed_seconds_ago) + ' ago') : '';
};
const stateText = function (item) {
  return item.state === 'fails' && item.processes > 1 ? 'fails in ' + item.failing_processes + ' of ' + item.processes + ' processes' : item.state === 'unasked' ? 'not asked yet' : item.state;
};
const clock = function (time) { return new Date(time).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' }); };
const name = { head: 'Name', full: true, text: function (item) { return item.name; }, code: function (item) { return item.position; } };
const state = { head: 'State', text: stateText, state: function (item) { return item.state; } };
const type = { head: 'Type', text: function (item) { return item.type; } };
const failures = { head: 'Failures', text: failedText, small: function (item) { return item.failure; } };

const columns = {
  errors: [
    { head: 'Last', text: function (item) { return clock(item.time); }, brief: true },
    { head: 'Level', text: function (item) { return item.level; }, state: function (item) { return item.level === 'warn' ? 'warn' : 'error'; } },
    { head: 'Times', text: function (item) { return number(item.count); }, right: true },
    { head: 'Status', text: function (item) { return item.status; } },
    { head: 'Tileset', text: function (item) { return item.tileset; }, small: function (item) { return item.tile; } },
    { head: 'Message', text: function (item) { return item.text; }, small: function (item) { return item.url; }, code: function (item) { return item.position; }, full: true },
  ],
  slow: [
    { head: 'Took', text: function (item) { return milliseconds(item.ms); }, brief: true },
    { head: 'At', text: function (item) { return clock(item.time); }, brief: true },
    { head: 'Status', text: function (item) { return item.status; } },
    { head: 'Result', text: function (item) { return item.result; } },
    { head: 'Tileset', text: function (item) { return item.tileset; } },
    { head: 'Request', text: function (item) { return item.url; }, full: true },
    { head: 'Spans', button: 'Flame chart', act: showFlame },
  ],
  tilesets: [
    { head: 'Tileset', text: function (item) { return item.name; }, small: function (item) { return item.title === item.name ? '' : item.title; }, full: true },
    { head: 'Store', text: function (item) { return item.store; } },
    { head: 'Source', text: function (item) { return item.source; } },
    { head: 'Requests/s', text: function (item) { return item.rate === null ? '' : rateText(item.rate); }, right: true },
    { head: 'Requests', text: function (item) { return number(item.total); }, right: true },
    { head: 'Hits', text: function (item) { return percent(item.share.stored, item.share.all); }, right: true },
    { head: 'Errors', text: function (item) { return item.results.error ? number(item.results.error) : ''; }, right: true },
    { head: 'p50', text: function (item) { return item.total ? milliseconds(item.p50_ms) : ''; }, right: true },
    { head: 'p95', text: function (item) { return item.total ? milliseconds(item.p95_ms) : ''; }, right: true },
    { head: 'p99', text: function (item) { return item.total ? milliseconds(item.p99_ms) : ''; }, right: true },
    { head: 'Changes', text: function (item) { return item.lag; } },
    { head: 'Line', text: function (item) { return item.line; }, small: function (item) { return item.trouble; }, right: true },
  ],
  stores: [name, type, state, failures],
  sources: [name, type, state, { head: 'Calls', text: function (item) { return number(item.calls); }, right: true }, failures],
  servers: [name, state],
  logs: [name, { head: 'State', text: function (item) { return item.state === 'works' ? 'followed' : stateText(item); }, state: function (item) { return item.state; } },
    { head: 'Read', text: function (item) { return item.read_seconds_ago === undefined ? 'never' : item.read_seconds_ago + ' s ago'; } },
    { head: 'Leader', text: function (item) { return item.led ? 'here' : 'elsewhere'; } }],
  jobs: [
    { head: 'Job', text: function (item) { return '#' + item.id + ' ' + item.tileset; }, small: function (item) { return item.mode + ' ' + item.grid + ', zoom ' + item.minzoom + ' to ' + item.maxzoom; }, full: true },
    { head: 'Done', text: function (item) { return percent(item.done + item.skipped + item.failed, item.metatiles); }, bar: function (item) { return item.metatiles > 0 ? (item.done + item.skipped + item.failed) / item.metatiles : 0; } },
    { head: 'Tiles', text: function (item) { return number(item.tiles); }, right: true },
    { head: 'Failed', text: function (item) { return item.failed ? number(item.failed) : ''; }, right: true },
    { head: 'Workers', text: function (item) { return item.workers; }, right: true },
  ],
  processes: [
    { head: 'Process', text: function (item) { return item.id; }, small: function (item) { return item.draining ? 'ends' : item.reload_failed ? 'older configuration' : ''; } },
    { head: 'Heard of', text: function (item) { return duration(item.seen_seconds_ago) + ' ago'; } },
    { head: 'Running', text: function (item) { return duration(item.started_seconds_ago); } },
    { head: 'Memory', text: function (item) { return item.resident_bytes ? bytes(item.resident_bytes) : ''; }, right: true },
    { head: 'Large allocations', text: function (item) { return bytes(item.budget_used_bytes); }, right: true },
    { head: 'Cache', text: function (item) { return bytes(item.memory_cache_bytes) + ' of ' + bytes(item.memory_cache_limit_bytes); }, right: true },
    { head: 'Not yet stored', text: function (item) { return item.behind_waiting_bytes ? bytes(item.behind_waiting_bytes) : ''; }, right: true },
    { head: 'Busy threads', text: function (item) { return item.workers + item.io_workers - item.workers_idle - item.io_workers_idle + ' of ' + (item.workers + item.io_workers); }, right: true },
  ],
};

function makeCell(column) {
  const cell = element('td', { className: [column.full ? 'full' : '', column.right ? 'right' : '', column.brief ? 'brief' : ''].join(' ').trim(), data: { label: column.head } });
  if (column.bar) cell.append(element('span', { className: 'bar' }, element('i')));
  cell.append(column.button ? element('button', { type: 'button', text: column.button, on: { click: function () { column.act(cell.parentElement.item); } } }) : element('span'));
  if (column.small) cell.append(element('small'));
  if (column.code) cell.append(element('code'));
  return cell;
}

function setText(place, text) {
  const wanted = text === undefined || text === null ? '' : String(text);
  if (place.textContent !== wanted) place.textContent = wanted;
}

function fillCell(cell, column, item) {
  if (column.button) return;
  const span = cell.querySelector(':scope > span:not(.bar)');
  setText(span, column.text(item));
  if (column.state) span.className = 'state ' + column.state(item);
  if (column.small) setText(cell.querySelector('small'), column.small(item));
  if (column.code) setText(cell.querySelector('code'), column.code(item));
  if (column.bar) cell.querySelector('i').style.width = Math.min(100, 100 * column.bar(item)) + '%';
  cell.classList.toggle('empty', span.textContent === '' && !column.full);
}

/* Rows are kept, so that a selection and the focus stay where they are. */
function fillTable(id, items, none) {
  const table = byId(id), shape = columns[id], empty = table.parentElement.querySelector('.none');
  if (!table.tHead) {
    table.append(element('thead', {}, element('tr', {}, ...shape.map(function (column) {
      return element('th', { scope: 'col', className: column.right ? 'right' : '', text: column.head });
    }))), element('tbody'));
  }
  const body = table.tBodies[0];
  while (body.rows.length > items.length) body.lastElementChild.remove();
  while (body.rows.length < items.length) body.append(element('tr', {}, ...shape.map(makeCell)));
  for (const [index, item] of items.entries()) {
    const row = body.rows[index];
    row.item = item;
    for (const [at, column] of shape.entries()) fillCell(row.cells[at], column, item);
  }
  table.hidden = items.length === 0;
  empty.hidden = items.length > 0;
  if (none) empty.textContent = none;
}

function showFlame(item) {
  fetchJson(here + 'status.json?request=' + item.number).then(function (answer) {
    drawFlame(byId('flame'), answer.request);
    byId('flame').scrollIntoView({ block: 'nearest' });
  }).catch(tell);
}

/* --- figures --------------------------------------------------------------------------------------------------- */

function figure(key, text) { setText(document.querySelector('[data-figure="' + key + '"]'), text); }

/* The earliest look of the last minute; undefined: there is none yet. */
function earlier() { return looks.length > 1 ? looks[0] : undefined; }

function remember(now) {
  const last = looks[looks.length - 1];
  if (last && (last.started !== now.started || last.clock_ms > now.clock_ms || last.requests.total > now.requests.total)) {
    looks.length = 0; /* the server began anew */
    rates.length = 0;
  }
  if (last && looks.length > 0 && now.clock_ms > last.clock_ms) {
    rates.push((now.requests.total - last.requests.total) * 1000 / (now.clock_ms - last.clock_ms));
    if (rates.length > RATES) rates.shift();
  }
  looks.push({ started: now.started, clock_ms: now.clock_ms, requests: now.requests,
    tilesets: new Map(now.tilesets.items.map(function (item) { return [item.name, item.total]; })) });
  while (looks.length > 2 && looks[1].clock_ms <= now.clock_ms - WINDOW) looks.shift();
}

function showFigures(now) {
  const before = earlier(), requests = now.requests, lately = difference(requests, before && before.requests);
  const seconds = before ? (now.clock_ms - before.clock_ms) / 1000 : 0, all = hitShare(requests.results), share = hitShare(lately.results);
  figure('rate', before ? rateText(lately.total / seconds) : '-');
  figure('total', 'since start ' + number(requests.total));
  figure('hits', before && share.all > 0 ? percent(share.stored, share.all) : percent(all.stored, all.all));
  figure('hits-since', 'since start ' + percent(all.stored, all.all));
  for (const [key, part] of [['p50', 0.5], ['p95', 0.95], ['p99', 0.99]]) {
    const since = requests.total ? requests[key + '_ms'] : null, recent = before ? quantile(lately.buckets, requests.bounds_ms, part) : null;
    figure(key, milliseconds(recent === null ? since : recent));
    figure(key + '-since', 'since start ' + milliseconds(since));
  }
  figure('errors', before ? rateText(60 * lately.results.error / seconds) : '-');
  figure('errors-since', 'since start ' + number(requests.results.error));
  drawRates(byId('rates'), rates, Math.max(15, rates.length));
}

/* --- sections -------------------------------------------------------------------------------------------------- */

/* How long ago the logs of a tileset's tables were read: what has changed since is not known here. */
function lagText(item, logs) {
  if (!item.logs || item.logs.length === 0) return '';
  const ages = item.logs.map(function (log) {
    const found = logs.find(function (one) { return one.name === log; });
    return !found || found.state === 'fails' || found.read_seconds_ago === undefined ? Infinity : found.read_seconds_ago;
  });
  const age = Math.max(...ages);
  return age === Infinity ? 'not followed' : 'read ' + age + ' s ago';
}

function showTilesets(now) {
  const list = now.tilesets, before = earlier(), seconds = before ? (now.clock_ms - before.clock_ms) / 1000 : 0;
  for (const item of list.items) {
    const was = before && before.tilesets.get(item.name);
    item.rate = was === undefined ? null : (item.total - was) / seconds;
    item.share = hitShare(item.results);
    item.lag = lagText(item, now.change_logs);
  }
  fillTable('tilesets', list.items);
  const last = list.offset + list.items.length;
  byId('count').textContent = list.matching === 0 ? '' : (list.offset + 1) + ' to ' + last + ' of ' + number(list.matching);
  byId('before').disabled = list.offset === 0;
  byId('after').disabled = last >= list.matching;
  byId('search').hidden = list.total <= LISTED && !byId('find').value;
}

function showJobs(jobs) {
  const none = jobs === null ? 'No queue of jobs is configured.' : jobs.failure ? 'The queue does not answer: ' + jobs.failure : 'No job runs.';
  fillTable('jobs', jobs && jobs.items || [], none);
}

function showTroubles(now) {
  const texts = [], processes = now.processes, failure = now.configuration.failure;
  if (processes.reload_failed > 0)
    texts.push('The configuration file cannot be used as it is now: ' + (processes.total === 1 ? 'the server answers' : processes.reload_failed + ' of ' + processes.total + ' processes answer') + ' with the one before.' + (failure ? ' ' + (failure.where && !failure.reason.includes(failure.where) ? failure.where + ': ' : '') + failure.reason : ''));
  for (const [list, noun] of [[now.stores, 'store'], [now.sources, 'source'], [now.servers, 'server'], [now.change_logs, 'change log']]) {
    const failing = list.filter(function (item) { return item.state === 'fails'; }).map(function (item) { return item.name; });
    if (failing.length > 0) texts.push((failing.length === 1 ? 'A ' + noun + ' fails: ' : failing.length + ' ' + noun + 's fail: ') + failing.slice(0, 5).join(', ') + (failing.length > 5 ? ', ...' : ''));
  }
  byId('troubles').replaceChildren(...texts.map(function (text) { return element('li', { text: text }); }));
}

function show(now) {
  remember(now);
  showTroubles(now);
  showFigures(now);
  fillTable('errors', now.errors);
  fillTable('slow', now.slow);
  showTilesets(now);
  fillTable('stores', now.stores);
  fillTable('sources', now.sources);
  fillTable('servers', now.servers);
  fillTable('logs', now.change_logs);
  showJobs(now.jobs);
  const shared = now.shared_memory;
  setText(byId('memory'), shared ? 'Tiles that all processes share: ' + bytes(shared.bytes) + ' of ' + bytes(shared.most_bytes) + ', ' + number(shared.entries) + ' tiles, ' + number(shared.evictions) + ' have given way.' : '');
  fillTable('processes', now.processes.items, 'No process has reported yet.');
  setText(byId('about'), 'mapcache ' + now.version + ', up ' + duration((now.time - now.started) / 1000) + '; ' + now.configuration.file + ' of ' + now.configuration.modified + ', ' + number(now.configuration.layers) + ' layers.' +
    (now.change_marks ? ' ' + number(now.change_marks) + ' marks of tiles that have changed.' : '') + (now.not_reported ? ' ' + number(now.not_reported) + ' stores, sources or servers are not listed.' : ''));
  setText(byId('live'), 'live, ' + clock(now.time));
  byId('live').classList.remove('bad');
}

function tell(error) { byId('notice').textContent = error ? error.message : ''; }

/* --- asking ---------------------------------------------------------------------------------------------------- */

/* One look after the other, however slow they are; none while nobody sees the page; ever fewer while the server does not
   answer. */
async function look() {
  clearTimeout(timer);
  if (document.hidden) return;
  if (asking) { again = true; return; }
  asking = true;
  try {
    const query = new URLSearchParams({ offset: offset, limit: LISTED, find: byId('find').value });
    show(await fetchJson(here + 'status.json?' + query));
    tell();
    wait = INTERVAL;
  } catch (error) {
    wait = Math.min(LONGEST, 2 * wait);
    tell(error);
    byId('live').textContent = 'asked again in ' + duration(wait / 1000);
    byId('live').classList.add('bad');
  }
  asking = false;
  timer = setTimeout(look, again ? 0 : wait);
  again = false;
}

function start() {
  const { demo, jobs } = document.body.dataset;
  if (demo) byId('links').append(element('a', { href: demo, text: 'All layers' }));
  if (jobs) byId('links').append(element('a', { href: jobs, text: 'Jobs' }));
  byId('search').addEventListener('submit', function (event) { event.preventDefault(); });
  byId('find').addEventListener('input', function () { offset = 0; look(); });
  byId('before').addEventListener('click', function () { offset = Math.max(0, offset - LISTED); look(); });
  byId('after').addEventListener('click', function () { offset += LISTED; look(); });
  document.addEventListener('visibilitychange', function () { wait = INTERVAL; look(); });
  look();
}

start();
