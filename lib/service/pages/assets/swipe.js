/* The divider of the swipe: dragged by mouse, finger or arrow keys. */
import { byId } from './dom.js';

export function placeSwipe(share) {
  const handle = byId('swipe');
  handle.hidden = share === null;
  if (share === null) return;
  handle.style.left = 100 * share + '%';
  handle.setAttribute('aria-valuenow', String(Math.round(100 * share)));
}

/* Calls moved(share) with the part of the map, 0 to 1, that is left of the divider. */
export function startSwipe(moved) {
  const handle = byId('swipe'), stage = byId('stage');
  function move(share) {
    const bounded = Math.min(1, Math.max(0, share));
    placeSwipe(bounded);
    moved(bounded);
  }
  handle.addEventListener('pointerdown', function (event) { handle.setPointerCapture(event.pointerId); });
  handle.addEventListener('pointermove', function (event) {
    if (!handle.hasPointerCapture(event.pointerId)) return;
    const box = stage.getBoundingClientRect();
    move((event.clientX - box.left) / box.width);
  });
  handle.addEventListener('keydown', function (event) {
    const step = { ArrowLeft: -0.02, ArrowRight: 0.02 }[event.key];
    if (step !== undefined) move(Number(handle.getAttribute('aria-valuenow')) / 100 + step);
  });
}
