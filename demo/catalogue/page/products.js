/* The products: what matches the search, what of it is switched on, and how that is asked for. */
export const products = { all: [], byName: new Map(), maxzoom: 8, keywords: [] };
export const search = { text: '', keyword: '', from: '', to: '' };
const off = new Set();

export function take(collection) {
  products.maxzoom = collection.maxzoom;
  products.all = collection.features.map(function (feature) {
    return { name: feature.id, ...feature.properties, ring: feature.geometry.coordinates[0] };
  });
  products.byName = new Map(products.all.map(function (product) { return [product.name, product]; }));
  const counts = new Map();
  for (const product of products.all)
    for (const word of product.keywords) counts.set(word, (counts.get(word) || 0) + 1);
  products.keywords = [...counts].sort(function (a, b) { return b[1] - a[1] || a[0].localeCompare(b[0]); });
  for (const name of [...off]) if (!products.byName.has(name)) off.delete(name);
}

function matches(product, words) {
  const text = [product.name, ...product.keywords, product.style].join(' ').toLowerCase();
  return (search.keyword === '' || product.keywords.includes(search.keyword)) &&
    (search.from === '' || product.taken >= search.from) && (search.to === '' || product.taken <= search.to) &&
    words.every(function (word) { return text.includes(word); });
}

/* The newest first: that is what lies on top of the map. */
export function matching() {
  const words = search.text.toLowerCase().split(/[\s,]+/).filter(Boolean);
  return products.all.filter(function (product) { return matches(product, words); }).reverse();
}

export function shown() { return matching().filter(isOn); }
export function isOn(product) { return !off.has(product.name); }
export function toggle(name) { off.has(name) ? off.delete(name) : off.add(name); }
export function setAll(on) { for (const product of matching()) on ? off.delete(product.name) : off.add(product.name); }
export function allOn() { off.clear(); }

/* The shortest way to ask for what is shown: everything, a keyword, a range of days, or the names.
   { layer, name, value }, or null if nothing is shown. */
export function dimension() {
  const wanted = shown();
  if (wanted.length === 0) return null;
  if (wanted.length === products.all.length) return { layer: 'catalog', name: 'product', value: '%' };
  const keyword = products.keywords.find(function (pair) {
    return pair[1] === wanted.length && wanted.every(function (product) { return product.keywords.includes(pair[0]); });
  });
  if (keyword !== undefined) return { layer: 'catalog', name: 'product', value: keyword[0] };
  const days = search.from !== '' && search.to !== '';
  if (days && wanted.length === products.all.filter(function (product) {
    return product.taken >= search.from && product.taken <= search.to;
  }).length)
    return { layer: 'dates', name: 'time', value: search.from + '/' + search.to };
  return { layer: 'catalog', name: 'product', value: wanted.map(function (product) { return product.name; }).join(',') };
}
