// A small, strict Markdown: it builds elements, so markup in a text is text.
// It knows headings, paragraphs, lists, tables, quotes, code, emphasis, links
// and citations such as [1]. Pictures become links: the page loads nothing from
// elsewhere.
import { h } from './dom.js';

const DEEPEST = 8; // lists in lists, quotes in quotes, emphasis in emphasis

/**
 * @typedef {object} Options
 * @property {(n: number) => Node|null} [cite] makes the mark of citation n; null leaves the text
 */

/** What each element shows: source and nodes of its blocks. */
const shown = new WeakMap();

/**
 * Shows text in an element. Blocks that have not changed since the last call
 * stay the nodes they are, so that a growing text can be shown again and again.
 * @param {Element} element @param {string} text @param {Options} [options]
 * @param {boolean} [anew] also makes unchanged blocks again
 */
export function render(element, text, options = {}, anew = false) {
  const before = anew ? [] : shown.get(element) || [];
  const now = blocks(text.replace(/\r\n?/g, '\n').split('\n'), options, 0);
  let same = 0;
  while (same < now.length && same < before.length && now[same].source === before[same].source) {
    now[same].node = before[same].node;
    same++;
  }
  if (anew) element.replaceChildren();
  for (const old of before.slice(same)) old.node.remove();
  for (const block of now.slice(same)) element.append(block.node = block.make());
  shown.set(element, now);
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const ITEM = /^( {0,3})([-*+•]|\d{1,9}[.)])( +|$)(.*)$/;
const TABLE_RULE = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

/** Cuts lines into blocks, each with its source and how to make its node. */
function blocks(lines, options, depth) {
  const out = [];
  let at = 0;
  const take = (to, make) => {
    out.push({ source: lines.slice(at, to).join('\n'), make });
    at = to;
  };
  while (at < lines.length) {
    const line = lines[at];
    let m;
    if (line.trim() === '') {
      at++;
    } else if ((m = FENCE.exec(line))) {
      take(...fence(lines, at, m));
    } else if ((m = HEADING.exec(line))) {
      const level = Math.min(6, m[1].length + 2), text = m[2] || '';
      take(at + 1, () => h(`h${level}`, { dir: 'auto' }, inline(text, options)));
    } else if (RULE.test(line)) {
      take(at + 1, () => h('hr'));
    } else if (depth < DEEPEST && QUOTE.test(line)) {
      take(...quote(lines, at, options, depth));
    } else if (depth < DEEPEST && ITEM.test(line)) {
      take(...list(lines, at, options, depth));
    } else if (line.includes('|') && at + 1 < lines.length && isTable(line, lines[at + 1])) {
      take(...table(lines, at, options));
    } else {
      let to = at + 1;
      while (to < lines.length && lines[to].trim() !== '' && !startsBlock(lines[to], depth) &&
        !(lines[to].includes('|') && to + 1 < lines.length && isTable(lines[to], lines[to + 1]))) to++;
      const text = lines.slice(at, to).map((l) => l.trim()).join('\n');
      take(to, () => h('p', { dir: 'auto' }, inline(text, options)));
    }
  }
  return out;
}

const startsBlock = (line, depth) =>
  FENCE.test(line) || HEADING.test(line) || RULE.test(line) || (depth < DEEPEST && (QUOTE.test(line) || ITEM.test(line)));

function fence(lines, at, [, mark]) {
  let to = at + 1;
  const isEnd = (l) => l.trim().startsWith(mark) && l.trim().replaceAll(mark[0], '') === '';
  while (to < lines.length && !isEnd(lines[to])) to++;
  const text = lines.slice(at + 1, to).join('\n');
  return [Math.min(to + 1, lines.length), () => h('pre', { tabindex: 0, dir: 'ltr' }, h('code', null, text))];
}

function quote(lines, at, options, depth) {
  const inner = [];
  let to = at;
  for (let m; to < lines.length && (m = QUOTE.exec(lines[to])); to++) inner.push(m[1]);
  return [to, () => h('blockquote', { dir: direction(inner) }, nodes(inner, options, depth + 1))];
}

