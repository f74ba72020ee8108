/* What is wrong, in words, where the map is. Same words are told once, with how often and where. */
import { byId, element } from './dom.js';

const WHERE = 40; /* tiles of a layer that are named */
const problems = new Map();
let open = null, drawn = 0;

function itemOf(text, problem) {
  if (problem.places.size === 0) return element('p', { text: text });
  const where = element('ul');
  for (const [layer, tiles] of problem.places) where.append(element('li', { text: layer + (tiles.length > 0 ? ': ' + tiles.join(', ') : '') }));
  const first = [...problem.places.keys()].join(', ');
  return element('div', {}, element('p', { text: text }), element('details', { className: 'where' },
    element('summary', { text: first + (problem.count > 1 ? ', ' + problem.count + ' times' : '') }), where));
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
  const details = element('details', { className: 'all', open: open === null ? items.length < 3 : open }, summary, ...items);
  summary.addEventListener('click', function () { open = !details.open; });
  panel.replaceChildren(close, details);
}

/* Where it is: the title of a layer, and its tile. */
export function reportProblem(text, layer = '', tile = '') {
  const problem = problems.get(text) || { count: 0, places: new Map() };
  problem.count += 1;
  if (layer && !problem.places.has(layer)) problem.places.set(layer, []);
  const tiles = problem.places.get(layer);
  if (tile && tiles.length < WHERE && !tiles.includes(tile)) tiles.push(tile);
  problems.set(text, problem);
  if (drawn === 0) drawn = requestAnimationFrame(draw);
}

export function clearProblems() {
  problems.clear();
  open = null;
  draw();
}
