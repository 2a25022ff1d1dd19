// Elements are made here and nowhere else, always from parts, never from markup:
// text of users, documents and models can only ever become text.

const SVG = 'http://www.w3.org/2000/svg';

/**
 * Makes an element.
 *
 *     h('button.quiet', {type: 'button', onclick: save}, icon('check'), 'Save')
 *
 * @param {string} what tag and classes
 * @param {Object<string, any>} [props] attributes; a function under on… listens,
 *   true is an empty attribute, false and null are none
 * @param {...(Node|string|number|null|undefined|false|Array)} children
 * @returns {any}
 */
export function h(what, props, ...children) {
  const [tag, ...classes] = what.split('.');
  return build(document.createElement(tag || 'div'), classes, props, children);
}

/** Like h, for the elements of a picture. */
export function svg(what, props, ...children) {
  const [tag, ...classes] = what.split('.');
  return build(document.createElementNS(SVG, tag), classes, props, children);
}

function build(element, classes, props, children) {
  if (classes.length) element.setAttribute('class', classes.join(' '));
  for (const [name, value] of Object.entries(props || {})) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) add(element, child);
    else if (child != null && child !== false) element.append(child instanceof Node ? child : String(child));
  }
}

/** Replaces what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/** A picture from icons.svg, in the colour of the text around it. */
export function icon(name) {
  return svg('svg.icon', { 'aria-hidden': 'true', focusable: 'false' },
    svg('use', { href: `/assets/icons.svg#${name}` }));
}

/** A button that is only a picture; label is what it is called. */
export function iconButton(name, label, onclick, classes = '') {
  return h(`button.icon-button${classes}`, { type: 'button', 'aria-label': label, title: label, onclick }, icon(name));
}

/** @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

let last = 0;
/** An id that no other element has. */
export const freshId = (word) => `${word}-${++last}`;

/** 1 turn, 2 turns */
export const counted = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`;
