// What a citation opens: the passage in the side panel, the quote marked.
import * as api from './api.js';
import { fill, h, icon } from './dom.js';
import { markQuote, render } from './markdown.js';
import * as panel from './panel.js';

/**
 * @param {{passage: string, title: string, source?: string, quote?: string, n?: number, back?: () => void}} what
 */
export async function openPassage({ passage, title, source, quote, n, back }) {
  const parts = title.split(' > ');
  const text = h('.passage-text', { 'aria-busy': 'true' });
  const where = h('p.passage-source', { dir: 'auto' }, source && [icon('document'), source]);
  panel.open({
    kind: 'passage', title: parts.at(-1) || 'Passage',
    subtitle: parts.length > 1 && h('p.crumbs', { dir: 'auto' }, parts.slice(0, -1).join(' › ')),
    content: [back && h('button.link.back', { type: 'button', onclick: back }, icon('chevron'), 'Back'),
      n && quote && h('p.dim', null, `The quote of source ${n} is marked.`), text, where],
  });
  try {
    const p = await api.passage(passage);
    render(text, p.text);
    if (p.source || p.document) fill(where, icon('document'), p.source || p.document);
    const mark = quote && markQuote(text, quote);
    mark?.scrollIntoView({ block: 'center' });
  } catch (e) {
    fill(text, h('p', null, e.status === 404 ? 'This passage is no longer in the documents: they were changed since.' : e.message),
      quote && h('blockquote', { dir: 'auto' }, quote));
  }
  text.removeAttribute('aria-busy');
}