function list(lines, at, options, depth) {
  const ordered = /\d/.test(ITEM.exec(lines[at])[2]);
  const items = [];
  let to = at, width = 0;
  while (to < lines.length) {
    const line = lines[to], m = ITEM.exec(line);
    const indent = line.length - line.trimStart().length;
    if (m && indent < Math.max(width, 1) + (items.length ? 0 : 4)) {
      if (RULE.test(line) || (/\d/.test(m[2]) !== ordered)) break;
      width = m[1].length + m[2].length + Math.min(Math.max(m[3].length, 1), 4);
      items.push([m[4]]);
    } else if (line.trim() === '') {
      const next = lines[to + 1];
      if (next === undefined || (!ITEM.test(next) && next.length - next.trimStart().length < 2) || next.trim() === '') break;
      items.at(-1).push('');
    } else if (indent >= 2) {
      items.at(-1).push(line.slice(Math.min(indent, width)));
    } else if (lines[to - 1].trim() !== '' && !startsBlock(line, depth)) {
      items.at(-1).push(line.trim());
    } else break;
    to++;
  }
  const first = ordered ? parseInt(ITEM.exec(lines[at])[2], 10) : 1;
  return [to, () => h(ordered ? 'ol' : 'ul', { dir: direction(items.flat()), start: first === 1 ? null : first },
    items.map((item) => h('li', null, tight(nodes(item, options, depth + 1)))))];
}

/** The direction of what holds blocks: that of their first letter. Each has its own beside. */
const direction = (lines) =>
  /^[^\p{L}]*[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u.test(lines.join(' ')) ? 'rtl' : 'ltr';

/** An item that is one paragraph is shown without its paragraph's margins. */
function tight(children) {
  if (children[0]?.tagName === 'P') children[0].classList.add('tight');
  return children;
}

const isTable = (head, rule) => TABLE_RULE.test(rule) && cells(head).length === cells(rule).length;

const cells = (line) =>
  line.trim().replace(/^\||(?<!\\)\|$/g, '').split(/(?<!\\)\|/).map((c) => c.trim().replaceAll('\\|', '|'));

function table(lines, at, options) {
  const head = cells(lines[at]);
  const ends = cells(lines[at + 1]).map((c) => c.endsWith(':') ? (c.startsWith(':') ? 'centre' : 'end') : '');
  let to = at + 2;
  while (to < lines.length && lines[to].includes('|') && lines[to].trim() !== '') to++;
  const rows = lines.slice(at + 2, to).map(cells);
  const cell = (tag, text, i) => h(ends[i] ? `${tag}.${ends[i]}` : tag, { dir: 'auto', scope: tag === 'th' ? 'col' : null }, inline(text || '', options));
  return [to, () => h('.table', { tabindex: 0, role: 'region', 'aria-label': 'Table', dir: direction(head) }, h('table', null,
    h('thead', null, h('tr', null, head.map((c, i) => cell('th', c, i)))),
    h('tbody', null, rows.map((row) => h('tr', null, head.map((_, i) => cell('td', row[i], i)))))))];
}

const nodes = (lines, options, depth) => blocks(lines, options, depth).map((b) => b.make());

// Where something may begin in a line of text.
const SPECIAL = /[\\`*_~[<!\n]|https?:\/\//g;
const CODE = /(`+)(?!`)([\s\S]*?[^`])\1(?!`)/y;
const LINK = /!?\[([^[\]]*)\]\(\s*<?([^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)>?(?:\s+"[^"]*")?\s*\)/y;
const CITATION = /\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]/y;
const ADDRESS = /<?(https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}*_~])>?/y;

/** Makes the nodes of a piece of text. */
function inline(text, options, depth = 0) {
  const out = [];
  const without = new Set(); // marks that do not come again, not to be looked for again
  let from = 0, at = 0;
  const match = (re) => { re.lastIndex = at; return re.exec(text); };
  const put = (length, ...made) => {
    if (at > from) out.push(text.slice(from, at));
    out.push(...made);
    from = at += length;
  };
  for (;;) {
    SPECIAL.lastIndex = at;
    const found = SPECIAL.exec(text);
    if (!found) break;
    at = found.index;
    const c = text[at];
    let m;
    if (c === '\n') put(1, h('br'));
    else if (c === '\\' && /[!-/:-@[-`{-~]/.test(text[at + 1] || '')) { put(1); at++; }
    else if (c === '`' && !without.has('`') && (m = match(CODE))) put(m[0].length, h('code', null, m[2].trim() || m[2]));
    else if ((c === '[' || c === '!') && (m = match(LINK))) put(m[0].length, link(m[2], m[1] || m[2]));
    else if (c === '[' && options.cite && (m = match(CITATION))) {
      const marks = m[1].split(',').map((n) => options.cite(Number(n)));
      if (marks.every(Boolean)) put(m[0].length, ...marks); else at++;
    } else if ((c === 'h' || c === '<') && (m = match(ADDRESS)) && !/\w/.test(text[at - 1] || '')) put(m[0].length, link(m[1], m[1]));
    else if (depth < DEEPEST && (m = emphasis(text, at, without))) {
      put(m.length, h(m.tag, null, inline(m.inner, options, depth + 1)));
    } else {
      if (c === '`') { while (text[at + 1] === '`') at++; without.add('`'); }
      at++;
    }
  }
  if (from < text.length) out.push(text.slice(from));
  return out;
}

