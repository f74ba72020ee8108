/* Small pictures of layers, of a few tiles each: made when a card comes into sight, a few at a time. */
import { isVector, layerKey, tileTemplate, tileUrl } from './addresses.js';
import { base, element } from './dom.js';
import { readTile } from './mvt.js';

const AT_ONCE = 4, WIDTH = 480, HEIGHT = 300;
const waiting = [];
let running = 0;

async function run() {
  if (running >= AT_ONCE || waiting.length === 0) return;
  running += 1;
  const task = waiting.shift();
  await task();
  running -= 1;
  run();
}

const sight = new IntersectionObserver(function (entries) {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    sight.unobserve(entry.target);
    waiting.push(entry.target.draw);
    run();
  }
}, { rootMargin: '200px' });

async function answerOf(url) {
  const answer = await fetch(url);
  if (answer.ok) return answer;
  const text = (await answer.text()).replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ').trim();
  throw new Error(answer.status + ': ' + text.slice(0, 160));
}

function ringPath(rings) {
  const path = new Path2D();
  for (const ring of rings)
    for (let i = 0; i < ring.length; i += 2) i === 0 ? path.moveTo(ring[0], ring[1]) : path.lineTo(ring[i], ring[i + 1]);
  return path;
}

/* One vector tile at a place of the canvas. */
function drawVector(context, bytes, colours, left, top, size, scale) {
  readTile(new Uint8Array(bytes)).forEach(function (layer, index) {
    const colour = colours[index % colours.length], unit = size / layer.extent;
    context.save();
    context.beginPath();
    context.rect(left, top, size, size);
    context.clip();
    context.translate(left, top);
    context.scale(unit, unit);
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = 1.2 / unit / scale;
    for (const feature of layer.features) {
      const path = ringPath(feature.parts);
      if (feature.type === 3) {
        context.globalAlpha = 0.35;
        context.fill(path, 'evenodd');
        context.globalAlpha = 0.9;
      }
      if (feature.type > 1) context.stroke(path);
      else for (const [x, y] of feature.parts) {
        context.beginPath();
        context.arc(x, y, 2.5 / unit / scale, 0, 7);
        context.fill();
      }
    }
    context.restore();
  });
}

/* How the tiles fill a canvas: the part with data, in its middle, as large as it fits; around it what the tiles have. */
function fitPicture(picture) {
  const [left, top, right, bottom] = picture.crop;
  const scale = Math.min(WIDTH / (right - left), HEIGHT / (bottom - top));
  return { scale: scale, left: WIDTH / 2 - (left + right) / 2 * scale, top: HEIGHT / 2 - (top + bottom) / 2 * scale };
}

async function drawTiles(context, offer, layer) {
  const picture = layer.picture, place = fitPicture(picture);
  const template = tileTemplate(offer, layer, layer.grids[0].grid, {});
  for (let row = 0; row < picture.rows; row++)
    for (let column = 0; column < picture.columns; column++) {
      const answer = await answerOf(tileUrl(template, picture.z, picture.column + column, picture.row + row, picture.levelRows));
      const left = place.left + (picture.westward ? picture.columns - 1 - column : column) * picture.width * place.scale;
      const top = place.top + row * picture.height * place.scale;
      if (isVector(layer)) {
        if (answer.status === 200) drawVector(context, await answer.arrayBuffer(), layer.colours, left, top, picture.width * place.scale, place.scale > 1 ? 1 : place.scale);
      } else {
        const image = await createImageBitmap(await answer.blob());
        context.drawImage(image, left, top, picture.width * place.scale, picture.height * place.scale);
        image.close();
      }
    }
}

/* A map of WMS, where no service has tiles. */
async function drawMap(context, offer, layer) {
  const grid = layer.grids[0], [west, south, east, north] = layer.box;
  const url = base + '?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&FORMAT=' + encodeURIComponent(offer.format) + '&SRS=' + grid.srs +
    '&LAYERS=' + encodeURIComponent(layer.name) + '&BBOX=' + [west, south, east, north].join(',') + '&WIDTH=' + WIDTH + '&HEIGHT=' + HEIGHT;
  const image = await createImageBitmap(await (await answerOf(url)).blob());
  context.drawImage(image, 0, 0);
  image.close();
}

async function draw(frame, offer, layer) {
  const canvas = element('canvas', { width: WIDTH, height: HEIGHT });
  const note = element('span');
  frame.append(note);
  try {
    if (layer.picture && (layer.image || isVector(layer)) && tileTemplate(offer, layer, layer.grids[0].grid, {}) !== null)
      await drawTiles(canvas.getContext('2d'), offer, layer);
    else if (layer.image && offer.assembles && /4326|CRS84/.test(layer.grids[0].srs))
      await drawMap(canvas.getContext('2d'), offer, layer);
    else {
      note.textContent = layerKey(layer, '').replace(/@$/, '') + ' has no picture';
      return;
    }
    note.remove();
    frame.append(canvas);
    frame.dataset.drawn = 'yes';
  } catch (error) {
    note.className = 'bad';
    note.textContent = error.message;
    frame.dataset.drawn = 'no';
  }
}

/* Draws the picture of a layer into a frame once it is seen. */
export function showPicture(frame, offer, layer) {
  frame.draw = function () { return draw(frame, offer, layer); };
  sight.observe(frame);
}
