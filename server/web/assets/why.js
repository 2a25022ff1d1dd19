// Why a turn went as it did: both gates, the search, the passages, the times;
// and what it would have done with other thresholds.
import * as api from './api.js';
import { counted, fill, freshId, h, icon } from './dom.js';
import { duration, gatePicture, hasScore, score, smallBar, timePicture } from './picture.js';
import * as panel from './panel.js';
import { openPassage } from './passage.js';

/** @typedef {import('./turn.js').Record} Record */

const GATES = {
  pre: { name: 'Gate 1', when: 'before the search', asks: 'Is the question clear from the dialogue alone?' },
  post: { name: 'Gate 2', when: 'after the search', asks: 'Do the passages found hold one reading, or several?' },
};

/** A gate's decision in words. */
function decision(d) {
  const figures = `${score(d.score)} against ${score(d.threshold)}`;
  switch (d.reason) {
    case 'clear': return `Went on: clear enough (${figures}).`;
    case 'unclear': return `Asked back: unclear (${figures}).`;
    case 'budget spent': return 'Went on: it had asked often enough in a row.';
    case 'asked before': return `Went on: it would have asked what it had asked before (${figures}).`;
    case 'time limit': return 'Went on: the clarifier took too long.';
    case 'failed': return 'Went on: the clarifier failed.';
    case 'no clarifier': return 'Went on: no clarifier is set up.';
    case 'search aimed': return `Went on: unclear by itself (${figures}), but the search found what it is about.`;
    case 'nothing to choose': return `Went on: there was nothing left to choose between (${figures}).`;
    case 'nothing to ask': return `Went on: unclear (${figures}), but it had no question to put.`;
  }
  return `${d.ask ? 'Asked back' : 'Went on'}: ${d.reason} (${figures}).`;
}

/** The whole turn in a sentence. @param {Record} r */
export function summary(r) {
  const asked = r.trace.gates.find((d) => d.ask);
  if (asked?.stage === 'pre') return 'It asked before searching, because the question can be read in more than one way.';
  if (asked) return 'It asked after searching, because the passages found answer more than one reading of the question.';
  const passages = counted(new Set(r.citations.map((c) => c.passage)).size, 'passage');
  switch (r.kind) {
    case 'clarification': return 'It asked again, since the reply left open what was meant.';
    case 'no_answer': return 'No passage found holds the answer, so it says so instead of guessing.';
    case 'answer':
      if (r.assumption) return `It was not told which reading was meant, so it answered from ${passages} with the assumption that it states.`;
      if (!r.citations.length) return 'It answered without the documents: nothing had to be looked up.';
      if (!r.trace.gates.length && r.trace.reply) return `The reply settled what was meant, so it did not check again and answered from ${passages}.`;
      return `The checks found nothing to ask, so it answered from ${passages}.`;
  }
  return 'The turn was broken off.';
}

const REPLIES = {
  choice: 'as a choice', several: 'as several choices', all: 'as all of them', none: 'as none of them', detail: 'as a detail in own words',
  just_answer: 'as “just answer”', dont_know: 'as “I don’t know”', explain: 'as a question about the options', new_question: 'as a new question',
  cancel: 'as “never mind”', unclear_choice: 'as a choice that fits several options',
};

/**
 * @param {{conversation: string, id: string, record: Record}} turn
 */
export function openWhy(turn) {
  const r = turn.record, t = r.trace;
  const cited = new Map();
  for (const c of r.citations) cited.set(c.passage, [...(cited.get(c.passage) || []), c.n]);
  const content = [
    h('p.why-summary', null, summary(r)),
    gates(turn),
    t.reply && h('section', null, h('h3', null, 'The reply'),
      h('p', { dir: 'auto' }, `Taken ${REPLIES[t.reply.kind] || `as ${t.reply.kind}`} to “${t.reply.original}”.`),
      t.reply.chosen?.length > 0 && h('p.dim', { dir: 'auto' }, 'Chosen: ', t.reply.chosen.map((o) => o.text).join('; ')),
      t.reply.excluded?.length > 0 && h('p.dim', { dir: 'auto' }, 'Ruled out: ', t.reply.excluded.map((o) => o.text).join('; '))),
    t.queries?.length > 0 && h('section', null, h('h3', null, 'Searched for'),
      h('ul.queries', null, t.queries.map((q) => h('li', { dir: 'auto' }, q))),
      t.context && h('p.dim', { dir: 'auto' }, `After: ${t.context}`)),
    t.passages.length > 0 && h('section', null, h('h3', null, 'Passages found'),
      h('ol.passages', null, t.passages.map((p) => h('li', null,
        h('button.passage-row', { type: 'button', onclick: () => openPassage({ passage: p.id, title: p.title, back: () => openWhy(turn) }) },
          h('span.passage-name', { dir: 'auto' }, h('span', null, p.title.replaceAll(' > ', ' › ')),
            (cited.get(p.id) || []).map((n) => h('span.cited', { title: `Cited as ${n}` }, n))),
          h('span.passage-score', { title: p.cosine ? 'Similarity to the question' : 'Score of the ranking' },
            smallBar(p.cosine || p.score),
            h('span.figure', null, score(p.cosine || p.score)))))))),
    t.stages.length > 0 && h('section', null, h('h3', null, 'Time'), timePicture(t.stages)),
    (t.notes?.length > 0) && h('section', null, h('h3', null, 'Notes'), h('ul.notes', null, t.notes.map((n) => h('li', { dir: 'auto' }, n)))),
  ];
  panel.open({ kind: 'why', title: title(r), content });
}

