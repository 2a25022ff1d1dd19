// What a screen reader is told. A streamed answer is told in whole sentences,
// some at a time, not word by word.
import { byId } from './dom.js';

const PAUSE = 1200; // ms between two announcements

let queue = [];
let timer = 0;

/** Tells something once. @param {string} text */
export function announce(text) {
  if (!text.trim()) return;
  queue.push(text.trim());
  timer ||= setTimeout(tell, 60);
}

function tell() {
  timer = 0;
  if (!queue.length) return;
  const line = document.createElement('p');
  line.textContent = queue.join(' ');
  queue = [];
  const region = byId('announcer');
  while (region.childElementCount > 4) region.firstElementChild.remove();
  region.append(line);
  timer = setTimeout(tell, PAUSE);
}

/** Cuts a text that comes in pieces into sentences and tells them. */
export class Sentences {
  rest = '';

  push(piece) {
    this.rest += piece;
    const end = Math.max(...['. ', '? ', '! ', '\n', '。', '؟ '].map((e) => this.rest.lastIndexOf(e)));
    if (end < 0) return;
    announce(spoken(this.rest.slice(0, end + 1)));
    this.rest = this.rest.slice(end + 1);
  }

  end() {
    announce(spoken(this.rest));
    this.rest = '';
  }
}

const spoken = (text) => text.replace(/\[(\d+)\]/g, '').replace(/[*_`#|]+/g, '');
