/* Elements of a page. Texts become text, never markup: titles come from whoever wrote the configuration. */
export function element(name, options = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (key === 'text') made.textContent = value;
    else if (key === 'on') for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (key === 'data') Object.assign(made.dataset, value);
    else if (key in made && key !== 'list') made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter(function (child) { return child !== null && child !== undefined; }));
  return made;
}

export function byId(id) { return document.getElementById(id); }

/* The root of the alias and the folder of the pages, as the browser reaches them: through any proxy. */
export const base = new URL(document.body.dataset.base, location.href).href;
export const here = new URL(document.body.dataset.here, location.href).href;

/* An answer that is JSON, or an error that says in words what came instead. */
export async function fetchJson(url) {
  let answer;
  try {
    answer = await fetch(url);
  } catch (error) {
    throw new Error('The server does not answer (' + error.message + ').');
  }
  const text = await answer.text();
  if (!answer.ok) throw new Error('The server answers ' + answer.status + ': ' + text.slice(0, 500));
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error('The server\'s answer is no JSON: ' + text.slice(0, 200));
  }
}

export async function copyText(text, button) {
  const was = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch (error) { /* without TLS there is no clipboard: by way of a selection */
    const field = element('textarea', { value: text, className: 'copied' });
    document.body.append(field);
    field.select();
    document.execCommand('copy');
    field.remove();
  }
  button.textContent = 'copied';
  setTimeout(function () { button.textContent = was; }, 1200);
}
