/* Numbers of the status page: texts, rates between two looks, quantiles of histograms, and the small chart. */

export function number(value) {
  if (value >= 1e6) return (value / 1e6).toFixed(value >= 1e7 ? 1 : 2) + ' M';
  return Math.round(value).toLocaleString('en');
}

export function rateText(value) {
  return value >= 100 ? number(value) : value >= 10 ? value.toFixed(1) : value.toFixed(2).replace(/\.?0+$/, '');
}

export function milliseconds(value) {
  if (value === null) return '-';
  if (value >= 10000) return (value / 1000).toFixed(1) + ' s';
  if (value >= 1000) return (value / 1000).toFixed(2) + ' s';
  return (value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value.toFixed(2)) + ' ms';
}

export function bytes(value) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit++; }
  return (unit === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1)) + ' ' + units[unit];
}

export function duration(seconds) {
  if (seconds < 90) return Math.round(seconds) + ' s';
  if (seconds < 5400) return Math.round(seconds / 60) + ' min';
  if (seconds < 129600) return (seconds / 3600).toFixed(1) + ' h';
  return Math.round(seconds / 86400) + ' days';
}

export function percent(part, whole) {
  return whole > 0 ? (100 * part / whole).toFixed(1) + ' %' : '-';
}

/* What did not have to be rendered or waited for, of what are tiles and maps. */
export function hitShare(results) {
  const stored = results.hit + results.composed + results.stale;
  return { stored: stored, all: stored + results.waited + results.rendered };
}

export function difference(now, before) {
  const results = {};
  for (const name in now.results) results[name] = now.results[name] - (before ? before.results[name] : 0);
  return { total: now.total - (before ? before.total : 0), results: results,
    buckets: now.buckets.map(function (count, index) { return count - (before ? before.buckets[index] : 0); }) };
}

/* As the server does it: between the bounds of a bucket by the count. Null: nothing was counted. */
export function quantile(buckets, bounds, share) {
  const count = buckets.reduce(function (sum, one) { return sum + one; }, 0), rank = share * count;
  let below = 0;
  for (const [index, bound] of bounds.entries()) {
    const lower = index === 0 ? 0 : bounds[index - 1];
    if (buckets[index] > 0 && below + buckets[index] >= rank)
      return lower + (bound - lower) * (rank - below) / buckets[index];
    below += buckets[index];
  }
  return count === 0 ? null : bounds[bounds.length - 1];
}

/* A line through `values`, the last one at the right edge of `most` places. */
export function drawRates(svg, values, most) {
  const top = Math.max(...values, 1e-9), step = 300 / (most - 1), first = most - values.length;
  const points = values.map(function (value, index) {
    return ((first + index) * step).toFixed(1) + ' ' + (46 - 42 * value / top).toFixed(1);
  });
  const path = svg.firstElementChild || svg.appendChild(document.createElementNS('http://www.w3.org/2000/svg', 'path'));
  path.setAttribute('d', points.length < 2 ? '' : 'M' + (first * step).toFixed(1) + ' 50 L' + points.join(' L') + ' L305 ' + points[points.length - 1].split(' ')[1] + ' L305 50');
}