/** Emphasis that begins at a place: **strong**, *em*, __strong__, _em_, ~~struck~~. */
function emphasis(text, at, without) {
  for (const [mark, tag] of [['**', 'strong'], ['__', 'strong'], ['~~', 's'], ['*', 'em'], ['_', 'em']]) {
    if (!text.startsWith(mark, at) || without.has(mark)) continue;
    const start = at + mark.length;
    if (!/\S/.test(text[start] || ' ')) return null;
    if (mark[0] === '_' && /[\p{L}\p{N}_]/u.test(text[at - 1] || ' ')) return null; // inside a word
    for (let end = start; (end = text.indexOf(mark, end + 1)) >= 0;) {
      if (/\s/.test(text[end - 1])) continue;
      if (mark.length === 1 && (text[end + 1] === mark || text[end - 1] === mark)) { end++; continue; }
      if (mark[0] === '_' && /[\p{L}\p{N}]/u.test(text[end + mark.length] || ' ')) continue;
      return { tag, inner: text.slice(start, end), length: end + mark.length - at };
    }
    without.add(mark);
  }
  return null;
}

/** A link, if its address is one that is safe to open; else its text. */
function link(address, text) {
  let url = null;
  try { url = new URL(address); } catch { /* a relative address would be one of this page's */ }
  if (!url || !['http:', 'https:', 'mailto:'].includes(url.protocol)) return h('span', { dir: 'auto' }, text);
  return h('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer nofollow', dir: 'auto' }, text);
}

/**
 * Marks a quote in an element, wherever its letters stand: spaces, line breaks
 * and Markdown's marks do not count. Gives the first mark, or null.
 * @param {Element} element @param {string} quote
 */
export function markQuote(element, quote) {
  const counts = (c) => /[\p{L}\p{N}]/u.test(c);
  const places = []; // of each letter that counts: its text node and where in it
  let letters = '';
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    let i = 0;
    for (const c of node.data) {
      if (counts(c)) {
        letters += c;
        for (let k = 0; k < c.length; k++) places.push({ node, from: i, to: i + c.length });
      }
      i += c.length;
    }
  }
  const wanted = Array.from(quote).filter(counts).join('');
  const start = wanted ? letters.indexOf(wanted) : -1;
  if (start < 0) return null;
  const pieces = new Map(); // from each text node the part that is quoted
  for (const p of places.slice(start, start + wanted.length)) {
    const piece = pieces.get(p.node);
    if (piece) piece.to = p.to; else pieces.set(p.node, { from: p.from, to: p.to });
  }
  let first = null, n = 0;
  for (const [node, piece] of pieces) {
    n++;
    const from = n === 1 ? piece.from : 0;
    const end = /^[.!?…)"”'’。！？]+/.exec(node.data.slice(piece.to)); // the sentence's own end
    const to = n < pieces.size ? node.length : piece.to + (end ? end[0].length : 0);
    const mark = h('mark', null);
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, to);
    range.surroundContents(mark);
    first ||= mark;
  }
  return first;
}
