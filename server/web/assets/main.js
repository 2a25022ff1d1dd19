// The page: which conversation is open, and what stands around it.
import { announce } from './announce.js';
import * as api from './api.js';
import { Chat } from './chat.js';
import * as composer from './composer.js';
import { menuButton, prompt } from './dialog.js';
import * as documents from './documents.js';
import { byId, fill, h, icon } from './dom.js';
import * as panel from './panel.js';
import * as sidebar from './sidebar.js';

const chat = new Chat({
  began(id) {
    if (idOf(location) !== id) history.pushState(null, '', `/c/${encodeURIComponent(id)}`);
    sidebar.select(id);
    showActions();
  },
  changed: async () => { await sidebar.refresh(); setTitle(sidebar.titleOf(chat.id)); },
  titled: (title) => setTitle(title || sidebar.titleOf(chat.id)),
  down: (problem) => showServices([{ name: problem.service || 'A service', ok: false, error: problem.message }]),
});

composer.listen({ send: (text) => chat.write(text), stop: () => chat.stop(), draft: (text) => chat.draft(text) });

// Where we are.

const idOf = (url) => /^\/c\/([^/]+)$/.exec(url.pathname)?.[1] && decodeURIComponent(/^\/c\/([^/]+)$/.exec(url.pathname)[1]);

async function show() {
  const id = idOf(location) || '';
  closeSide();
  panel.close();
  sidebar.select(id);
  document.body.classList.toggle('empty', !id);
  setTitle(sidebar.titleOf(id));
  if (id) await chat.open(id); else chat.clear();
  showActions();
  if (!chat.waiting && !matchMedia('(pointer: coarse)').matches) composer.focus();
}

function go(path) {
  if (location.pathname !== path) history.pushState(null, '', path);
  show();
}

addEventListener('popstate', show);
for (const id of ['brand', 'new']) {
  byId(id).addEventListener('click', (e) => {
    if (e.metaKey || e.ctrlKey || e.shiftKey) return;
    e.preventDefault();
    go('/');
    composer.focus();
  });
}

function setTitle(title) {
  byId('title').textContent = title || 'New conversation';
  document.title = title ? `${title} · askback` : 'askback';
}

function showActions() {
  const id = chat.id;
  fill(byId('bar-actions'), id && menuButton('More about this conversation', () => sidebar.actions({ id, title: byId('title').textContent })));
}

sidebar.listen({
  open: (id) => go(`/c/${encodeURIComponent(id)}`),
  renamed: (id, title) => { if (id === chat.id) setTitle(title); },
  removed: (id) => { if (id === chat.id) go('/'); announce('The conversation was deleted'); },
  failed: (e) => { composer.say(e.message); if (e.service) showServices([{ name: e.service, ok: false, error: e.message }]); },
});

// The list of conversations, where it has no place of its own.

const side = byId('side'), shade = byId('shade'), sideButton = byId('side-open');

function openSide() {
  document.body.classList.add('side-open');
  shade.hidden = false;
  sideButton.setAttribute('aria-expanded', 'true');
  byId('side-close').focus();
}

function closeSide() {
  if (!document.body.classList.contains('side-open')) return;
  document.body.classList.remove('side-open');
  shade.hidden = true;
  sideButton.setAttribute('aria-expanded', 'false');
  sideButton.focus();
}

sideButton.addEventListener('click', openSide);
byId('side-close').addEventListener('click', closeSide);
shade.addEventListener('click', closeSide);
side.addEventListener('keydown', (e) => {
  if (e.key === 'Escape' && !e.defaultPrevented) closeSide();
});
byId('documents-button').addEventListener('click', () => { closeSide(); documents.open(); });
documents.listenForDrops();

// Keys for the options of a clarification, wherever nothing is being written.

document.addEventListener('keydown', (e) => {
  if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open], [popover]:popover-open')) return;
  const at = document.activeElement;
  if (at && at.matches('input, textarea, select, [contenteditable]')) {
    if (at.id === 'question' && composer.text() === '' && e.key === 'ArrowUp' && chat.waiting?.focusOptions()) e.preventDefault();
    return;
  }
  if (/^[1-9]$/.test(e.key) && chat.waiting?.pick(Number(e.key))) e.preventDefault();
  else if (e.key.length === 1 && e.key !== ' ' && !panel.isOpen()) composer.focus(); // what is typed is written
});

