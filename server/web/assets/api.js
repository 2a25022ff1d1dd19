// The server's API, and how its errors are told.
import { events } from './sse.js';

/** An answer of the server that is no success, in its own words. */
export class Problem extends Error {
  /** @param {number} status 0 if the server was not reached @param {any} body problem+json */
  constructor(status, body) {
    super(sentence(body?.detail || body?.title || `The server answered with status ${status}`));
    this.status = status;
    this.service = body?.service || '';
    this.code = body?.code || '';
  }
}

/** An error of the server, which begins small and has no full stop, as a sentence. */
export function sentence(text) {
  const whole = text.trim();
  return whole[0]?.toUpperCase() + whole.slice(1) + (/[.!?…]$/.test(whole) ? '' : '.');
}

const unreachable = () =>
  new Problem(0, { detail: 'The askback server cannot be reached.', service: 'askback' });

// The key, where the server takes keys. It is kept for this tab alone, and sent in a
// header, never in an address.
const place = 'askback.key';
let key = '';
try { key = sessionStorage.getItem(place) || ''; } catch { /* kept until the page is left */ }
let asking = null; // the question for a key that is open
let refused = false; // the person has put it away
let ask = async () => '';

/** @param {(why: string) => Promise<string>} question asks the person for a key; '' if there is none */
export function askForKeyWith(question) { ask = question; }

export const hasKey = () => key !== '';

export function setKey(text) {
  key = text;
  try { if (text) sessionStorage.setItem(place, text); else sessionStorage.removeItem(place); } catch { /* as above */ }
}

/** Asks for a key, once for all requests that need one. @returns {Promise<boolean>} whether there is another than the one refused */
export async function needKey(why, tried) {
  if (!asking && key && key !== tried) return true;
  asking ??= ask(why).then((text) => { setKey(text); refused = !text; }).finally(() => { asking = null; });
  await asking;
  return key !== '' && key !== tried;
}

/** @returns {Promise<Response>} */
async function request(method, path, options = {}) {
  for (;;) {
    const tried = key;
    try {
      return await attempt(method, path, options);
    } catch (e) {
      const again = e.status === 401 && e.code === 'key' && !(refused && method === 'GET' && !asking) && await needKey(e.message, tried);
      if (!again) throw e;
    }
  }
}

async function attempt(method, path, { body, raw, accept = 'application/json', headers, signal, keepalive } = {}) {
  let response;
  try {
    response = await fetch(path, {
      method, signal, keepalive,
      headers: { Accept: accept, ...(key && { Authorization: `Bearer ${key}` }), ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers },
      body: raw ?? (body === undefined ? undefined : JSON.stringify(body)),
    });
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    throw unreachable();
  }
  if (!response.ok) {
    let problem = null;
    try { problem = await response.json(); } catch { /* not JSON: the status has to do */ }
    throw new Problem(response.status, problem);
  }
  return response;
}

async function json(method, path, options) {
  const response = await request(method, path, options);
  return response.status === 204 ? null : response.json();
}

async function* stream(method, path, options) {
  const response = await request(method, path, { ...options, accept: 'text/event-stream' });
  if (!response.body) return; // nothing more
  try {
    yield* events(response.body);
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    throw unreachable();
  }
}

const at = (conversation) => `/api/conversations/${encodeURIComponent(conversation)}`;
const turnAt = (conversation, turn) => `${at(conversation)}/turns/${encodeURIComponent(turn)}`;

export const about = async () => (lastAbout = await json('GET', '/api/about'));

export const conversations = {
  /** @returns {Promise<{list: any[], next: string}>} next is the cursor of the rest, '' if there is none */
  async list(cursor = '', limit = 50) {
    const response = await request('GET', `/api/conversations?limit=${limit}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
    return { list: await response.json(), next: response.headers.get('Askback-Next') || '' };
  },
  /** @param {string} id @param {number} [before] number of the turn before which to read */
  read: (id, before) => json('GET', at(id) + (before ? `?before=${before}` : '')),
  rename: (id, title) => json('PATCH', at(id), { body: { title } }),
  remove: (id) => json('DELETE', at(id)),
  exportPath: (id) => `${at(id)}/export`,
  /** Saves the export as a file, where a plain link has no key. */
  async save(id) {
    const url = URL.createObjectURL(await (await request('GET', `${at(id)}/export`)).blob());
    const link = document.createElement('a');
    link.href = url;
    link.download = 'conversation.json';
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  },
};

export const turns = {
  /** @param {{text?: string, choice?: string, question?: string, clarification?: string, key: string}} message */
  send: (conversation, message, signal) => stream('POST', `${at(conversation)}/turns`, { body: message, signal }),
  attach: (conversation, turn, lastEvent, signal) =>
    stream('GET', `${turnAt(conversation, turn)}/events`, { signal, headers: lastEvent ? { 'Last-Event-ID': lastEvent } : {} }),
  stop: (conversation, turn) => json('DELETE', turnAt(conversation, turn)),
  preview: (conversation, turn, pre, post, signal) =>
    json('POST', `${turnAt(conversation, turn)}/preview`, { body: { pre_threshold: pre, post_threshold: post }, signal }),
};

export const documents = {
  list: () => json('GET', '/api/documents'),
  put: (name, file, signal) =>
    stream('PUT', `/api/documents/${encodeURIComponent(name)}`, { raw: file, signal, headers: { 'Content-Type': 'application/octet-stream' } }),
  remove: (name) => json('DELETE', `/api/documents/${encodeURIComponent(name)}`),
};

export const passage = (id) => json('GET', `/api/passages/${encodeURIComponent(id)}`);

/** A name for a message that no other message has. */
export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, '0')).join('');
}

let lastAbout = null;
/** What the server last told about itself, or null. */
export const known = () => lastAbout;
