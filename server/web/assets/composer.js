// Where the question is written.
import { byId, fill, h, icon } from './dom.js';

const form = byId('composer'), input = byId('question'), sendButton = byId('send'), stopButton = byId('stop');
const notice = byId('notice'), hint = byId('hint');

let onsend = () => {};
let ondraft = () => {};

/** @param {{send: (text: string) => void, stop: () => void, draft: (text: string) => void}} to */
export function listen({ send, stop, draft }) {
  onsend = send;
  ondraft = draft;
  stopButton.addEventListener('click', stop);
}

form.addEventListener('submit', (e) => {
  e.preventDefault();
  const text = input.value.trim();
  if (text && !sendButton.disabled && !sendButton.hidden) onsend(text);
});

input.addEventListener('keydown', (e) => {
  // While an input method composes, Enter takes its suggestion.
  if (e.key !== 'Enter' || e.shiftKey || e.isComposing || e.keyCode === 229) return;
  e.preventDefault();
  form.requestSubmit();
});

input.addEventListener('input', () => { fit(); ondraft(input.value); });

function fit() {
  input.style.height = 'auto';
  input.style.height = `${Math.min(input.scrollHeight, innerHeight * 0.4)}px`;
  sendButton.disabled = input.value.trim() === '';
}

export const text = () => input.value;

/** @param {string} text */
export function set(text) {
  input.value = text;
  fit();
  ondraft(text);
}

export const focus = () => input.focus();
export const focused = () => document.activeElement === input;

/** A turn runs: Stop stands in the place of Send. */
export function setRunning(running) {
  const hadFocus = document.activeElement === stopButton;
  sendButton.hidden = running;
  stopButton.hidden = !running;
  if (hadFocus && !running) input.focus();
}

/** @param {number|null} options how many a clarification offers that waits; null if none waits */
export function setWaiting(options) {
  const waits = options !== null;
  form.classList.toggle('waits', waits);
  input.placeholder = waits ? 'Reply in your own words' : 'Ask a question';
  byId('question-label').textContent = waits ? 'Your reply' : 'Your question';
  hint.textContent = options ? `Press 1${options > 1 ? `–${Math.min(options, 9)}` : ''} to choose, or write.` : 'Enter sends, Shift + Enter makes a new line.';
}

/** Says above the input what went wrong; null takes it away. @param {string|null} text @param {() => void} [retry] */
export function say(text, retry) {
  fill(notice, text && h('.notice', null, icon('warning'), h('p', { dir: 'auto' }, text),
    retry && h('button.quiet', { type: 'button', onclick: retry }, icon('retry'), 'Retry'),
    h('button.icon-button.small', { type: 'button', 'aria-label': 'Dismiss', onclick: () => say(null) }, icon('close'))));
}

fit();
addEventListener('resize', fit);
