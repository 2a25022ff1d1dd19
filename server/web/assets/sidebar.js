// The list of conversations.
import * as api from './api.js';
import { byId, fill, freshId, h } from './dom.js';
import { confirm, menuButton, prompt } from './dialog.js';

const list = byId('conversations');
let shown = []; // what the server said last
let cursor = '';
let current = '';
let host = { open: () => {}, renamed: () => {}, removed: () => {}, failed: () => {} };

export function listen(to) { host = to; }

/** Reads the list anew. */
export async function refresh() {
  try {
    const page = await api.conversations.list('', Math.max(50, Math.min(shown.length, 200)));
    shown = page.list;
    cursor = page.next;
    draw();
  } catch { /* the banner tells of a server that is down */ }
}

/** @param {string} id of the conversation that is open, '' if none */
export function select(id) {
  current = id;
  draw();
}

/** What the server said last of a conversation. */
export const infoOf = (id) => shown.find((c) => c.id === id);

export const titleOf = (id) => infoOf(id)?.title || '';

async function more() {
  try {
    const page = await api.conversations.list(cursor);
    shown = [...shown, ...page.list];
    cursor = page.next;
    draw();
  } catch (e) { host.failed(e); }
}

function draw() {
  const focusedId = list.contains(document.activeElement) ? document.activeElement.closest('li')?.dataset.id : null;
  const ages = new Map(); // from each age its rows, the list's order kept
  for (const c of shown) {
    const age = ageOf(c.changed);
    ages.set(age, [...(ages.get(age) || []), row(c)]);
  }
  fill(list, [...ages].map(([age, rows]) => {
    const id = freshId('age');
    return h('section', { 'aria-labelledby': id }, h('h2.age', { id }, age), h('ul', null, rows));
  }), cursor && h('button.link.rest', { type: 'button', onclick: more }, 'Show more'));
  if (focusedId) list.querySelector(`li[data-id="${CSS.escape(focusedId)}"] a`)?.focus();
}

const row = (c) => h('li', { 'data-id': c.id, class: c.id === current ? 'current' : null },
  h('a.conversation', {
    href: `/c/${encodeURIComponent(c.id)}`, 'aria-current': c.id === current ? 'page' : null, title: c.title,
    onclick: (e) => { if (e.metaKey || e.ctrlKey || e.shiftKey) return; e.preventDefault(); host.open(c.id); },
  }, h('span', { dir: 'auto' }, c.title || 'Untitled'), c.pending && h('span.pending-dot', { title: 'Waits for your reply' }, h('span.visually-hidden', null, '(waits for your reply)'))),
  menuButton(`More about ${c.title || 'this conversation'}`, () => actions(c)));

function ageOf(changed) {
  const days = (new Date().setHours(0, 0, 0, 0) - new Date(changed).setHours(0, 0, 0, 0)) / 864e5;
  if (days < 0.5) return 'Today';
  if (days < 1.5) return 'Yesterday';
  return days < 7 ? 'This week' : days < 31 ? 'This month' : 'Earlier';
}

/** What can be done with a conversation. */
export const actions = (c) => [
  { icon: 'edit', text: 'Rename', action: () => rename(c) },
  { icon: 'export', text: 'Export', ...(api.hasKey() ? { action: () => api.conversations.save(c.id).catch((e) => host.failed(e)) } : { href: api.conversations.exportPath(c.id) }) },
  { icon: 'trash', text: 'Delete', danger: true, action: () => remove(c) },
];

async function rename(c) {
  const title = await prompt({ title: 'Rename the conversation', label: 'Title', value: titleOf(c.id) || c.title || '', action: 'Rename' });
  if (!title) return;
  try {
    await api.conversations.rename(c.id, title);
    host.renamed(c.id, title);
    await refresh();
  } catch (e) { host.failed(e); }
}

async function remove(c) {
  const sure = await confirm({
    title: 'Delete this conversation?', action: 'Delete',
    text: `“${titleOf(c.id) || c.title || 'Untitled'}” and everything in it will be gone. Export it first to keep a copy.`,
  });
  if (!sure) return;
  try {
    await api.conversations.remove(c.id);
    host.removed(c.id);
    await refresh();
  } catch (e) { host.failed(e); }
}
