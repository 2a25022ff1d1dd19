// The side panel: a passage, why a turn went as it did, or the documents. It
// stands beside the conversation, or over it where there is no room.
import { byId, fill, freshId, h, iconButton } from './dom.js';

const element = byId('panel');
let opener = null; // where the focus goes back to
let kind = '';
let closed = null; // told when the panel closes

export const isOpen = () => !element.hidden;
export const openKind = () => (element.hidden ? '' : kind);

/** @param {{kind: string, title: string, content: any, onclose?: () => void, subtitle?: any}} what */
export function open({ kind: next, title, content, subtitle, onclose }) {
  if (!element.hidden) closed?.();
  if (!element.contains(document.activeElement)) opener = document.activeElement;
  kind = next;
  closed = onclose || null;
  const id = freshId('panel-title');
  const heading = h('h2', { id, tabindex: -1 }, title);
  element.setAttribute('aria-labelledby', id);
  fill(element,
    h('header.panel-head', null, h('div', null, heading, subtitle), iconButton('close', 'Close', close)),
    h('.panel-body', { tabindex: -1 }, content));
  element.dataset.kind = kind;
  element.hidden = false;
  document.body.classList.add('panel-open');
  heading.focus({ preventScroll: true });
  return element;
}

export function close() {
  if (element.hidden) return;
  element.hidden = true;
  document.body.classList.remove('panel-open');
  closed?.();
  closed = null;
  fill(element);
  if (opener?.isConnected) opener.focus({ preventScroll: true }); else byId('question').focus();
  opener = null;
}

document.addEventListener('keydown', (e) => {
  if (e.key === 'Escape' && !e.defaultPrevented && !document.querySelector('dialog[open], [popover]:popover-open')) {
    if (isOpen()) { e.preventDefault(); close(); }
  }
});
