// Questions to the person in front of the page, and the small menus.
import { fill, h, icon } from './dom.js';

/**
 * Asks before something that cannot be taken back.
 * @returns {Promise<boolean>}
 */
export function confirm({ title, text, action }) {
  return new Promise((done) => {
    const cancel = h('button.quiet', { type: 'button', autofocus: true, onclick: () => dialog.close() }, 'Cancel');
    const go = h('button.danger', { type: 'button', onclick: () => dialog.close('yes') }, action);
    const dialog = h('dialog', { 'aria-labelledby': 'dialog-title', 'aria-describedby': 'dialog-text' },
      h('h2', { id: 'dialog-title' }, title), h('p', { id: 'dialog-text', dir: 'auto' }, text),
      h('.dialog-actions', null, cancel, go));
    show(dialog, () => done(dialog.returnValue === 'yes'));
  });
}

/**
 * Asks for a line of text.
 * @param {{title: string, text?: string, label: string, value: string, action: string, secret?: boolean}} question
 * @returns {Promise<string|null>} null if the person thinks better of it
 */
export function prompt({ title, text, label, value, action, secret }) {
  return new Promise((done) => {
    const input = h('input', { type: secret ? 'password' : 'text', id: 'dialog-input', dir: 'auto', maxlength: 200, required: true, autocomplete: 'off' });
    input.value = value;
    const form = h('form', { method: 'dialog', onsubmit: (e) => { e.preventDefault(); if (input.value.trim()) dialog.close('yes'); } },
      h('h2', { id: 'dialog-title' }, title), text && h('p', { id: 'dialog-text', dir: 'auto' }, text), h('label', { for: 'dialog-input' }, label), input,
      h('.dialog-actions', null,
        h('button.quiet', { type: 'button', onclick: () => dialog.close() }, 'Cancel'),
        h('button.primary', { type: 'submit' }, action)));
    const dialog = h('dialog', { 'aria-labelledby': 'dialog-title' }, form);
    input.addEventListener('keydown', (e) => { if (e.isComposing) e.stopPropagation(); });
    show(dialog, () => done(dialog.returnValue === 'yes' ? input.value.trim() : null));
    input.select();
  });
}

function show(dialog, closed) {
  dialog.addEventListener('close', () => { dialog.remove(); closed(); });
  dialog.addEventListener('click', (e) => { if (e.target === dialog) dialog.close(); }); // beside it
  document.body.append(dialog);
  dialog.showModal();
}

/**
 * A button that opens a menu.
 * @param {string} label
 * @param {() => {icon: string, text: string, danger?: boolean, action?: () => void, href?: string}[]} items
 */
export function menuButton(label, items) {
  const menu = h('.menu', { role: 'menu', 'aria-label': label, popover: 'auto' });
  const button = h('button.icon-button.more', { type: 'button', 'aria-label': label, title: label, 'aria-haspopup': 'menu', 'aria-expanded': 'false' }, icon('more'));
  const entries = () => [...menu.children];
  button.addEventListener('click', (e) => {
    e.preventDefault();
    e.stopPropagation();
    if (menu.matches(':popover-open')) return menu.hidePopover();
    fill(menu, items().map((item) => {
      const pick = () => { menu.hidePopover(); button.focus(); item.action?.(); };
      const props = { role: 'menuitem', tabindex: -1, onclick: pick };
      const classes = item.danger ? '.menu-item.danger-text' : '.menu-item';
      return item.href
        ? h(`a${classes}`, { ...props, href: item.href, download: true }, icon(item.icon), item.text)
        : h(`button${classes}`, { ...props, type: 'button' }, icon(item.icon), item.text);
    }));
    menu.showPopover();
    const b = button.getBoundingClientRect(), m = menu.getBoundingClientRect();
    menu.style.left = `${Math.max(8, Math.min(b.right - m.width, innerWidth - m.width - 8))}px`;
    menu.style.top = `${b.bottom + m.height + 8 > innerHeight ? b.top - m.height - 4 : b.bottom + 4}px`;
    entries()[0]?.focus();
  });
  menu.addEventListener('toggle', (e) => button.setAttribute('aria-expanded', String(e.newState === 'open')));
  menu.addEventListener('keydown', (e) => {
    const all = entries(), at = all.indexOf(document.activeElement);
    const to = { ArrowDown: (at + 1) % all.length, ArrowUp: (at - 1 + all.length) % all.length, Home: 0, End: all.length - 1 }[e.key];
    if (to !== undefined) { e.preventDefault(); all[to].focus(); }
    if (e.key === 'Escape') { e.preventDefault(); e.stopPropagation(); menu.hidePopover(); button.focus(); }
    if (e.key === 'Tab') menu.hidePopover();
  });
  return h('span.menu-place', null, button, menu);
}
