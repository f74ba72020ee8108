/* Times of dimensions whose capabilities have periods: "start/end/distance" (ISO 8601), each for all its times. */

const MOST = 20000; /* positions of a slider */
const DISTANCE = /^P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;

/* Written as the start of its period is; a date that begins a period of hours is written with its time. */
function textOf(time, start, byClock) {
  const iso = time.toISOString();
  if (!start.includes('T')) return byClock ? iso.slice(0, 19) + 'Z' : iso.slice(0, start.length);
  return iso.slice(0, start.length - 1) + 'Z';
}

function timesOfPeriod(period, room) {
  const [start, end, distance] = period.split('/'), found = DISTANCE.exec(distance || '');
  const first = Date.parse(start), last = Date.parse(end);
  if (!found || (start.includes('T') && !start.endsWith('Z')) || !(first <= last)) return [start];
  const [years, months, days, hours, minutes, seconds] = found.slice(1).map(function (text) { return Number(text || 0); });
  const byCalendar = 12 * years + months, length = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000, times = [];
  if (byCalendar + length <= 0) return [start];
  for (let count = 0; times.length < room; count++) {
    const time = new Date(first + count * length);
    time.setUTCMonth(time.getUTCMonth() + count * byCalendar);
    if (time.getTime() > last) break;
    times.push(textOf(time, start, length % 86400000 !== 0));
  }
  return times;
}

/* All times of a list of periods; single values stay as they are. At most so many that a slider can hold. */
export function timesOf(periods) {
  const times = [];
  for (const period of periods) {
    if (times.length >= MOST) break;
    for (const time of period.includes('/') ? timesOfPeriod(period, MOST - times.length) : [period]) times.push(time);
  }
  return times;
}
