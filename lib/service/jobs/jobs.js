/* The queue as it stands, every two seconds. Everything that comes from the queue is put in as text, never as markup. */
(function () {
  'use strict';
  const api = document.body.dataset.api;
  const list = document.getElementById('jobs');
  const workers = document.querySelector('#workers tbody');
  const notice = document.getElementById('notice');
  const token = document.getElementById('token');
  const seen = {}; /* job -> tiles and time of the last look, and the rate since */
  const shown = {}; /* job -> its element */
  /* Whoever shows this page inside of another one could have its buttons pressed unseen. */
  if (window.top !== window.self) {
    notice.textContent = 'This page does not work inside of another one.';
    return;
  }
  token.value = sessionStorage.getItem('token') || '';

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function number(value) { return Math.round(value).toLocaleString('en'); }

  function duration(seconds) {
    if (!isFinite(seconds)) return '?';
    if (seconds < 90) return Math.round(seconds) + ' s';
    if (seconds < 5400) return Math.round(seconds / 60) + ' min';
    if (seconds < 129600) return (seconds / 3600).toFixed(1) + ' h';
    return Math.round(seconds / 86400) + ' days';
  }

  function call(path, method) {
    const headers = token.value ? { Authorization: 'Bearer ' + token.value } : {};
    return fetch(api + path, { method: method || 'GET', headers: headers, cache: 'no-store' }).then(function (answer) {
      return answer.text().then(function (text) {
        let content = {};
        try { content = JSON.parse(text); } catch (error) { /* the status says enough */ }
        if (!answer.ok) throw new Error(content.error || 'The server answers ' + answer.status + '.');
        return content;
      });
    });
  }

  function tell(error) { notice.textContent = error ? error.message : ''; }

  /* Tiles per second between two looks, by the database's clock; smoothed, as workers tell every two seconds. */
  function rate(job) {
    const before = seen[job.id];
    let speed = before ? before.rate : 0;
    if (before && job.now > before.now) {
      const latest = Math.max(0, (job.tiles - before.tiles) / (job.now - before.now));
      speed = before.looks > 1 ? 0.6 * speed + 0.4 * latest : latest;
    }
    seen[job.id] = { tiles: job.tiles, now: job.now, rate: speed, looks: before ? before.looks + 1 : 1 };
    return job.state === 'open' ? speed : 0;
  }

  function part(className, count, total) {
    const made = element('span', className);
    made.style.width = (total > 0 ? Math.min(100, 100 * count / total) : 0) + '%';
    return made;
  }

  function what(job) {
    const words = [job.mode, job.grid, 'zoom ' + job.minzoom + ' to ' + job.maxzoom];
    if (job.target) words.push('to ' + job.target);
    for (const name in job.dimensions) words.push(name + ' ' + job.dimensions[name]);
    if (job.extent) words.push('in ' + job.extent.map(function (edge) { return +edge.toPrecision(8); }).join(', '));
    if (job.area) words.push('in an area');
    if (job.priority) words.push('priority ' + job.priority);
    if (job.rate) words.push('at most ' + number(job.rate) + ' tiles/s');
    if (job.owner) words.push('by ' + job.owner);
    return words.join(' · ');
  }

  function numbers(job, speed) {
    const through = job.done + job.skipped + job.failed, made = element('div', 'numbers');
    const share = job.metatiles > 0 ? Math.min(100, 100 * through / job.metatiles) : 0;
    made.append(element('span', 'share', share.toFixed(1) + ' %'), element('span', '', number(job.tiles) + ' tiles'),
      element('span', '', number(job.done) + ' of ' + number(job.metatiles) + ' metatiles done'),
      element('span', '', number(job.skipped) + ' skipped'));
    if (job.failed || job.units_failed) made.append(element('span', 'bad', number(job.failed) + ' failed'));
    if (job.state === 'open') {
      made.append(element('span', 'rate', number(speed) + ' tiles/s'),
        element('span', '', job.workers + (job.workers === 1 ? ' worker' : ' workers')));
      if (speed > 0 && job.done > 0)
        made.append(element('span', '', duration(Math.max(0, job.metatiles - through) * job.tiles / job.done / speed) + ' left'));
    } else if (job.ended && job.started) {
      made.append(element('span', '', 'in ' + duration(job.ended - job.started)));
    }
    return made;
  }

  function button(job, action, title, question) {
    const made = element('button', action, title);
    made.addEventListener('click', function () {
      if (question && !window.confirm(question)) return;
      call('/' + job.id + '/' + action, 'POST').then(function () { tell(); return look(); }).catch(tell);
    });
    return made;
  }

  function actions(job, changeable) {
    const made = element('div', 'actions');
    if (!changeable) return made;
    if (job.state === 'open') made.append(button(job, 'pause', 'Pause'));
    if (job.state === 'paused') made.append(button(job, 'resume', 'Resume'));
    if (job.units_failed && job.state !== 'cancelled') made.append(button(job, 'retry', 'Retry failed'));
    if (job.state === 'open' || job.state === 'paused')
      made.append(button(job, 'cancel', 'Cancel', 'End job ' + job.id + '? What is stored stays.'));
    return made;
  }

  /* The failed units, asked for when they are wanted. */
  function failures(job, old) {
    const made = element('details'), names = element('ul');
    made.append(element('summary', '', number(job.units_failed) + ' failed units'), names);
    function fill() {
      call('/' + job.id).then(function (content) {
        names.replaceChildren.apply(names, content.units.filter(function (unit) { return unit.state === 'failed'; })
          .map(function (unit) {
            return element('li', '', 'unit ' + unit.unit + ', zoom ' + unit.z + ', tried ' + unit.attempt + ' times: ' +
              (unit.message || 'the token shows why'));
          }));
      }).catch(tell);
    }
    made.addEventListener('toggle', function () { if (made.open) fill(); });
    if (old && old.open) {
      names.append.apply(names, old.querySelectorAll('li'));
      made.open = true;
    }
    return made;
  }

  function show(job, changeable) {
    const item = element('li'), head = element('div', 'head'), bar = element('div', 'bar');
    const broken = job.state === 'done' && job.units_failed > 0;
    head.append(element('b', '', '#' + job.id + ' ' + job.tileset),
      element('span', 'state ' + (broken ? 'failed' : job.state), broken ? 'done, with failures' : job.state),
      actions(job, changeable));
    bar.append(part('done', job.done, job.metatiles), part('skipped', job.skipped, job.metatiles),
      part('failed', job.failed, job.metatiles));
    bar.setAttribute('role', 'progressbar');
    bar.setAttribute('aria-valuenow', job.metatiles > 0 ? Math.min(100, Math.round(100 * (job.done + job.skipped) / job.metatiles)) : 0);
    item.dataset.job = job.id;
    item.append(head, element('div', 'what', what(job)), bar, numbers(job, rate(job)));
    if (job.units_failed)
      item.append(failures(job, shown[job.id] && shown[job.id].querySelector('details')));
    shown[job.id] = item;
    return item;
  }

  function row(worker, now) {
    const made = element('tr');
    [worker.name || '(the token shows its name)', worker.threads, worker.job ? '#' + worker.job : 'waiting',
      number(worker.tiles_per_second), number(worker.tiles), duration(Math.max(0, now - worker.seen)) + ' ago']
      .forEach(function (text) { made.append(element('td', '', text)); });
    return made;
  }

  function look() {
    return call('').then(function (content) {
      const now = content.jobs.length > 0 ? content.jobs[0].now : Date.now() / 1000;
      list.replaceChildren.apply(list, content.jobs.map(function (job) { return show(job, content.changeable); }));
      workers.replaceChildren.apply(workers, content.workers.map(function (worker) { return row(worker, now); }));
      document.getElementById('nothing').hidden = content.jobs.length > 0;
      document.getElementById('idle').hidden = content.workers.length > 0;
      document.getElementById('workers').hidden = content.workers.length === 0;
    });
  }

  /* One look after the other, however slow they are; none while nobody sees the page. A button that has the keyboard's
     focus is not taken away. */
  let timer;
  function again() {
    clearTimeout(timer);
    const wait = document.hidden || (document.activeElement && list.contains(document.activeElement));
    (wait ? Promise.resolve() : look().then(function () { tell(); })).catch(tell).then(function () {
      timer = setTimeout(again, 2000);
    });
  }

  document.getElementById('key').addEventListener('submit', function (event) {
    event.preventDefault();
    sessionStorage.setItem('token', token.value);
    again();
  });
  again();
}());
