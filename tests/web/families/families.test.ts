// Every family's tiny model in the plain module, beside what llama.cpp says (tests/families); the relaxed module does
// the same in tests/browser/families.test.ts.
import { afterAll, describe, expect, it } from 'vitest';
import {
  agreement,
  cacheTypes,
  familyNames,
  fedTokens,
  goldenOf,
  maxLogDifference,
} from '../../families/agreement.js';
import { makeFamily } from '../../families/make_family.mjs';
import { headlight } from '../built_package.js';

const { Engine } = headlight;

describe.each(familyNames)('%s', (name) => {
  describe.each(cacheTypes)('%s cache', (cache) => {
    const loaded = Engine.load(new Uint8Array(makeFamily(name)), {
      module: 'simd',
      threads: 1,
      kvCache: { k: cache, v: cache },
    });
    loaded.catch(() => {}); // reported by the tests, which await it
    afterAll(async () => (await loaded.catch(() => undefined))?.dispose());

    it.each(goldenOf(name, cache))(
      'gives llama.cpp’s probabilities after $n tokens',
      async (golden) => {
        const engine = await loaded;
        for (const [i, tokens] of fedTokens(name, golden.n).entries()) {
          const { logits } = await engine.forward(tokens);
          const found = agreement(logits, golden.logProbabilities[i] ?? []);
          expect(found.sameTop).toBe(true);
          expect(found.maxDifference).toBeLessThan(maxLogDifference(name, cache));
        }
      },
    );

    it('shows rows of weights that sum to 1, less what a learned sink takes', async () => {
      const engine = await loaded;
      const [, , long = []] = goldenOf(name, cache).flatMap(({ n }) =>
        fedTokens(name, n).slice(-1),
      );
      const plain = await engine.forward(long);
      const { logits, capture } = await engine.forward(long, { capture: { rows: 'all' } });
      expect(logits).toEqual(plain.logits);
      expect(capture?.layers).toHaveLength(engine.info.model.layers.length);
      let worst = 0;
      for (const { attention, sinkMass } of capture?.layers ?? []) {
        const nKv = long.length;
        for (const [row, sink] of sinkMass.data.entries()) {
          const weights = attention.data.subarray(row * nKv, (row + 1) * nKv);
          worst = Math.max(worst, Math.abs(weights.reduce((a, b) => a + b, sink) - 1));
        }
      }
      expect(worst).toBeLessThan(2e-6);
    });
  });
});
