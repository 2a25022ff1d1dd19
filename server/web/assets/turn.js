// One turn on the page: what was asked, what came back, and what can be done
// with it.
import { announce, Sentences } from './announce.js';
import { fill, freshId, h, icon, iconButton } from './dom.js';
import { render } from './markdown.js';
import { openPassage } from './passage.js';
import { gateGlyph, hasScore } from './picture.js';
import { openWhy, title as whyTitle } from './why.js';

/**
 * @typedef {{id: string, text: string, passages: string[]}} Option
 * @typedef {{n: number, passage: string, title: string, source: string, quote: string}} Citation
 * @typedef {{stage: string, ask: boolean, score: number, threshold: number, reason: string, error?: string, elapsed_ns: number}} Decision
 * @typedef {{id: string, title: string, score: number, cosine?: number}} Passage
 * @typedef {{queries: string[], context?: string, passages: Passage[], gates: Decision[], stages: {name: string, elapsed_ns: number}[], notes?: string[], reply?: any}} Trace
 * @typedef {{turn: number, kind: string, text: string, question: string, clarification?: string, options: Option[],
 *   citations: Citation[], assumption?: string, trace: Trace}} Record a turn's result
 * @typedef {{text?: string, choice?: string, question?: string, clarification?: string, key: string}} Message what is sent
 *
 * What a turn asks of the conversation it is in:
 * @typedef {object} Host
 * @property {string} id of the conversation
 * @property {(turn: Turn, option: Option) => void} choose
 * @property {(text: string, as: 'text'|'question') => void} ask
 * @property {(turn: Turn) => void} retry
 * @property {() => void} grown the page may have to scroll
 */

export class Turn {
  id = '';
  /** @type {Record|null} */ record = null;
  /** @type {Message|null} */ message = null;
  last = '';        // id of the last event seen
  text = '';        // of the answer so far
  running = false;
  passages = [];
  #frame = 0;
  #sentences = new Sentences();

  /** @param {Host} host @param {{id: string, text: string}} turn */
  constructor(host, { id, text }) {
    this.host = host;
    this.id = id;
    this.user = h('p.user-text', { dir: 'auto' }, text);
    this.understoodPlace = h('.understood-place');
    this.status = h('p.status', { hidden: true }, h('span.dots', { 'aria-hidden': 'true' }, h('i'), h('i'), h('i')), h('span.status-text'));
    this.body = h('.reply-text');
    this.after = h('.after');
    this.element = h('article.turn', { 'aria-label': text },
      h('.user', null, h('span.visually-hidden', null, 'You: '), this.user),
      h('.reply', null, h('span.visually-hidden', null, 'askback: '), this.understoodPlace, this.body, this.status, this.after));
  }

  /** Before anything has come back. */
  begin() {
    this.running = true;
    this.text = '';
    fill(this.after);
    this.body.classList.remove('note');
    this.body.setAttribute('aria-busy', 'true');
    this.#say('Reading the question');
  }

