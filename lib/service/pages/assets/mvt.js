/* Reads vector tiles (Mapbox Vector Tile 2.1): layers with features; of geometries, parts as flat lists of coordinates. */

class Reader {
  constructor(bytes, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  varint() {
    let value = 0, factor = 1;
    for (let i = 0; i < 10; i++) {
      if (this.at >= this.end) throw new Error('a vector tile ends within a number');
      const byte = this.bytes[this.at++];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
      factor *= 128;
    }
    throw new Error('a number of a vector tile has no end');
  }

  /* Calls fields[number](this) for each field; those without a function are skipped. */
  message(end, fields) {
    while (this.at < end) {
      const tag = this.varint(), field = fields[Math.floor(tag / 8)];
      if (field !== undefined) field(this);
      else this.skip(tag % 8);
    }
  }

  skip(type) {
    if (type === 0) this.varint();
    else if (type === 1) this.at += 8;
    else if (type === 2) this.at = this.part();
    else if (type === 5) this.at += 4;
    else throw new Error('a vector tile has a field of an unknown type');
  }

  /* The end of what follows, whose length comes first. */
  part() {
    const end = this.varint() + this.at;
    if (end > this.end) throw new Error('a vector tile is cut off');
    return end;
  }

  text() {
    const end = this.part(), text = new TextDecoder().decode(this.bytes.subarray(this.at, end));
    this.at = end;
    return text;
  }

  packed() {
    const end = this.part(), numbers = [];
    while (this.at < end) numbers.push(this.varint());
    return numbers;
  }
}

function signed(number) { return number % 2 === 1 ? -(number + 1) / 2 : number / 2; }

function partsOf(commands) {
  const parts = [];
  let x = 0, y = 0, part = null;
  for (let i = 0; i < commands.length;) {
    const command = commands[i] % 8, count = Math.floor(commands[i] / 8);
    i += 1;
    if (command === 7 && part !== null) part.push(part[0], part[1]);
    if (command !== 1 && command !== 2) continue;
    for (let j = 0; j < count && i + 1 < commands.length; j++, i += 2) {
      x += signed(commands[i]);
      y += signed(commands[i + 1]);
      if (command === 1 || part === null) parts.push(part = []);
      part.push(x, y);
    }
  }
  return parts;
}

function readFeature(reader) {
  const end = reader.part(), feature = { type: 0, parts: [] };
  reader.message(end, {
    3: function (r) { feature.type = r.varint(); },
    4: function (r) { feature.parts = partsOf(r.packed()); }
  });
  return feature;
}

function readLayer(reader) {
  const end = reader.part(), layer = { name: '', extent: 4096, features: [] };
  reader.message(end, {
    1: function (r) { layer.name = r.text(); },
    2: function (r) { layer.features.push(readFeature(r)); },
    5: function (r) { layer.extent = r.varint() || 4096; }
  });
  return layer;
}

/* The layers of a tile. */
export function readTile(bytes) {
  const layers = [], reader = new Reader(bytes);
  reader.message(bytes.length, { 3: function (r) { layers.push(readLayer(r)); } });
  return layers;
}
