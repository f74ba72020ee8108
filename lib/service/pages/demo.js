/* One page for each protocol: a list of layers and grids, and a map that asks for them as that protocol does. */
(function () {
  'use strict';
  const config = JSON.parse(document.getElementById('config').textContent);
  const list = document.getElementById('layers');
  const fields = document.getElementById('fields');
  const info = document.getElementById('info');
  const place = document.getElementById('place');
  const notice = document.getElementById('notice');
  if (typeof ol === 'undefined') {
    notice.textContent = 'OpenLayers (ol.js, ol.css) is not installed with this server, so there is no map.';
    return;
  }

  const projections = {};
  function projection(layer) {
    const known = layer.srs === 'EPSG:3857' || layer.srs === 'EPSG:4326' || layer.srs === 'EPSG:900913';
    if (known) return ol.proj.get(layer.srs);
    if (!projections[layer.grid])
      projections[layer.grid] = new ol.proj.Projection({
        code: layer.srs, units: layer.units, extent: layer.gridExtent, axisOrientation: layer.swapped ? 'neu' : 'enu'
      });
    return projections[layer.grid];
  }

  function options(layer) {
    return {
      extent: layer.gridExtent, minZoom: layer.minzoom, origins: layer.origins, resolutions: layer.resolutions,
      tileSizes: layer.resolutions.map(function () { return layer.tileSize; }),
      sizes: layer.sizes, matrixIds: layer.resolutions.map(function (r, z) { return String(z); })
    };
  }

  /* Tiles of so many times as many pixels a side, on screens that have them. */
  function density(layer) {
    const most = Math.ceil(window.devicePixelRatio - 0.25);
    return Math.max(1, ...layer.densities.filter(function (offered) { return offered <= most; }));
  }

  function suffix(layer) {
    return density(layer) > 1 ? '@' + density(layer) + 'x' : '';
  }

  const key = encodeURIComponent;
  /* name[dimension=value]@grid, as the path services take it */
  function layerKey(layer, values) {
    let text = layer.name;
    for (const name in values) text += '[' + name + '=' + values[name] + ']';
    return key(text + '@' + layer.grid);
  }

  function quadkey(z, x, row) {
    let text = '';
    for (let bit = z - 1; bit >= 0; bit--) text += ((x >> bit) & 1) + 2 * ((row >> bit) & 1);
    return text;
  }

  /* Tile addresses; rows count from the top here. */
  const addresses = {
    tms: function (layer, z, x, row, values) {
      return config.base + 'tms/1.0.0/' + layerKey(layer, values) + '/' + z + '/' + x + '/' +
        (layer.sizes[z][1] - 1 - row) + suffix(layer) + '.' + layer.extension;
    },
    gmaps: function (layer, z, x, row, values) {
      return config.base + 'gmaps/' + layerKey(layer, values) + '/' + z + '/' + x + '/' + row + suffix(layer) +
        '.' + layer.extension;
    },
    ve: function (layer, z, x, row) {
      return z === 0 ? undefined
        : config.base + 've?layer=' + key(layer.name + '@' + layer.grid) + '&tile=' + quadkey(z, x, row);
    },
    mapguide: function (layer, z, x, row) {
      const r = Math.floor(row / 30) * 30, c = Math.floor(x / 30) * 30;
      return config.base + 'mg/S' + (layer.maxzoom - z) + '/' + key(layer.name + '@' + layer.grid) + '/R' + r + '/C' +
        c + '/' + (row - r) + '_' + (x - c) + '.' + layer.extension;
    }
  };
  addresses.kml = addresses.tms;
  const hasDensities = { tms: true, gmaps: true, kml: true };

  function pathSource(layer, values) {
    return new ol.source.TileImage({
      projection: projection(layer), tileGrid: new ol.tilegrid.TileGrid(options(layer)), wrapX: false,
      tilePixelRatio: hasDensities[config.service] ? density(layer) : 1,
      tileUrlFunction: function (tile) {
        const z = tile[0], x = tile[1], row = tile[2];
        if (x < 0 || row < 0 || x >= layer.sizes[z][0] || row >= layer.sizes[z][1]) return undefined;
        return addresses[config.service](layer, z, x, row, values);
      }
    });
  }

  function wmtsSource(layer, values) {
    return new ol.source.WMTS({
      url: config.base + 'wmts?', layer: layer.name, matrixSet: layer.grid + suffix(layer), format: layer.mime, style: 'default',
      tilePixelRatio: density(layer),
      projection: projection(layer), tileGrid: new ol.tilegrid.WMTS(options(layer)), dimensions: values, wrapX: false
    });
  }

  function wmsParams(layer, values) {
    const params = { LAYERS: layer.name, VERSION: '1.1.1', FORMAT: config.format, STYLES: '', TRANSPARENT: 'TRUE' };
    for (const name in values)
      params[/^(time|elevation)$/i.test(name) ? name.toUpperCase() : 'DIM_' + name.toUpperCase()] = values[name];
    return params;
  }

  function mapLayer(layer, values, whole) {
    const type = layer.densities.length > 0 ? 'mapserver' : undefined; /* who sends MAP_RESOLUTION */
    if (config.service === 'wms' && whole)
      return new ol.layer.Image({ source: new ol.source.ImageWMS({
        url: config.wms, params: wmsParams(layer, values), projection: projection(layer), ratio: 1,
        serverType: type }) });
    if (config.service === 'wms')
      return new ol.layer.Tile({ source: new ol.source.TileWMS({
        url: config.wms, params: wmsParams(layer, values), projection: projection(layer), wrapX: false, serverType: type,
        tileGrid: new ol.tilegrid.TileGrid(options(layer)) }) });
    return new ol.layer.Tile({
      source: config.service === 'wmts' ? wmtsSource(layer, values) : pathSource(layer, values) });
  }

  const map = new ol.Map({ target: 'map', layers: [] });
  let shown = null;

  function values() {
    const result = {};
    fields.querySelectorAll('[data-dimension]').forEach(function (field) {
      result[field.dataset.dimension] = field.value;
    });
    return result;
  }

  function draw() {
    const whole = document.getElementById('whole');
    const below = config.layers[document.getElementById('below').value];
    const layers = [mapLayer(shown, values(), whole !== null && whole.checked)];
    if (below !== undefined) layers.unshift(mapLayer(below, {}, false));
    map.setLayers(layers);
  }

  function addField(label, element) {
    const holder = document.createElement('label');
    holder.append(label, element);
    element.addEventListener('change', draw);
    fields.append(holder);
  }

  /* What is drawn below: at first a layer without transparency, if this one may have some. */
  function belowField(layer) {
    const field = document.createElement('select');
    field.id = 'below';
    field.append(new Option('nothing', ''));
    config.layers.forEach(function (other, index) {
      if (other.grid === layer.grid && other !== layer) field.append(new Option(other.title, index));
    });
    if (layer.mime !== 'image/jpeg')
      field.value = String(config.layers.findIndex(function (other) {
        return other.grid === layer.grid && other.mime === 'image/jpeg';
      }));
    if (field.selectedIndex < 0) field.value = '';
    addField('over', field);
  }

  function buildFields(layer) {
    fields.replaceChildren();
    belowField(layer);
    const dimensions = ['wms', 'wmts', 'tms', 'gmaps'].includes(config.service) ? layer.dimensions : [];
    dimensions.forEach(function (dimension) {
      let field;
      if (dimension.values.length > 1) {
        field = document.createElement('select');
        const all = dimension.values.includes(dimension.default) ? dimension.values
          : [dimension.default].concat(dimension.values);
        all.forEach(function (value) { field.append(new Option(value, value)); });
      } else {
        field = document.createElement('input');
        field.type = 'text';
      }
      field.value = dimension.default;
      field.dataset.dimension = dimension.name;
      addField(dimension.name, field);
    });
    if (config.service === 'wms' && config.assembles) {
      const whole = document.createElement('input');
      whole.type = 'checkbox';
      whole.id = 'whole';
      addField('one map instead of tiles ', whole);
    }
    if (config.service === 'kml' && layer.kml) {
      const link = document.createElement('a');
      link.href = config.base + 'kml/' + key(layer.name + '@' + layer.grid) + '.kml';
      link.textContent = 'KML document of this layer';
      fields.append(link);
    }
  }

  function show(layer, button) {
    shown = layer;
    list.querySelectorAll('button').forEach(function (other) {
      other.setAttribute('aria-pressed', String(other === button));
    });
    info.textContent = '';
    buildFields(layer);
    map.setView(new ol.View({
      projection: projection(layer), resolutions: layer.resolutions.slice(layer.minzoom), constrainResolution: false,
      center: ol.extent.getCenter(layer.extent), showFullExtent: true
    }));
    map.getView().fit(layer.extent, { size: map.getSize() });
    draw();
    history.replaceState(null, '', '#' + key(layer.name + '@' + layer.grid));
  }

  map.on('pointermove', function (event) {
    place.textContent = shown.srs + '  ' + event.coordinate.map(function (n) { return n.toFixed(4); }).join('  ');
  });

  map.on('singleclick', function (event) {
    const source = map.getLayers().item(map.getLayers().getLength() - 1).getSource();
    if (config.service !== 'wms' || !shown.infoFormats.length) return;
    const url = source.getFeatureInfoUrl(event.coordinate, map.getView().getResolution(), projection(shown),
      { INFO_FORMAT: shown.infoFormats[0], QUERY_LAYERS: shown.name });
    info.textContent = '...';
    fetch(url).then(function (response) { return response.text(); })
      .then(function (text) { info.textContent = text; })
      .catch(function (error) { info.textContent = String(error); });
  });

  const wanted = decodeURIComponent(location.hash.slice(1));
  let first = null;
  config.layers.forEach(function (layer) {
    const item = document.createElement('li');
    const button = document.createElement('button');
    const grid = document.createElement('small');
    button.append(layer.title, ' ');
    grid.textContent = layer.grid + ' (' + layer.srs + ')';
    button.append(grid);
    button.addEventListener('click', function () { show(layer, button); });
    item.append(button);
    list.append(item);
    if (first === null || layer.name + '@' + layer.grid === wanted) first = function () { show(layer, button); };
  });
  document.getElementById('filter').addEventListener('input', function (event) {
    const text = event.target.value.toLowerCase();
    for (const item of list.children) item.hidden = !item.textContent.toLowerCase().includes(text);
  });
  if (first === null) notice.textContent = 'No layer is configured for this service.';
  else first();
}());
