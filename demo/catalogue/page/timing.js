/* What requests take: said by the server in its Server-Timing header, and as seen from here. */
const byId = function (id) { return document.getElementById(id); };
let group = { entries: [], pending: 0, number: 0 };

/* Milliseconds of the whole request in the server, or null where it does not say. The other entries are parts of it; those
   of several threads are added up there. */
function serverTime(header) {
  const found = /\bhandler;dur=([\d.]+)/.exec(header || '');
  return found === null ? null : Number(found[1]);
}

/* Fetches past the browser's cache; { blob, status, server, client, bytes }, times in milliseconds. */
export async function timed(url) {
  const began = performance.now();
  const response = await fetch(url, { cache: 'no-store' });
  const blob = await response.blob();
  let client = performance.now() - began;
  const entry = performance.getEntriesByName(new URL(url, location.href).href).pop();
  if (entry !== undefined && entry.requestStart > 0) client = entry.responseEnd - entry.requestStart; // without the browser's queue
  performance.clearResourceTimings();
  return { url, blob, status: response.status, server: serverTime(response.headers.get('Server-Timing')), client, bytes: blob.size };
}

export function milliseconds(number) {
  return number === null ? '–' : number < 9.95 ? number.toFixed(1) : String(Math.round(number));
}

export function bar(time, longest, label) {
  const row = document.createElement('div');
  const track = document.createElement('div');
  const text = document.createElement('span');
  row.className = 'bar';
  track.className = 'track';
  for (const [kind, number] of [['light', time.client], ['dark', time.server]]) {
    if (number === null) continue;
    const part = document.createElement('i');
    part.className = kind;
    part.style.width = Math.min(100, 100 * number / longest) + '%';
    track.append(part);
  }
  text.textContent = time.status >= 400 ? String(time.status) : milliseconds(time.server) + ' / ' + milliseconds(time.client) + ' ms';
  if (time.status >= 400) row.classList.add('failed');
  if (label !== undefined) {
    const name = document.createElement('span');
    name.textContent = label;
    row.classList.add('named');
    row.append(name);
  }
  row.append(track, text);
  row.title = time.url || '';
  return row;
}

function sum(entries, key) {
  return entries.reduce(function (total, entry) { return entry[key] === null ? total : total + entry[key]; }, 0);
}

function unit(number, text) {
  const small = document.createElement('small');
  small.textContent = ' ' + text;
  return [number, small];
}

function show() {
  const entries = group.entries;
  const known = entries.some(function (entry) { return entry.server !== null; });
  byId('server').replaceChildren(...(known ? unit(milliseconds(sum(entries, 'server')), 'ms') : ['–']));
  byId('browser').replaceChildren(...(entries.length ? unit(milliseconds(group.last - group.began), 'ms') : ['–']));
  byId('answers').replaceChildren(...(entries.length ? unit(String(entries.length), Math.round(sum(entries, 'bytes') / 1024) + ' KB') : ['–']));
  const longest = Math.max(1, ...entries.map(function (entry) { return entry.client; }));
  const order = [...entries].sort(function (a, b) { return b.client - a.client; });
  byId('requests').replaceChildren(...order.slice(0, 60).map(function (entry) { return bar(entry, longest); }));
}

/* Forgets the requests of the view before; what is still on its way does not count any more. */
export function startView() {
  group = { entries: [], pending: 0, number: group.number + 1 };
  show();
}

/* As timed, and shown among the requests of this view. A view begins with the first request after a rest. */
export async function counted(url) {
  if (group.pending === 0 && group.entries.length > 0 && performance.now() - group.last > 400) startView();
  const mine = group;
  if (mine.began === undefined) mine.began = performance.now();
  mine.pending++;
  try {
    const time = await timed(url);
    mine.entries.push(time);
    return time;
  } finally {
    mine.pending--;
    mine.last = performance.now();
    if (mine === group) requestAnimationFrame(show);
  }
}
