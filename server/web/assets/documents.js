// The documents that are answered from: the list, upload and removal.
import { announce } from './announce.js';
import * as api from './api.js';
import { confirm } from './dialog.js';
import { byId, counted, fill, h, icon, iconButton } from './dom.js';
import * as panel from './panel.js';

const uploads = h('ul.uploads', { 'aria-label': 'Uploads' });
const list = h('ul.documents', { 'aria-label': 'Documents' });
const head = h('p.dim');
const filter = h('input', { type: 'search', placeholder: 'Find a document', 'aria-label': 'Find a document', oninput: () => draw() });
let all = [];
let queue = Promise.resolve(); // uploads run one after the other

export function open() {
  const can = api.known()?.documents || {};
  const input = h('input.visually-hidden', {
    type: 'file', multiple: true, id: 'files', 'aria-label': 'Files to add', accept: (can.types || []).join(','), tabindex: -1,
    onchange: () => { upload([...input.files]); input.value = ''; },
  });
  panel.open({
    kind: 'documents', title: 'Documents',
    content: [
      can.writable ? h('.drop-zone', null, icon('upload'),
        h('p', null, h('button.link', { type: 'button', onclick: () => input.click() }, 'Choose files'), ' or drop them here'),
        h('p.dim', null, `${(can.types || []).map((t) => t.replace('.', '').toUpperCase()).join(', ')}; up to ${size(can.max_bytes)} each`),
        input) : h('p.dim', null, can.why || 'No documents can be added here.'),
      can.writable && can.why && h('p.dim', null, can.why),
      uploads, h('.list-head', null, head, filter), list,
    ],
  });
  refresh();
}

async function refresh() {
  try {
    all = await api.documents.list();
    draw();
  } catch (e) {
    fill(list, h('li.dim', null, e.message));
  }
}

function draw() {
  const wanted = filter.value.trim().toLowerCase();
  const found = all.filter((d) => !wanted || `${d.title} ${d.id}`.toLowerCase().includes(wanted));
  head.textContent = `${counted(all.length, 'document')}, ${counted(all.reduce((n, d) => n + d.passages, 0), 'passage')}`;
  filter.hidden = all.length < 8;
  fill(list, found.map((d) => h('li', null, icon('document'),
    h('.document-words', null, h('span.document-title', { dir: 'auto' }, d.title || d.id),
      h('span.dim', { dir: 'auto' }, d.title && d.title !== d.id ? `${d.id}, ` : '', counted(d.passages, 'passage'))),
    d.removable !== false && api.known()?.documents.writable && iconButton('trash', `Remove ${d.title || d.id}`, () => remove(d), '.small'))));
}

async function remove(d) {
  const sure = await confirm({ title: 'Remove this document?', text: `Nothing will be answered from “${d.title || d.id}” any more. Add the file again to bring it back.`, action: 'Remove' });
  if (!sure) return;
  try {
    await api.documents.remove(d.id);
    announce(`${d.title || d.id} was removed`);
  } catch (e) {
    uploads.prepend(entry(d.title || d.id).failed(e.message));
  }
  refresh();
}

/** Adds files, one after the other. @param {File[]} files */
export function upload(files) {
  if (panel.openKind() !== 'documents') open();
  for (const file of files) {
    const row = entry(file.name);
    uploads.append(row.element);
    queue = queue.then(() => put(file, row));
  }
  queue.then(refresh);
}

async function put(file, row) {
  const limit = api.known()?.documents.max_bytes;
  if (limit && file.size > limit) return row.failed(`It is larger than ${size(limit)}.`);
  try {
    for await (const e of api.documents.put(file.name, file)) {
      if (e.event === 'progress') row.progress(e.data.done, e.data.total);
      else if (e.event === 'document') row.done(e.data);
      else if (e.event === 'skipped') row.failed(e.data.reason);
      else if (e.event === 'error') row.failed((e.data.problem || e.data).detail);
    }
    if (!row.ended) row.failed('The upload was interrupted; add the file again.');
  } catch (e) {
    row.failed(e.message);
  }
}

/** A file on its way. */
function entry(name) {
  const bar = h('progress', { max: 1, 'aria-label': `Adding ${name}` });
  const words = h('span.dim', null, 'waiting');
  const element = h('li', null, icon('document'), h('.document-words', null, h('span.document-title', { dir: 'auto' }, name), words, bar),
    iconButton('close', `Take ${name} from the list`, () => element.remove(), '.small'));
  const end = (state, text) => {
    row.ended = true;
    element.className = state;
    words.textContent = text;
    bar.remove();
    announce(`${name}: ${text}`);
    return element;
  };
  const row = {
    element, ended: false,
    progress(done, total) { bar.max = total || 1; bar.value = done; words.textContent = total ? `${done} of ${counted(total, 'passage')}` : 'reading'; },
    done(d) { return end('done', [`added, ${counted(d.passages, 'passage')}`, ...(d.warnings || [])].join('; ')); },
    failed(text) { return end('skipped', `skipped: ${text}`); },
  };
  return row;
}

const size = (bytes) => bytes >= 1 << 20 ? `${Math.round(bytes / (1 << 20))} MB` : `${Math.round(bytes / 1024)} KB`;

/** Files can be dropped anywhere on the page. */
export function listenForDrops() {
  const target = byId('drop');
  const brings = (e) => e.dataTransfer?.types.includes('Files') && api.known()?.documents.writable;
  let over = 0;
  addEventListener('dragenter', (e) => { if (brings(e)) { over++; target.hidden = false; } });
  addEventListener('dragleave', (e) => { if (brings(e) && --over <= 0) { over = 0; target.hidden = true; } });
  addEventListener('dragover', (e) => { if (e.dataTransfer?.types.includes('Files')) e.preventDefault(); });
  addEventListener('drop', (e) => {
    over = 0;
    target.hidden = true;
    if (!e.dataTransfer?.files.length) return;
    e.preventDefault();
    if (api.known()?.documents.writable) upload([...e.dataTransfer.files]);
  });
}
