/* What is wrong, in words, where the map is. Same words are told once, with how often and where. */
import { byId, element } from './dom.js';

const WHERE = 40; /* places that are kept of one problem */
const problems = new Map();
let open = null, drawn = 0;

function itemOf(text, problem) {
  if (problem.count === 1 && problem.places.length === 0) return element('p', { text: text });
  const places = problem.places.join(', ') + (problem.count > problem.places.length ? ', ...' : '');
  return element('p', {}, text, ' ', element('small', { text: (problem.count > 1 ? problem.count + ' times: ' : '') + places }));
}

function draw() {
  const panel = byId('problems');
  drawn = 0;
  panel.hidden = problems.size === 0;
  if (problems.size === 0) return;
  const items = [...problems].map(function ([text, problem]) { return itemOf(text, problem); });
  const close = element('button', { className: 'close', type: 'button', text: '×', ariaLabel: 'Close', on: { click: clearProblems } });
  const first = [...problems.keys()][0];
  if (items.length === 1) {
    panel.replaceChildren(close, ...items);
    return;
  }
  const summary = element('summary', { text: items.length + ' problems: ' + first.slice(0, 120) });
  const details = element('details', { open: open === null ? items.length < 3 : open }, summary, ...items);
  summary.addEventListener('click', function () { open = !details.open; });
  panel.replaceChildren(close, details);
}

/* `place`: the layer and tile, if it is one. */
export function reportProblem(text, place = '') {
  const problem = problems.get(text) || { count: 0, places: [] };
  problem.count += 1;
  if (place && problem.places.length < WHERE && !problem.places.includes(place)) problem.places.push(place);
  problems.set(text, problem);
  if (drawn === 0) drawn = requestAnimationFrame(draw);
}

export function clearProblems() {
  problems.clear();
  open = null;
  draw();
}