  #say(text) {
    this.status.hidden = !text;
    this.status.lastElementChild.textContent = text;
  }

  /** Takes an event of the stream. @param {string} event @param {any} data */
  take(event, data) {
    switch (event) {
      case 'turn': this.text = ''; break; // from its beginning
      case 'waiting': this.#say('Waiting for the turn before to end'); break;
      case 'understood': this.#understood(data.question); this.#say('Searching'); break;
      case 'retrieved':
        this.passages = data.passages;
        if (data.passages.length) this.#say(`Reading ${data.passages.length === 1 ? 'the passage' : `${data.passages.length} passages`}`);
        break;
      case 'decided': if (data.stage === 'post' && !data.ask) this.#say('Writing'); break;
      case 'delta':
        this.#say('');
        this.text += data.text;
        this.#sentences.push(data.text);
        this.#frame ||= requestAnimationFrame(() => { this.#frame = 0; this.#draw(); });
        break;
      case 'result': this.finish(data, true); break;
    }
    this.host.grown();
  }

  #draw(anew = false) {
    this.body.classList.toggle('streaming', this.running);
    const citations = new Map((this.record?.citations || []).map((c) => [c.n, c]));
    render(this.body, this.text, {
      cite: (n) => this.record ? citations.has(n) && this.#cite(citations.get(n)) : h('span.cite', null, n),
    }, anew);
    this.host.grown();
  }

  /** Ends the run, however it ended. */
  #settle() {
    this.running = false;
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.body.removeAttribute('aria-busy');
    this.#say('');
  }

  /** Shows the result. @param {Record} record @param {boolean} live it has just come */
  finish(record, live = false) {
    const streamed = this.text !== '';
    this.#settle();
    this.record = record;
    this.text = record.text;
    this.#understood(record.question);
    this.element.dataset.kind = record.kind;
    if (record.kind === 'clarification') {
      this.#clarification();
      if (live) announce(`It asks back: ${record.text}`);
    } else {
      this.#draw(true);
      this.body.classList.toggle('no-answer', record.kind === 'no_answer');
      if (live && streamed) this.#sentences.end();
      else if (live) announce(record.text);
    }
    fill(this.after, record.kind !== 'clarification' && this.#sources(), this.#actions());
  }

  /** The question as it was understood, where that is not what was written. */
  #understood(question) {
    const plain = (s) => s.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, ' ').trim();
    if (!question || plain(question) === plain(this.user.textContent)) return fill(this.understoodPlace);
    const text = h('span.understood-text', { dir: 'auto' }, question);
    const edit = iconButton('edit', 'Edit the question as understood', () => this.#edit(question), '.small');
    fill(this.understoodPlace, h('p.understood', null, h('span.understood-label', null, 'Understood as '), text, edit));
  }

  #edit(question) {
    const id = freshId('edit');
    const input = h('textarea', { id, rows: 2, dir: 'auto' });
    input.value = question;
    const close = () => { this.#understood(question); this.understoodPlace.querySelector('button')?.focus(); };
    const form = h('form.edit', {
      onsubmit: (e) => {
        e.preventDefault();
        const edited = input.value.trim();
        if (!edited) return;
        this.#understood(question);
        this.host.ask(edited, 'question');
      },
    }, h('label', { for: id }, 'What did you mean?'), input,
    h('.edit-actions', null, h('button.quiet', { type: 'button', onclick: close }, 'Cancel'), h('button.primary', { type: 'submit' }, 'Ask this')));
    form.addEventListener('keydown', (e) => {
      if (e.key === 'Escape') { e.preventDefault(); e.stopPropagation(); close(); }
      if (e.key === 'Enter' && !e.shiftKey && e.target === input && !e.isComposing && e.keyCode !== 229) { e.preventDefault(); form.requestSubmit(); }
    });
    fill(this.understoodPlace, form);
    input.focus();
    input.select();
  }

  /** @param {Citation} c */
  #cite(c) {
    return h('button.cite', {
      type: 'button', title: c.title.replaceAll(' > ', ' › '), 'aria-label': `Source ${c.n}: ${c.title.replaceAll(' > ', ', ')}`,
      onclick: () => openPassage(c),
    }, c.n);
  }

  #sources() {
    const r = this.record;
    if (!r.citations.length) return null;
    const places = new Map(); // each place once, with the numbers that cite it
    for (const c of r.citations) places.set(c.passage, [...(places.get(c.passage) || []), c]);
    return h('ul.sources', { 'aria-label': 'Sources' }, [...places.values()].map((cs) => {
      const parts = cs[0].title.split(' > ');
      return h('li', null, h('button.source', { type: 'button', onclick: () => openPassage(cs[0]) },
        h('span.source-numbers', null, cs.map((c) => c.n).join(' ')),
        h('span.source-name', { dir: 'auto' }, parts.at(-1)),
        parts.length > 1 && h('span.source-from', { dir: 'auto' }, parts[0])));
    }));
  }

  #actions() {
    const r = this.record;
    const copy = iconButton('copy', 'Copy', async () => {
      const done = await copyText(r.text);
      fill(copy, icon(done ? 'check' : 'warning'));
      announce(done ? 'Copied' : 'Could not be copied');
      setTimeout(() => fill(copy, icon('copy')), 1600);
    });
    const scored = r.trace.gates.filter(hasScore);
    return h('.actions', null,
      copy, r.kind !== 'clarification' && iconButton('retry', 'Ask again', () => this.host.retry(this)),
      h('button.why', { type: 'button', onclick: () => openWhy({ conversation: this.host.id, id: this.id || String(r.turn), record: r }) },
        scored.length > 0 && gateGlyph(['pre', 'post'].map((s) => scored.find((d) => d.stage === s))), whyTitle(r)));
  }

  // A clarification.

  #clarification() {
    const r = this.record;
    const id = freshId('asks');
    const titles = new Map(r.trace.passages.map((p) => [p.id, p.title]));
    const text = h('.asks-text', { id });
    render(text, r.text);
    this.options = r.options.map((o, i) => {
      const from = (o.passages || []).map((p) => titles.get(p)).filter(Boolean);
      const place = from[0]?.split(' > ');
      return h('button.option', { type: 'button', tabindex: i ? -1 : 0, onclick: () => this.host.choose(this, o) },
        h('kbd', { 'aria-hidden': 'true' }, i + 1),
        h('span.option-words', null,
          h('span.option-text', { dir: 'auto' }, o.text),
          place && h('span.option-source', { dir: 'auto' }, icon('document'), h('span', null, h('span.visually-hidden', null, 'from '),
            [place[0], place.length > 1 && place.at(-1)].filter(Boolean).join(' › '), from.length > 1 && ` +${from.length - 1}`))),
        icon('chevron'));
    });
    const group = h('.options', { role: 'group', 'aria-labelledby': id }, this.options);
    group.addEventListener('keydown', (e) => this.#optionKey(e));
    this.instead = h('.instead', null,
      h('span', null, 'Or write it in your own words. '),
      h('button.link', { type: 'button', onclick: () => this.host.ask('Just answer', 'text') }, 'Just answer'),
      h('button.link', { type: 'button', onclick: () => this.host.ask('Never mind', 'text') }, 'Never mind'));
    fill(this.body, h('.asks', null, text, this.options.length > 0 && group, this.instead));
    this.#waits(false);
  }

  #optionKey(e) {
    const at = this.options.indexOf(document.activeElement);
    const n = this.options.length;
    const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: n - 1 }[e.key];
    if (to === undefined || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    this.#focusOption((to + n) % n);
  }

  #focusOption(i) {
    this.options.forEach((o, k) => { o.tabIndex = k === i ? 0 : -1; });
    this.options[i]?.focus();
  }

  /** Puts the focus on the first option, or says that there is none. */
  focusOptions() {
    if (!this.options?.length || this.options[0].disabled) return false;
    this.#focusOption(0);
    return true;
  }

  /** Chooses the nth option, from 1. */
  pick(n) {
    const option = this.options?.[n - 1];
    if (!option || option.disabled) return false;
    option.click();
    return true;
  }

  #waits(yes) {
    for (const o of this.options) o.disabled = !yes;
    this.instead.hidden = !yes;
    this.body.classList.toggle('waits', yes);
  }

  /** The clarification waits for a reply. */
  wait() {
    if (this.record?.kind !== 'clarification') return;
    this.#waits(true);
  }

  /** It waits no more. @param {string[]} chosen ids of the options */
  settled(chosen = []) {
    if (this.record?.kind !== 'clarification') return;
    this.#waits(false);
    this.record.options.forEach((o, i) => this.options[i].classList.toggle('chosen', chosen.includes(o.id)));
  }

  // What went wrong.

  /** @param {string} text what happened @param {string} [sign] its picture */
  broken(text, sign = 'warning') {
    this.#settle();
    this.#sentences.end();
    this.element.dataset.kind = 'broken';
    if (this.text) this.#draw(true);
    announce(text);
    fill(this.after, h(`.broken.${sign}`, null, icon(sign), h('span', { dir: 'auto' }, text),
      h('button.quiet', { type: 'button', onclick: () => this.host.retry(this) }, icon('retry'), 'Retry')));
  }

  /** A stored turn that was broken off: what was shown of it. */
  partial(text) {
    this.text = text;
    this.broken('Stopped here.', 'stop');
  }
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // not allowed, or a page that came over plain HTTP from another machine
    const area = h('textarea.visually-hidden', { 'aria-hidden': 'true' });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}
