/* The borders of tiles over the map, with what is known of each: z/x/y, time, bytes. */
import { byId } from './dom.js';
import { recordOf } from './tile_log.js';

export function bytesText(bytes) {
  return bytes < 1000 ? bytes + ' B' : bytes < 1e6 ? (bytes / 1000).toFixed(1) + ' kB' : (bytes / 1e6).toFixed(2) + ' MB';
}

export function timeText(ms) { return ms < 10 ? ms.toFixed(1) + ' ms' : Math.round(ms) + ' ms'; }

function linesOf(tile) {
  const record = recordOf(tile.url), lines = [tile.z + '/' + tile.x + '/' + tile.row];
  if (record === undefined || !record.done) return lines;
  if (record.error !== null) return lines.concat(record.status ? String(record.status) : 'no answer');
  lines.push(timeText(record.ms) + (record.kept ? ', kept' : ''), bytesText(record.bytes));
  if (record.server !== null && !record.kept) lines.push('server ' + timeText(record.server));
  return lines;
}

export function clearFrames() {
  const canvas = byId('frames');
  canvas.getContext('2d').clearRect(0, 0, canvas.width, canvas.height);
}

export function drawFrames(tiles) {
  const canvas = byId('frames'), ratio = window.devicePixelRatio, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'top';
  for (const tile of tiles) {
    if (tile.corners.some(function (corner) { return !corner; })) continue;
    const failed = (recordOf(tile.url) || {}).error;
    context.beginPath();
    for (const [x, y] of tile.corners) context.lineTo(x, y);
    context.closePath();
    for (const [style, size] of [['rgba(255, 255, 255, .75)', 3], [failed ? '#c0261e' : '#14335c', 1]]) {
      context.strokeStyle = style;
      context.lineWidth = size;
      context.stroke();
    }
    const top = Math.max(0, tile.corners[0][1]), left = Math.max(top < 80 ? 44 : 0, tile.corners[0][0]), room = Math.min(width, tile.corners[1][0]) - left;
    if (room < 50 || top > tile.corners[2][1] - 20) continue;
    const lines = linesOf(tile), box = Math.max(...lines.map(function (line) { return context.measureText(line).width; })) + 8;
    context.fillStyle = 'rgba(255, 255, 255, .82)';
    context.fillRect(left + 2, top + 2, Math.min(box, room - 4), lines.length * 14 + 4);
    context.fillStyle = failed ? '#c0261e' : '#14335c';
    lines.forEach(function (line, index) { context.fillText(line, left + 6, top + 5 + index * 14, room - 12); });
  }
}