/** @param {Record} r */
export const title = (r) => ({
  clarification: 'Why did it ask?', no_answer: 'Why no answer?', answer: 'Why this answer?',
})[r.kind] || 'What happened?';

/** The gates, and the playground in them: the thresholds can be moved. */
function gates(turn) {
  const r = turn.record;
  const ran = Object.fromEntries(r.trace.gates.map((d) => [d.stage, d]));
  const about = api.known();
  const original = {
    pre: ran.pre?.threshold ?? about?.thresholds?.pre ?? 0.5,
    post: ran.post?.threshold ?? about?.thresholds?.post ?? 0.5,
  };
  const now = { ...original };
  const effect = h('.effect', { role: 'status' });
  const reset = h('button.link', { type: 'button', hidden: true, onclick: () => { Object.assign(now, original); draw(original, ran); fill(effect, hint()); reset.hidden = true; } }, 'Put them back');
  const hint = () => h('p.dim', null, 'Move a threshold to see what this turn would have done.');
  const rows = {};
  for (const stage of ['pre', 'post']) rows[stage] = gateRow(stage, r.trace.gates.length ? 'Did not run: the turn had ended before.' : r.trace.reply ? 'Did not run: the reply had settled the question.' : 'Did not run: there was nothing to check.', () => changed(stage));
  fill(effect, hint());

  function draw(thresholds, decisions) {
    for (const stage of ['pre', 'post']) rows[stage].draw(thresholds[stage], decisions[stage], decisions === ran);
  }
  draw(original, ran);

  let timer = 0, running = null;
  function changed(stage) {
    now[stage] = rows[stage].value();
    reset.hidden = false;
    rows[stage].draw(now[stage], rows[stage].decision, false);
    clearTimeout(timer);
    running?.abort();
    timer = setTimeout(preview, 180);
  }
  async function preview() {
    running = new AbortController();
    effect.classList.add('busy');
    try {
      const p = await api.turns.preview(turn.conversation, turn.id, now.pre, now.post, running.signal);
      draw(now, Object.fromEntries(p.trace.gates.map((d) => [d.stage, d])));
      fill(effect, outcome(r, p));
    } catch (e) {
      if (e.name === 'AbortError') return;
      fill(effect, h('p.dim', null, e.message));
    }
    effect.classList.remove('busy');
  }

  return h('section.gates', { 'aria-label': 'Both checks' },
    rows.pre.element, rows.post.element,
    h('.playground', null, effect, reset));
}

/** One gate: its picture, with the threshold as a slider on it, and its words. */
function gateRow(stage, didNotRun, moved) {
  const gate = GATES[stage];
  const name = freshId('gate');
  const picture = h('.gate-scale');
  const words = h('p.gate-words');
  const label = h('output.threshold', { for: name });
  const slider = h('input', { id: name, type: 'range', min: 0, max: 1.01, step: 0.01, 'aria-label': `${gate.name}: asks from this score on`, oninput: moved });
  const row = {
    decision: null,
    value: () => Number(slider.value),
    draw(threshold, d, asItWas) {
      row.decision = d;
      slider.value = String(threshold);
      const says = threshold > 1 ? 'never asks' : `asks from ${score(threshold)}`;
      slider.setAttribute('aria-valuetext', says);
      fill(picture, gatePicture({ score: d?.score ?? 0, threshold, ran: hasScore(d) }));
      label.textContent = says;
      const second = { asked: `Decided by ${d?.clarifier}.`, spared: 'Sure by itself, the second clarifier was not asked.', failed: `Decided alone, since the second clarifier failed: ${d?.second_error}` }[d?.second];
      fill(words, d ? [decision(d), ' ', asItWas && second, d.error && h('span.error-text', null, d.error), asItWas && h('span.dim.figure', null, ` ${duration(d.elapsed_ns)}`)]
        : h('span.dim', null, didNotRun));
    },
    element: h('.gate', { 'data-stage': stage },
      h('.gate-head', null, h('h3', null, gate.name, h('span.dim', null, ` ${gate.when}`)), label),
      h('p.gate-asks', null, gate.asks),
      h('.gate-slide', null, picture, slider), words),
  };
  return row;
}

const OUTCOMES = { clarification: 'It would ask back', answer: 'It would answer', no_answer: 'It would say that the documents do not hold it' };

/** What another pair of thresholds would have led to. */
function outcome(was, would) {
  const same = was.kind === would.kind && was.text === would.text;
  return h(`.outcome.${would.kind}`, null,
    h('p.outcome-head', null, icon(same ? 'check' : 'chevron'), same ? 'The same as it was' : OUTCOMES[would.kind] || would.kind),
    !same && h('p.outcome-text', { dir: 'auto' }, would.text.replace(/\s*\[\d+\]/g, '')),
    !same && would.options.length > 0 && h('ul', null, would.options.map((o) => h('li', { dir: 'auto' }, o.text))));
}
