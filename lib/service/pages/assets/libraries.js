/* Libraries that are files beside the server: what is said where the map is when one of them is not there. */
import { here } from './dom.js';

const HOW = ' mapcache\'s package installs it in share/mapcache, script/bootstrap fetches it into build/assets, and the server looks in the folder that MAPCACHE_ASSETS names.';

/* Why a file does not load: a sentence. */
async function whyAbsent(file) {
  try {
    const answer = await fetch(here + 'static/' + file);
    if (answer.ok) return 'This browser cannot run ' + file + '.';
    return 'The server answers ' + answer.status + ': ' + (await answer.text()).trim().slice(0, 300) + '.' + (answer.status === 404 ? HOW : '');
  } catch (error) {
    return 'The server does not answer for ' + file + ' (' + error.message + ').';
  }
}

/* "OpenLayers does not load, so there is no map. The server answers 404: ..." */
export async function absentText(title, file, consequence) {
  return title + ' does not load, ' + consequence + '. ' + await whyAbsent(file);
}

export function hasOpenLayers() { return typeof ol !== 'undefined'; }

export function hasProj4() { return typeof proj4 !== 'undefined'; }

/* Rejects where a file is not there: a worker that does not load says nothing itself. */
export async function demandFile(file) {
  const answer = await fetch(here + 'static/' + file, { method: 'HEAD' });
  if (!answer.ok) throw Object.assign(new Error(file), { file: file });
}
