// The pictures of a turn: both gates' scores against their thresholds, and where
// the time went.
import { h, svg } from './dom.js';

const percent = (x) => `${(100 * Math.min(1, Math.max(0, x))).toFixed(2)}%`;

/** 0.3 → "0.30" */
export const score = (x) => x.toFixed(2);

/** Whether a gate came to a score at all. */
export const hasScore = (d) => Boolean(d) && d.reason !== 'no clarifier' && d.reason !== 'budget spent' && !d.error;

/**
 * A gate as a scale from 0 to 1: at and over the threshold it asks.
 * @param {{score: number, threshold: number, ran: boolean}} gate
 */
export function gatePicture({ score: value, threshold, ran }) {
  const asks = value >= threshold;
  return svg('svg.gate-picture', { 'aria-hidden': 'true', focusable: 'false' },
    svg('rect.zone-on', { x: 0, y: 18, width: percent(threshold), height: 12, rx: 3 }),
    svg('rect.zone-ask', { x: percent(threshold), y: 18, width: percent(1 - threshold), height: 12, rx: 3 }),
    ran && svg(asks ? 'rect.score-bar.asks' : 'rect.score-bar', { x: 0, y: 22, width: percent(value), height: 4, rx: 2 }),
    ran && svg(asks ? 'circle.score-dot.asks' : 'circle.score-dot', { cx: percent(value), cy: 24, r: 6 }),
    ran && svg('text.score-text', { x: percent(value), y: 10, 'text-anchor': value < 0.08 ? 'start' : value > 0.92 ? 'end' : 'middle' }, score(value)));
}

/** A number from 0 to 1 as a bar. */
export const smallBar = (value) => svg('svg.small-bar', { 'aria-hidden': 'true', focusable: 'false' },
  svg('rect', { width: '100%', height: 6, rx: 3 }), svg('rect.fill', { width: percent(value), height: 6, rx: 3 }));

/** Both gates small, for a button. @param {{score: number, threshold: number}[]} gates */
export function gateGlyph(gates) {
  const row = (gate, y) => {
    const x = (v) => 2 + 36 * Math.min(1, Math.max(0, v));
    const asks = gate && gate.score >= gate.threshold;
    return [
      svg('line.glyph-line', { x1: 2, x2: 38, y1: y, y2: y }),
      gate && svg('line.glyph-mark', { x1: x(gate.threshold), x2: x(gate.threshold), y1: y - 3, y2: y + 3 }),
      gate && svg(asks ? 'circle.glyph-dot.asks' : 'circle.glyph-dot', { cx: x(gate.score), cy: y, r: 2.6 }),
    ];
  };
  return svg('svg.glyph', { viewBox: '0 0 40 16', 'aria-hidden': 'true', focusable: 'false' },
    row(gates[0], 4), row(gates[1], 12));
}

const STAGES = {
  claim: 'Taking its turn', fold: 'Reading the reply', 'gate pre': 'Gate 1', retrieve: 'Search',
  'gate post': 'Gate 2', generate: 'Writing', commit: 'Saving',
};

const ms = (ns) => ns / 1e6;

/** 0.004 s → "4 ms", 1.2 s → "1.2 s" */
export function duration(ns) {
  const t = ms(ns);
  if (t < 1) return 'under 1 ms';
  return t < 1000 ? `${Math.round(t)} ms` : `${(t / 1000).toFixed(1)} s`;
}

/** Where the time went, as one bar and its legend. @param {{name: string, elapsed_ns: number}[]} stages */
export function timePicture(stages) {
  const total = stages.reduce((sum, s) => sum + s.elapsed_ns, 0) || 1;
  let at = 0;
  const parts = stages.map((s, i) => {
    const part = svg(`rect.stage.stage-${i % 6}`, { x: percent(at / total), y: 0, width: percent(s.elapsed_ns / total), height: 12 });
    at += s.elapsed_ns;
    return part;
  });
  return h('.times', null,
    svg('svg.time-bar', { 'aria-hidden': 'true', focusable: 'false' }, parts),
    h('ul.legend', null, stages.map((s, i) => h('li', null,
      svg('svg.key', { viewBox: '0 0 10 10', 'aria-hidden': 'true' }, svg(`rect.stage.stage-${i % 6}`, { width: 10, height: 10, rx: 3 })),
      h('span', null, STAGES[s.name] || s.name), h('span.figure', null, duration(s.elapsed_ns))))),
    h('p.dim', null, `${duration(total)} in all. Stages that run at the same time are counted each.`));
}
