/* Fetches tiles, and remembers of each how long it took, how large it was, and what was wrong with it. */
const MOST = 2000;
const records = new Map(); /* by address, oldest first */
const listeners = [];

/* Calls act(record) when a tile has come or failed. */
export function onTile(act) { listeners.push(act); }

export function recordOf(url) { return records.get(url); }

export function forgetTiles() { records.clear(); }

function remember(record) {
  records.delete(record.url);
  records.set(record.url, record);
  if (records.size > MOST) records.delete(records.keys().next().value);
}

function tell(record) { for (const act of listeners) act(record); }

/* What a document of an error says: the text between its tags. */
export function plainText(text) {
  const parsed = /^\s*</.test(text) ? text.replace(/<(script|style)[^>]*>[^]*?<\/\1>/gi, ' ').replace(/<[^>]*>/g, ' ') : text;
  const known = { lt: '<', gt: '>', amp: '&', quot: '"', apos: '\'' };
  return parsed.replace(/&(lt|gt|amp|quot|apos);/g, function (all, name) { return known[name]; }).replace(/\s+/g, ' ').trim().slice(0, 600);
}

/* Server-Timing: the whole time that the server worked, in milliseconds. */
function serverTime(entry) {
  return entry.serverTiming.length === 0 ? null : Math.max(...entry.serverTiming.map(function (part) { return part.duration; }));
}

if (typeof PerformanceObserver !== 'undefined')
  new PerformanceObserver(function (list) {
    for (const entry of list.getEntries()) {
      const record = records.get(entry.name);
      if (record === undefined) continue;
      record.server = serverTime(entry);
      record.wire = entry.transferSize;
      record.kept = entry.transferSize === 0 && entry.decodedBodySize > 0;
      if (record.done) tell(record);
    }
  }).observe({ type: 'resource', buffered: true });

/* The bytes of a tile as a blob; NULL for an empty one. `what`: layer, z, x and row, for whoever looks at it. */
export async function fetchTile(url, what, signal) {
  const record = { url: url, ...what, status: 0, bytes: 0, ms: 0, server: null, wire: null, kept: false, done: false, error: null };
  const start = performance.now();
  remember(record);
  try {
    const answer = await fetch(url, { signal: signal });
    const blob = await answer.blob();
    record.status = answer.status;
    record.bytes = blob.size;
    record.ms = performance.now() - start;
    record.done = true;
    if (!answer.ok) throw new Error('The server answers ' + answer.status + ': ' + plainText(await blob.slice(0, 4000).text()));
    const hidden = answer.headers.get('X-Mapcache-Error');
    if (hidden) record.error = hidden;
    tell(record);
    return answer.status === 204 || blob.size === 0 ? null : blob;
  } catch (error) {
    record.ms = performance.now() - start;
    record.done = true;
    if (error.name === 'AbortError') records.delete(url);
    else {
      record.error = record.status === 0 ? 'No answer of the server (' + error.message + ').' : error.message;
      tell(record);
    }
    throw error;
  }
}