// Light and dark.

const theme = byId('theme');
const systemDark = matchMedia('(prefers-color-scheme: dark)');
const isDark = () => document.documentElement.dataset.theme ? document.documentElement.dataset.theme === 'dark' : systemDark.matches;

function drawTheme() { theme.setAttribute('aria-pressed', String(isDark())); }

theme.addEventListener('click', () => {
  const next = isDark() ? 'light' : 'dark';
  if ((next === 'dark') === systemDark.matches) {
    delete document.documentElement.dataset.theme; // as the system has it
    try { localStorage.removeItem('askback.theme'); } catch { /* not remembered */ }
  } else {
    document.documentElement.dataset.theme = next;
    try { localStorage.setItem('askback.theme', next); } catch { /* not remembered */ }
  }
  drawTheme();
});
systemDark.addEventListener('change', drawTheme);
drawTheme();

// The key, where the server takes keys.

const keyButton = byId('key');
const drawKey = () => { keyButton.hidden = !api.hasKey(); };

api.askForKeyWith(async (why) => {
  api.setKey(''); // the one that was refused
  drawKey();
  const key = await prompt({ title: 'This server takes a key', text: why, label: 'Key', value: '', action: 'Use the key', secret: true });
  api.setKey(key || '');
  drawKey();
  return key || '';
});

keyButton.addEventListener('click', () => {
  api.setKey('');
  location.replace('/'); // with all that was read by it
});

async function askAgain() {
  if (await api.needKey('The key stays in this tab until it is closed.', '')) location.reload();
}

// What is served, and what of it is down.

let watching = 0;

/** @param {{name: string, ok: boolean, optional?: boolean, error?: string}[]} services */
function showServices(services) {
  const down = services.filter((s) => !s.ok);
  fill(byId('banner'), down.length > 0 && h('.banner', null, icon('warning'),
    h('p', { dir: 'auto' }, h('strong', null, down.map((s) => s.name).join(' and '), down.length > 1 ? ' are' : ' is', ' not available. '),
      h('span.banner-detail', null, down.map((s) => s.error && api.sentence(s.error)).filter(Boolean).join(' ')),
      down.every((s) => s.optional) ? ' Questions are answered without it meanwhile.' : ' The conversation can be read; a question is kept until it can be answered.')));
  clearTimeout(watching);
  watching = setTimeout(look, down.length ? 4000 : 60000);
}

async function look() {
  if (document.hidden) return void (watching = setTimeout(look, 60000));
  try {
    const about = await api.about();
    byId('documents-button').hidden = !about.documents;
    drawWelcome(about);
    showServices(about.services || []);
    drawKey();
  } catch (e) {
    if (e.status === 401) return showKeyNeeded();
    showServices([{ name: 'The askback server', ok: false, error: '' }]);
  }
}

function showKeyNeeded() {
  clearTimeout(watching);
  drawKey();
  fill(byId('banner'), h('.banner', null, icon('key'),
    h('p', null, h('strong', null, 'This server takes a key. '), h('button.link', { type: 'button', id: 'key-again', onclick: askAgain }, 'Enter a key'))));
}

function drawWelcome(about) {
  const place = byId('offers');
  const text = JSON.stringify([about.samples, about.sources, about.clarifier]);
  if (place.dataset.drawn === text) return;
  place.dataset.drawn = text;
  fill(place,
    about.samples?.length > 0 && h('ul.samples', { 'aria-label': 'Questions to try' }, about.samples.map((s) => h('li', null,
      h('button.sample', { type: 'button', onclick: () => chat.write(s.question) },
        h('span.sample-question', { dir: 'auto' }, s.question), h('span.sample-shows', { dir: 'auto' }, s.shows))))),
    h('p.served', { dir: 'auto' }, [about.sources, about.clarifier && `clarifier: ${about.clarifier}`].filter(Boolean).join(' · ')));
}

document.addEventListener('visibilitychange', async () => {
  if (document.hidden) return;
  look();
  await sidebar.refresh();
  await chat.catchUp(sidebar.infoOf(chat.id)?.turns); // another window may have gone on
});

await Promise.all([show(), look(), sidebar.refresh()]);
document.body.dataset.ready = '';
