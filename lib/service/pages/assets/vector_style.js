/* How vector tiles are drawn, which have no style of their own: a colour for each of their layers. The server has the list of colours. */
export function colourOf(layer, id) {
  if (layer.vectorLayers === undefined) layer.vectorLayers = [];
  let index = layer.vectorLayers.findIndex(function (known) { return known.id === id; });
  if (index < 0) { /* tiles of others: what is in them is seen when they come */
    index = layer.vectorLayers.push({ id: id }) - 1;
    layer.discovered = true;
  }
  return layer.colours[index % layer.colours.length];
}

/* For OpenLayers. */
export function olStyleOf(layer) {
  const made = {};
  return function (feature) {
    const id = feature.get('layer'), kind = feature.getType().replace('Multi', '');
    const key = kind + ' ' + id;
    if (made[key] === undefined) {
      const colour = colourOf(layer, id), stroke = new ol.style.Stroke({ color: colour, width: kind === 'Polygon' ? 1.2 : 2 });
      made[key] = new ol.style.Style(kind === 'Point'
        ? { zIndex: 3, image: new ol.style.Circle({ radius: 4, fill: new ol.style.Fill({ color: colour }), stroke: new ol.style.Stroke({ color: '#fff', width: 1 }) }) }
        : { zIndex: kind === 'Polygon' ? 1 : 2, stroke: stroke, fill: kind === 'Polygon' ? new ol.style.Fill({ color: colour + '55' }) : undefined });
    }
    return made[key];
  };
}

/* For MapLibre: layers of a style over a source, areas below lines below points. */
export function glLayersOf(layer, source, opacity) {
  const kinds = [['Polygon', 'fill', function (colour) { return { 'fill-color': colour, 'fill-opacity': 0.33 * opacity }; }],
    ['Polygon', 'line', function (colour) { return { 'line-color': colour, 'line-width': 1.2, 'line-opacity': opacity }; }],
    ['LineString', 'line', function (colour) { return { 'line-color': colour, 'line-width': 2, 'line-opacity': opacity }; }],
    ['Point', 'circle', function (colour) {
      return { 'circle-color': colour, 'circle-radius': 4, 'circle-stroke-color': '#fff', 'circle-stroke-width': 1, 'circle-opacity': opacity, 'circle-stroke-opacity': opacity };
    }]];
  return kinds.flatMap(function ([geometry, type, paint], index) {
    return (layer.vectorLayers || []).map(function (known) {
      return { id: source + ' ' + index + ' ' + known.id, type: type, source: source, 'source-layer': known.id,
        filter: ['==', ['geometry-type'], geometry], paint: paint(colourOf(layer, known.id)) };
    });
  });
}
