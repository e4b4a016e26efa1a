// The lab's sections on the loaded model, without a browser: the edit in the address, before and after, stable ranks, the eight
// phases, whole random models, and the toy of a fixed replacement over 20 seeds by the package's kernels.
import { describe, expect, test } from 'vitest';
import {
  describe as describeEdit,
  isNothing,
  modelEdit,
  NOTHING,
  readState,
  sessionKeeps,
  writeState,
} from '../../../web/pages/lab/change/edit_state.js';
import {
  figureRows,
  type Measured,
  percent,
  verdict,
} from '../../../web/pages/lab/change/figures.js';
import { overSeeds, runToy, toySeeds } from '../../../web/pages/lab/change/toy.js';
import { UrlState } from '../../../web/pages/lab/url_state.js';
import {
  meanShare,
  rankSentence,
  stableRank,
} from '../../../web/pages/lab/weights/rank_findings.js';
import { lab } from '../lab/started_lab.js';

describe('the edit in the address', () => {
  const roundTrip = (search: string) => {
    let written = '';
    const state = readState(new UrlState(search, () => {}));
    const url = new UrlState('', (text) => {
      written = text;
    });
    writeState(state, url);
    url.flush();
    return { state, written };
  };

  test('every control is read and written; what is at its default is left out', () => {
    const search =
      '?prune=3.5,4.1&fix=2.0&ekv=1&eqk=16&ev=24&ek=window&ew=64&es=2&eb=20&ep=1&ec=int8';
    const { state, written } = roundTrip(search);
    expect(new Set(written.slice(1).split('&'))).toEqual(new Set(search.slice(1).split('&')));
    expect(modelEdit(state)).toEqual({
      prune: [
        { layer: 3, head: 5 },
        { layer: 4, head: 1 },
      ],
      fix: [{ layer: 2, head: 0 }],
      ...{ kvHeads: 1, dQk: 16, samePairs: true, dV: 24, window: 64, sinks: 2 },
    });
    expect(describeEdit(state)).toBe(
      'pruned 3.5, 4.1; fixed 2.0; 1 KV head; d_qk 16; d_v 24; window 64, 2 sinks, by mask; int8 cache',
    );
    expect(roundTrip('').written).toBe('');
    expect(isNothing(readState(new UrlState('', () => {})))).toBe(true);
  });

  test.each([
    ['?es=0&ek=sinks', { policy: 'sinks', sinks: 0, window: 48 }, 'keeps 0 first + 48 last keys'],
    ['?eb=20&ek=h2o', { policy: 'h2o', budget: 20 }, 'H2O, 20 keys'],
    ['?ek=snapkv', { policy: 'snapkv', budget: 48 }, 'SnapKV, 48 keys'],
  ])('%s is a policy of the session, not a change of the model', (search, eviction, name) => {
    const { state, written } = roundTrip(search);
    expect(written).toBe(search);
    expect(modelEdit(state)).toEqual({});
    expect(sessionKeeps(state).eviction).toEqual(eviction);
    expect(isNothing(state)).toBe(false);
    expect(describeEdit(state)).toBe(name);
  });

  test('nonsense in the address is left out', () => {
    const { state } = roundTrip('?prune=x,1.2.3,-1.0,2.7&eqk=abc&ec=f64&ek=none&ew=-3&es=99');
    expect(sessionKeeps(state)).toEqual({ kvCache: { k: 'f32', v: 'f32' } });
    expect(state.sinks).toBe(32);
    expect(modelEdit(state)).toEqual({ prune: [{ layer: 2, head: 7 }] });
    expect(describeEdit(NOTHING)).toBe('as loaded');
  });
});

