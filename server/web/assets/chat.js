// The conversation that is open: its turns, and the one that runs.
import { announce } from './announce.js';
import * as api from './api.js';
import { byId, counted, fill, h, icon } from './dom.js';
import * as composer from './composer.js';
import { Turn } from './turn.js';

const scroller = byId('scroller'), turnsPlace = byId('turns'), latest = byId('latest');

/** Attempts to take up a stream again that broke off, with the pause before each in ms. */
const AGAIN = [300, 1000, 2500, 5000];

const remembered = {
  /** @returns {any} */
  get(name) { try { return JSON.parse(sessionStorage.getItem(`askback.${name}`) || 'null'); } catch { return null; } },
  set(name, value) {
    try {
      if (value === null) sessionStorage.removeItem(`askback.${name}`); else sessionStorage.setItem(`askback.${name}`, JSON.stringify(value));
    } catch { /* storage is switched off: a reload forgets it */ }
  },
};

/** @implements {import('./turn.js').Host} */
export class Chat {
  id = '';
  /** @type {Turn[]} */ turns = [];
  /** @type {Turn|null} */ current = null;  // the turn that runs
  /** @type {Turn|null} */ waiting = null;  // whose clarification waits
  #reading = null;  // ends the reading of the current turn's stream
  #stored = 0;      // how many turns the server has, as far as is known
  #stick = true;    // the end is in view and is to stay there

  /**
   * @param {{began: (id: string) => void, changed: () => void, down: (e: api.Problem) => void, titled: (title: string) => void}} told
   */
  constructor(told) {
    this.told = told;
    scroller.addEventListener('scroll', () => this.#scrolled(), { passive: true });
    latest.addEventListener('click', () => { this.#stick = true; this.grown(true); composer.focus(); });
    new ResizeObserver(() => this.grown()).observe(scroller);
  }

  // Scrolling: the end stays in view until the person scrolls away from it.

  #scrolled() {
    const below = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    this.#stick = below < 60;
    latest.hidden = this.#stick || !this.turns.length;
  }

  grown(smooth = false) {
    if (!this.turns.length) return;
    if (this.#stick) scroller.scrollTo({ top: scroller.scrollHeight, behavior: smooth && !matchMedia('(prefers-reduced-motion: reduce)').matches ? 'smooth' : 'instant' });
    else this.#scrolled();
  }

  // Opening.

  /** Shows nothing: a new conversation begins with its first message. */
  clear() {
    this.#leave();
    this.id = '';
    composer.set(remembered.get('draft.') || '');
  }

  #leave() {
    this.#reading?.abort();
    this.#reading = null;
    this.current = this.waiting = null;
    this.turns = [];
    fill(turnsPlace);
    composer.say(null);
    composer.setRunning(false);
    composer.setWaiting(null);
    this.#stick = true;
    latest.hidden = true;
  }

  /**
   * Opens a stored conversation. A turn of it that runs is followed, one that
   * was broken off is offered again.
   * @param {string} id
   */
  async open(id) {
    this.#leave();
    this.id = id;
    composer.set(remembered.get(`draft.${id}`) || '');
    turnsPlace.setAttribute('aria-busy', 'true');
    let kept;
    try {
      kept = await api.conversations.read(id);
    } catch (e) {
      if (this.id !== id) return;
      turnsPlace.removeAttribute('aria-busy');
      if (e.status === 404 && this.#resume(id, null)) return;
      if (e.service) this.told.down(e);
      if (e.status === 404 && composer.text()) { // its first message has not arrived yet
        document.body.classList.add('empty');
        return;
      }
      fill(turnsPlace, h('.gone', null, h('p', null, e.status === 404 ? 'There is no such conversation. It may have been deleted.' : e.message),
        e.status !== 404 && h('button.quiet', { type: 'button', onclick: () => this.open(id) }, icon('retry'), 'Retry')));
      return;
    }
    if (this.id !== id) return;
    turnsPlace.removeAttribute('aria-busy');
    this.told.titled(kept.title);
    this.#stored = kept.earlier + kept.turns.length;
    for (const t of kept.turns) this.#addStored(t, this.#add(t.id, t.text));
    this.#offerEarlier(kept.earlier, kept.turns[0]?.number);
    if (kept.pending) this.#wait(this.turns.findLast((t) => t.record?.clarification === kept.pending.clarification) || this.#pendingAlone(kept.pending));
    this.#resume(id, kept);
    this.grown();
  }

  /** @param {Turn} turn @param {any} stored */
  #addStored(stored, turn) {
    if (stored.result) turn.finish(stored.result);
    else turn.partial(stored.partial || '');
    this.#settleBefore(turn);
  }

  /** A long conversation is read from its end. */
  #offerEarlier(count, before) {
    if (!count) return;
    const button = h('button.link', { type: 'button', onclick: () => this.#readEarlier(button, before) }, `Show ${counted(count, 'earlier turn')}`);
    turnsPlace.prepend(h('p.earlier', null, button));
  }

  async #readEarlier(button, before) {
    const id = this.id;
    button.disabled = true;
    try {
      const kept = await api.conversations.read(id, before);
      if (this.id !== id) return;
      const height = scroller.scrollHeight;
      button.parentElement.remove();
      const now = this.turns;
      this.turns = [];
      for (const t of kept.turns) this.#addStored(t, this.#add(t.id, t.text));
      turnsPlace.prepend(...this.turns.map((t) => t.element));
      this.turns.push(...now);
      this.#offerEarlier(kept.earlier, kept.turns[0]?.number);
      scroller.scrollTop += scroller.scrollHeight - height;
    } catch (e) {
      button.disabled = false;
      composer.say(e.message);
    }
  }

  /** A clarification that waits and was asked in a turn too early to be shown. */
  #pendingAlone(record) {
    const turn = this.#add('', record.question);
    turn.finish(record);
    return turn;
  }

  /**
   * Follows a turn that runs, or that was sent when the page was left; one that
   * its server broke off is offered again. Says whether there is one.
   */
  #resume(id, kept) {
    const sent = remembered.get(`sent.${id}`);
    const open = kept?.open;
    const arrived = sent && this.turns.some((t) => t.id === sent.message.key);
    if (!open && (!sent || arrived)) {
      remembered.set(`sent.${id}`, null);
      return false;
    }
    const mine = sent && (!open || open.id === sent.message.key);
    if (open && kept.running && !open.id) { // from a program that names no turn: it cannot be followed
      this.#add('', open.text).begin();
      setTimeout(() => { if (this.id === id && !this.busy) this.open(id); }, 2000);
      return true;
    }
    const turn = this.#add(open ? open.id : sent.message.key, mine ? sent.text : open.text);
    turn.message = mine ? sent.message : { text: open.text, key: open.id };
    if (open && !kept.running) {
      turn.broken('The answer was interrupted: the server ended before it did.');
      return true;
    }
    this.told.began(id);
    this.#run(turn, null);
    return true;
  }

