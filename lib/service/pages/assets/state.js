/* What the map shows, and the same as the part of the address behind "#": a link that shows it again.
   #layer=NAME;0.8;off;time=2020&layer=...&grid=GRID&at=x,y,resolution&by=wmts&engine=ol&borders&swipe=0.5 */

function pack(text) { return encodeURIComponent(text).replace(/%(40|3A|2C|2F)/gi, function (code) { return decodeURIComponent(code); }); }

function unpack(text) {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    return text; /* somebody's text, not ours */
  }
}

export function emptyState() {
  return { layers: [], grid: '', at: null, by: '', engine: '', borders: false, swipe: null };
}

function packLayer(entry) {
  const parts = [pack(entry.name)];
  if (entry.opacity < 1) parts.push(String(entry.opacity));
  if (!entry.visible) parts.push('off');
  for (const [name, value] of Object.entries(entry.values)) parts.push(pack(name) + '=' + pack(value));
  return 'layer=' + parts.join(';');
}

export function packState(state) {
  const parts = state.layers.map(packLayer);
  if (state.grid) parts.push('grid=' + pack(state.grid));
  if (state.at) {
    const [x, y, resolution] = state.at, decimals = Math.min(12, Math.max(0, Math.ceil(-Math.log10(resolution)) + 1));
    parts.push('at=' + [x, y].map(function (number) { return Number(number.toFixed(decimals)); }).join(',') + ',' + Number(resolution.toPrecision(7)));
  }
  if (state.by) parts.push('by=' + pack(state.by));
  if (state.engine) parts.push('engine=' + state.engine);
  if (state.borders) parts.push('borders');
  if (state.swipe !== null) parts.push('swipe=' + Number(state.swipe.toFixed(3)));
  return '#' + parts.join('&');
}

function unpackLayer(text) {
  const [name, ...rest] = text.split(';');
  const entry = { name: unpack(name), opacity: 1, visible: true, values: {} };
  for (const part of rest) {
    const sign = part.indexOf('=');
    if (sign > 0) entry.values[unpack(part.slice(0, sign))] = unpack(part.slice(sign + 1));
    else if (part === 'off') entry.visible = false;
    else if (Number(part) >= 0 && Number(part) <= 1) entry.opacity = Number(part);
  }
  return entry;
}

export function unpackState(hash) {
  const state = emptyState();
  for (const part of hash.replace(/^#/, '').split('&')) {
    const sign = part.indexOf('='), name = sign < 0 ? part : part.slice(0, sign), text = sign < 0 ? '' : part.slice(sign + 1);
    if (name === 'layer' && text && state.layers.length < 20) state.layers.push(unpackLayer(text));
    else if (name === 'grid') state.grid = unpack(text);
    else if (name === 'by') state.by = unpack(text);
    else if (name === 'engine' && (text === 'gl' || text === 'ol')) state.engine = text;
    else if (name === 'borders') state.borders = true;
    else if (name === 'swipe') state.swipe = Math.min(1, Math.max(0, Number(text) || 0));
    else if (name === 'at') {
      const numbers = text.split(',').map(Number);
      if (numbers.length === 3 && numbers.every(Number.isFinite) && numbers[2] > 0) state.at = numbers;
    }
  }
  return state;
}