describe('before and after', () => {
  const measured = (loss: number, right: number, bytes: number, label: string): Measured => ({
    label,
    evaluation: {
      ...{ perplexity: Math.exp(loss), loss, lossError: 0.06, countedTokens: 1000 },
      ...{ firstChoiceShare: 0.9, answersOnly: true, weightsBytes: bytes },
      weightsIdleBytes: 0,
      recall: { right, asked: 24, answers: [] },
    },
    speed: {
      ...{ tokensPerSecond: 1000, lowest: 900, highest: 1100, kvBytesPerToken: 2688 },
      kvCacheBytes: 512 * 2688,
      ...{ prefillTokensPerSecond: 4000, attentionMs: 0.1 },
    },
    text: '',
  });
  const before = measured(0.3, 20, 3e6, 'as loaded');
  const after = measured(0.36, 17, 2.9e6, 'd_qk 16');

  test('each figure has its change, and whether less is better', () => {
    const rows = figureRows(before, after);
    expect(rows.map(({ name, change }) => `${name} ${percent(change)}`)).toEqual([
      'Perplexity of the answers +6.18 %',
      'Loss, nats a token +20.0 %',
      'First choice right 0 %',
      'Facts recalled −15.0 %',
      'Tokens a second 0 %',
      'Weights that are read −3.33 %',
      'Cache, one token 0 %',
      'Cache, whole context 0 %',
    ]);
    expect(rows.filter(({ lessIsBetter }) => lessIsBetter)).toHaveLength(5);
  });

  test('one sentence says cost and saving', () => {
    expect(verdict(before, after)).toBe(
      'd_qk 16: costs 0.060 nats a token (+20.0 %) and 3 of 20 recalled facts and saves 97.66 KiB of weights.',
    );
    expect(verdict(before, measured(0.301, 20, 3e6, 'x'))).toBe('x: costs next to nothing.');
    expect(verdict(before, measured(0.25, 20, 3e6, 'x'))).toBe(
      'x: made the loss smaller on this text.',
    );
  });
});

describe('stable rank', () => {
  test('of the identity it is n, of a rank-1 matrix 1', () => {
    expect(stableRank([1, 1, 1, 1])).toBe(4);
    expect(stableRank([7, 0, 0])).toBe(1);
    expect(stableRank([2, 1])).toBe(1.25);
    expect(stableRank([0, 0])).toBe(0);
  });

  test('the sentence says whether the claim holds for the model', () => {
    const layer = (routing: number, content: number) => ({
      layer: 0,
      ranks: {
        ...{ q: { stable: routing, full: 100 }, k: { stable: routing, full: 100 } },
        ...{ v: { stable: content, full: 100 }, o: { stable: content, full: 100 } },
      },
    });
    expect(meanShare([layer(10, 20), layer(20, 40)], ['q', 'k'])).toBeCloseTo(0.15);
    expect(rankSentence([layer(10, 20), layer(30, 40)])).toBe(
      'Routing (W_Q, W_K) uses 20 % of its directions, content (W_V, W_O) 30 %, by stable rank. The article’s claim holds here, in 2 of 2 layers.',
    );
    expect(rankSentence([layer(40, 20), layer(30, 40)])).toContain('does not hold here');
    expect(rankSentence([layer(50, 20), layer(30, 40)])).toContain('in 1 of 2 layers only');
  });
});

describe('the toy of a fixed replacement, by the kernels', () => {
  test('previous-token head: mean spread 0.032, mean error 0.0233 over 20 seeds', async () => {
    const results = [];
    for (let seed = 0; seed < toySeeds; seed++)
      results.push(await runToy((options) => lab.weights(options), 'previous', seed));
    const spread = overSeeds(results.map((one) => one.spread));
    const error = overSeeds(results.map((one) => one.error));
    expect(Math.abs(spread.mean - 0.032)).toBeLessThan(0.003);
    expect(Math.abs(error.mean - 0.0233)).toBeLessThan(0.002);
    // The article prints [1], [0.98 0.02], [0 0.98 0.02].
    const [first = [], second = [], third = []] = results[0]?.mean ?? [];
    expect(first.map((weight) => weight.toFixed(2))).toEqual([
      '1.00',
      ...Array.from({ length: 5 }, () => '0.00'),
    ]);
    expect(second.slice(0, 2).map((weight) => weight.toFixed(2))).toEqual(['0.98', '0.02']);
    expect(third[1]?.toFixed(2)).toBe('0.98');
    expect(Math.abs((third[2] ?? 0) - 0.0155)).toBeLessThan(0.002);
  });

  test('content-based head: about 0.37 and 0.61, so that the average is no stand-in', async () => {
    const results = [];
    for (let seed = 0; seed < 4; seed++)
      results.push(await runToy((options) => lab.weights(options), 'content', seed));
    const spread = overSeeds(results.map((one) => one.spread));
    const error = overSeeds(results.map((one) => one.error));
    expect(Math.abs(spread.mean - 0.365)).toBeLessThan(0.03);
    expect(Math.abs(error.mean - 0.62)).toBeLessThan(0.05);
  });
});
