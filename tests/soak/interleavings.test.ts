// Random interleavings of generate, abort, fork, truncate, save and restore over several sessions of one engine, calls not
// waited for: what each call gives is what it gives alone, and what an aborted one gives is a beginning of that.
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type * as Headlight from '../../web/runtime/src/index.js';
import type { GenerateOptions } from '../../web/runtime/src/types.js';
import { headlight } from '../web/built_package.js';
import { randomSource } from '../web/text/vocabularies.js';
import { isLong, repeat, report, SEED, timeFor } from './plan.js';

const model = fileURLToPath(new URL('../../examples/models/default-q8_0.gguf', import.meta.url));
const { Engine } = headlight;
type Engine = InstanceType<typeof Engine>;

const SHARE = 0.09;
const LEAST = isLong ? 200 : 25;
const OPERATIONS = 14;
const VOCABULARY = 2048;

let alone: Engine;
const engines: Engine[] = [];
beforeAll(async () => {
  alone = await Engine.load(model, { threads: 1, module: 'simd' });
  for (const threads of [1, 2]) engines.push(await Engine.load(model, { threads, module: 'simd' }));
});
afterAll(async () => {
  for (const engine of [alone, ...engines]) await engine?.dispose();
});

const known = new Map<string, number[]>();
async function tokensAlone(prompt: number[], options: GenerateOptions): Promise<number[]> {
  const key = JSON.stringify([prompt, options]);
  const found = known.get(key);
  if (found !== undefined) return found;
  const session = alone.session();
  const { tokens } = await session.complete(prompt, options).result();
  await session.close();
  known.set(key, tokens);
  return tokens;
}

interface Counts {
  calls: number;
  aborts: number;
  lost: number;
}

class Interleaving {
  readonly #engine: Engine;
  readonly #pick: (n: number) => number;
  readonly #counts: Counts;
  readonly #checks: Promise<void>[] = [];
  readonly #bases: number[][];
  #sessions: Headlight.EngineSession[];

  constructor(engine: Engine, pick: (n: number) => number, counts: Counts) {
    this.#engine = engine;
    this.#pick = pick;
    this.#counts = counts;
    this.#sessions = [engine.session(), engine.session()];
    this.#bases = [1, 2, 3].map(() => Array.from({ length: 60 }, () => 3 + pick(VOCABULARY - 3)));
  }

  async run(): Promise<void> {
    for (let i = 0; i < OPERATIONS; i++) {
      await this.#operation(this.#pick(10));
      if (this.#pick(3) === 0) await new Promise((resolve) => setTimeout(resolve, this.#pick(15)));
    }
    await Promise.all(this.#checks);
    await Promise.all(this.#sessions.map((session) => session.close()));
  }

  async #operation(kind: number): Promise<void> {
    const session = this.#sessions[this.#pick(this.#sessions.length)] as Headlight.EngineSession;
    if (kind < 5) this.#checks.push(this.#generate(session, false));
    else if (kind < 7) this.#checks.push(this.#generate(session, true));
    else if (kind === 7 && this.#sessions.length < 5) this.#sessions.push(await session.fork());
    else if (kind === 8 && this.#sessions.length < 5) {
      this.#sessions.push(await this.#engine.restore(await session.save()));
    } else if (kind === 9) {
      const { contextTokens } = await session.stats();
      // Calls before it may still make it shorter.
      await session.truncate(this.#pick(contextTokens + 1)).catch(() => {});
    }
  }

  async #generate(session: Headlight.EngineSession, isStopped: boolean): Promise<void> {
    const pick = this.#pick;
    const base = this.#bases[pick(this.#bases.length)] as number[];
    const tail = Array.from({ length: pick(3) }, () => 3 + pick(VOCABULARY - 3));
    const prompt = [...base.slice(0, 1 + pick(base.length)), ...tail];
    const options = { temperature: pick(2), seed: pick(3), maxTokens: 1 + pick(12) };
    const run = session.complete(prompt, { ...options, ignoreEndOfGeneration: true });
    this.#counts.calls += 1;
    if (isStopped) {
      this.#counts.aborts += 1;
      setTimeout(() => run.abort(), pick(25));
    }
    const { tokens, finishReason } = await run.result();
    const whole = await tokensAlone(prompt, { ...options, ignoreEndOfGeneration: true });
    const expected = finishReason === 'aborted' ? whole.slice(0, tokens.length) : whole;
    const isRight = JSON.stringify(tokens) === JSON.stringify(expected);
    if (!isRight || (finishReason === 'aborted' && !isStopped)) this.#counts.lost += 1;
  }
}

it(`random interleavings give what each call gives alone`, {
  timeout: timeFor(SHARE).timeout,
}, async () => {
  const counts: Counts = { calls: 0, aborts: 0, lost: 0 };
  const runs = await repeat(SHARE, LEAST, async (i) => {
    const engine = engines[i % engines.length] as Engine;
    await new Interleaving(engine, randomSource(SEED * 10_007 + i), counts).run();
  });
  report('interleavings', { runs, faults: counts.aborts, lost: counts.lost, calls: counts.calls });
  expect(counts.lost).toBe(0);
});