  #add(id, text) {
    const turn = new Turn(this, { id, text });
    this.turns.push(turn);
    turnsPlace.append(turn.element);
    document.body.classList.remove('empty');
    return turn;
  }

  // Sending.

  get busy() { return this.current !== null; }

  /** @param {string} text what is shown @param {Partial<import('./turn.js').Message>} message */
  send(text, message) {
    if (this.busy) return;
    const key = api.newKey();
    if (!this.id) {
      this.id = api.newKey();
      remembered.set('draft.', null);
      this.told.began(this.id);
    }
    const clarification = !message.question && this.waiting?.record.clarification;
    this.#go(text, { ...message, ...(clarification && { clarification }), key });
  }

  #go(text, message) {
    composer.say(null);
    const turn = this.#add(message.key, text);
    turn.message = message;
    this.#stick = true;
    this.#run(turn, message);
  }

  /** From the input. @param {string} text */
  write(text) {
    if (this.busy) return;
    composer.set('');
    const n = /^\s*([1-9])\s*$/.exec(text);
    const option = n && this.waiting?.record.options[Number(n[1]) - 1];
    if (option) this.choose(this.waiting, option); else this.send(text, { text });
  }

  ask(text, as) { this.send(text, { [as]: text }); }

  choose(turn, option) {
    if (this.waiting !== turn) return;
    this.send(option.text, { choice: option.id });
  }

  /** Sends a turn's message again. @param {Turn} turn */
  retry(turn) {
    if (this.busy) return;
    const text = turn.user.textContent, question = turn.record?.question || text;
    if (turn.record) return this.send(question, { question });
    // The key stays: a turn that has ended after all does not run again.
    const message = { ...(turn.message || { text }), key: turn.id || api.newKey() };
    if (!turn.text) this.#drop(turn);
    this.#go(text, message);
  }

  #drop(turn) {
    turn.element.remove();
    this.turns = this.turns.filter((t) => t !== turn);
    if (!this.turns.length) document.body.classList.add('empty');
  }

  async stop() {
    const turn = this.current;
    if (!turn) return;
    try {
      await api.turns.stop(this.id, turn.id);
    } catch (e) {
      if (e.status !== 404 && e.status !== 409) composer.say(`It could not be stopped: ${e.message}`);
    }
  }

  // Running.

  /** Sends the message and follows its turn; with no message the turn runs already. */
  async #run(turn, message) {
    const id = this.id;
    const reading = this.#reading = new AbortController();
    const waited = this.waiting;
    this.current = turn;
    this.waiting = null;
    waited?.settled(message?.choice ? [message.choice] : []);
    remembered.set(`sent.${id}`, { text: turn.user.textContent, message: turn.message || { key: turn.id } });
    composer.setRunning(true);
    composer.setWaiting(null);
    turn.begin();
    this.grown();
    let problem = null;
    try {
      problem = await this.#follow(turn, message, reading.signal);
    } catch (e) {
      if (e.name === 'AbortError' || reading.signal.aborted) return; // another conversation was opened
      problem = e instanceof api.Problem ? e : new api.Problem(0, { detail: e.message });
    }
    if (reading.signal.aborted) return;
    this.current = this.#reading = null;
    composer.setRunning(false);
    if (problem?.code !== 'interrupted') remembered.set(`sent.${id}`, null); // else it may still run, and a reload takes it up
    if (turn.record) this.#stored = Math.max(this.#stored, turn.record.turn);
    if (turn.record) this.#ended(turn); else this.#failed(turn, message, problem, waited);
    this.told.changed();
    this.grown();
  }

  /**
   * Reads a turn's events to their end, taking the stream up again when it breaks
   * off. Gives the problem that the turn ended with, or null.
   */
  async #follow(turn, message, signal) {
    let tries = AGAIN.length;
    for (let attempt = 0; ; attempt++) {
      const before = turn.last;
      let problem = null;
      try {
        const stream = message && attempt === 0 ? api.turns.send(this.id, message, signal) : api.turns.attach(this.id, turn.id, turn.last, signal);
        for await (const e of stream) {
          if (e.id) turn.last = e.id;
          if (e.event === 'end') return problem;
          if (e.event === 'error') problem = new api.Problem(0, e.data);
          else turn.take(e.event, e.data);
        }
        if (problem || turn.record) return problem;
      } catch (e) {
        if (!(e instanceof api.Problem)) throw e;
        if (e.status === 404) return new api.Problem(404, { code: 'unsent', detail: 'The message did not arrive. Your question is kept.' });
        if (e.status !== 0) return e; // the server's own word
        if (message && !turn.last) tries = 2; // it may never have arrived, and is kept
      }
      if (turn.last !== before) attempt = 0;
      if (attempt >= tries) {
        return new api.Problem(0, turn.last ? { code: 'interrupted', detail: 'The answer was interrupted.' }
          : { code: 'unsent', service: 'askback', detail: 'The askback server cannot be reached. Your question is kept.' });
      }
      await new Promise((done) => setTimeout(done, AGAIN[attempt]));
      if (signal.aborted) throw new DOMException('', 'AbortError');
    }
  }

  #ended(turn) {
    this.#settleBefore(turn);
    if (turn.record.kind === 'clarification') this.#wait(turn);
    else if (document.activeElement === document.body && !matchMedia('(pointer: coarse)').matches) composer.focus();
  }

  /** The clarification that a turn replied to is settled, and says how. */
  #settleBefore(turn) {
    const reply = turn.record?.trace.reply;
    if (!reply) return;
    this.turns.find((t) => t.record?.clarification === reply.pending)?.settled((reply.chosen || []).map((o) => o.id));
  }

  #wait(turn) {
    this.waiting = turn;
    turn.wait();
    composer.setWaiting(turn.record.options.length);
    // Where nothing is being written, the options can be chosen with a key at once.
    const active = document.activeElement;
    if ((active === document.body || composer.focused()) && composer.text().trim() === '') turn.focusOptions();
  }

  #failed(turn, message, problem, waited) {
    const code = problem?.code;
    if (code === 'stopped') {
      this.#waitAgain(waited);
      return turn.broken(turn.text ? 'Stopped.' : 'Stopped before an answer began.', 'stop');
    }
    if (code === 'interrupted' || !problem) {
      return turn.broken('The answer was interrupted: the connection broke off before its end.');
    }
    if (code === 'settled' || code === 'no_pending') {
      this.#drop(turn);
      const note = 'That question had been settled already, perhaps in another window. The conversation is up to date now.';
      if (message?.text) composer.set(message.text);
      this.open(this.id).then(() => composer.say(note));
      return;
    }
    if (problem.service || code === 'unavailable') this.told.down(problem);
    this.#waitAgain(waited);
    if (turn.text) return turn.broken(problem.message);
    // Nothing came back: the question goes back to where it was written.
    this.#drop(turn);
    const sent = message || turn.message;
    const text = sent.text || sent.question || '';
    if (text && !composer.text()) composer.set(text);
    composer.say(problem.message, () => {
      if (composer.text().trim() === text) composer.set('');
      this.#go(turn.user.textContent, sent);
    });
    announce(`${problem.message} Your question is kept.`);
    composer.focus();
  }

  /** A turn that failed settles nothing. */
  #waitAgain(turn) {
    if (!turn) return;
    this.waiting = turn;
    turn.wait();
    composer.setWaiting(turn.record.options.length);
  }

  /** Keeps what is being written for after a reload. @param {string} text */
  draft(text) { remembered.set(`draft.${this.id}`, text || null); }

  /** Reads the conversation again if it has gone on elsewhere. */
  async catchUp(stored) {
    if (this.id && !this.busy && stored > this.#stored) await this.open(this.id);
  }
}
