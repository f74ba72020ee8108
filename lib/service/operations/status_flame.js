/* The flame chart of one request: each span a button in the row below the span around it. */
import { element } from './dom.js';

const ROW = 22;

function time(us) {
  return us >= 1e6 ? (us / 1e6).toFixed(3) + ' s' : us >= 1000 ? (us / 1000).toFixed(us >= 100000 ? 0 : 2) + ' ms' : us + ' µs';
}

function hue(name) {
  let hash = 7;
  for (const c of name) hash = (hash * 31 + c.codePointAt(0)) >>> 0;
  return (hash * 137) % 360;
}

function shortName(span) { return span.name.replace(/^mapcache_/, '') + (span.about ? ' ' + span.about : ''); }

/* A row for each span, below that of its parent; what runs at the same time on other threads lies in rows of its own. */
function placeSpans(spans) {
  const rows = new Map(), ends = [];
  const ordered = spans.slice().sort(function (a, b) { return a.begin_us - b.begin_us || a.number - b.number; });
  for (const span of ordered) {
    let row = rows.has(span.parent) ? rows.get(span.parent) + 1 : 0;
    while ((ends[row] === undefined ? -Infinity : ends[row]) > span.begin_us) row++;
    rows.set(span.number, row);
    ends[row] = span.begin_us + span.us;
  }
  return { spans: ordered, rows: rows, count: ends.length };
}

export function drawFlame(figure, request) {
  const placed = placeSpans(request.spans), whole = Math.max(1, ...request.spans.map(function (span) { return span.begin_us + span.us; }));
  const chart = element('div', { className: 'rows' }), scale = element('div', { className: 'scale' }), told = element('p', { className: 'told' });
  const reset = element('button', { type: 'button', text: 'Whole request' }), close = element('button', { type: 'button', text: 'Close' });
  let view = [0, whole], chosen = null;
  chart.style.height = placed.count * ROW + 'px';

  function tell(span) {
    told.textContent = span ? shortName(span) + ': ' + time(span.us) + ', begins after ' + time(span.begin_us) + (span.note ? ', ' + span.note : '') :
      (request.spans_beyond ? request.spans_beyond + ' short spans are left out. ' : '') + 'Choose a span to see it alone.';
  }

  function draw() {
    const size = view[1] - view[0];
    chart.replaceChildren(...placed.spans.filter(function (span) {
      return span.begin_us < view[1] && span.begin_us + span.us >= view[0];
    }).map(function (span) {
      const from = Math.max(span.begin_us, view[0]), to = Math.min(span.begin_us + span.us, view[1]);
      const made = element('button', { type: 'button', text: shortName(span), title: shortName(span) + '\n' + time(span.us),
        className: (span.note === 'ERROR' ? 'error ' : '') + ((to - from) / size < 0.03 ? 'narrow' : ''), ariaPressed: String(span === chosen), data: { span: span.number } });
      made.style.setProperty('--hue', hue(span.name));
      made.style.left = 100 * (from - view[0]) / size + '%';
      made.style.width = 'max(2px, ' + (100 * (to - from) / size).toFixed(4) + '%)';
      made.style.top = placed.rows.get(span.number) * ROW + 'px';
      made.addEventListener('click', function () { choose(span); });
      return made;
    }));
    scale.replaceChildren(...[0, 0.25, 0.5, 0.75, 1].map(function (share) { return element('span', { text: time(Math.round(view[0] + share * size)) }); }));
    reset.disabled = view[0] === 0 && view[1] === whole;
  }

  function choose(span) {
    chosen = span;
    view = span && span.us > 0 ? [span.begin_us, span.begin_us + span.us] : [0, whole];
    tell(span);
    draw();
    const again = span && chart.querySelector('[data-span="' + span.number + '"]');
    if (again) again.focus({ preventScroll: true });
  }

  reset.addEventListener('click', function () { choose(null); });
  close.addEventListener('click', function () { figure.hidden = true; figure.replaceChildren(); });
  figure.replaceChildren(element('figcaption', {}, element('b', { text: time(Math.round(request.ms * 1000)) }),
    element('span', { text: (request.status || '') + ' ' + (request.url || '') }), reset, close), chart, scale, told);
  figure.hidden = false;
  figure.dataset.request = request.number;
  choose(null);
}
