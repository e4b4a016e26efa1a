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
  });
});
