// Seeded damage to everything that crosses into the module as a JavaScript value: fields that are missing, of another type,
// out of range, arrays of another length. Each call gives a value or a typed error as data; none throws or traps.
// HEADLIGHT_FUZZ_RUNS: how often.
import { readFileSync, rmSync } from 'node:fs';
import { beforeAll, expect, it } from 'vitest';
import type createHeadlight from '../../../wasm/headlight.js';
import type {
  GenerateOptionsWire,
  HeadlightModule,
  Model,
  ModelEditWire,
  Result,
  Runtime,
  Session,
  SessionOptionsWire,
} from '../../../wasm/headlight.js';
import { hostileRuns, type Pick, pickOf } from '../hostile_runs.js';
import { randomModel, SMALL } from '../runtime/random_model.js';

const RUNS = 3000;
const glueUrl = new URL('../../../web/runtime/dist/wasm/headlight-simd.node.mjs', import.meta.url);

type Fields = Record<string, unknown>;

const ATTEND_HEADS = 4;
const SOUND = {
  session: {
    ...{ nCtx: 32, kvCacheK: 'f32', kvCacheV: 'int8', activations: 'int8' },
    ...{ eviction: 'none', evictionSinks: 4, evictionWindow: 8, evictionBudget: 16 },
  },
  capture: {
    ...{ what: 'weights', layers: Uint32Array.of(1), allHeads: false, heads: Uint32Array.of(0) },
    ...{ headOutputs: true, residualNorms: true, logitLens: Uint32Array.of(0) },
    ...{ rowsOf: 'listed', rows: Uint32Array.of(1) },
  },
  generate: {
    ...{ temperature: 0.8, topK: 40, topP: 0.9, minP: 0, repetitionPenalty: 1.1 },
    ...{ frequencyPenalty: 0, presencePenalty: 0, penaltyLastN: 64, seedLow: 1, seedHigh: 0 },
    ...{ logitBiasIds: Uint32Array.of(5), logitBiasValues: Float32Array.of(1), nLogprobs: 2 },
    ...{ maxTokens: 2, stopTokens: Uint32Array.of(2), ignoreStopTokens: true },
    capture: null as object | null,
  },
  edit: {
    ...{ layers: Uint32Array.of(0), nKvHeads: 1, dQk: 16, dV: 16, window: 8, nSinks: 1 },
    keptPairs: Uint32Array.from({ length: 16 }, (_, i) => i % 8),
    pruned: Uint32Array.of(0, 1),
    fixed: Uint32Array.of(1, 0, 0, 1, 1, 1, 3, 2),
    tables: Float32Array.of(0.5, 0.5, 0.25),
  },
  attend: {
    ...{ nQHeads: ATTEND_HEADS, nKvHeads: 2, dQk: 8, dV: 6, nTokens: 3, nKv: 5, firstPosition: 2 },
    ...{ scale: 0, window: 4, softcap: 0, causal: true, windowSinks: 1, prefix: 0 },
    ...{
      alibiSlopes: new Float32Array(ATTEND_HEADS),
      sinkLogits: null,
      mask: new Float32Array(15),
    },
    ...{ nMaskHeads: 1, nMaskRows: 3, kvCacheK: 'int8', kvCacheV: 'f16', capture: 'weights' },
    kernel: 'auto',
  },
  trace: { layer: 1, kvCacheK: 'f32', kvCacheV: 'f16', lastOnly: false, budgetMs: 0 },
};

const NUMBERS = [0, 1, 2, 3, -1, 0.5, 7, 64, 65535, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53, 1e308];
const VALUES = [
  ...[undefined, null, true, false, '', 'int8', 'none', 'h2o', 'snapkv', 'all', 'tiled', '\ud800'],
  ...[NaN, Infinity, -Infinity, -0, 5n, [], [1, 2], {}, Symbol.iterator, () => 1],
  ...[new Uint8Array(3), new Float64Array(2), new ArrayBuffer(8), new DataView(new ArrayBuffer(8))],
];

function anyArray(pick: Pick): Uint32Array | Float32Array {
  const numbers = Array.from({ length: pick(9) }, () => pickOf(pick, NUMBERS));
  return pick(2) === 0 ? Uint32Array.from(numbers) : Float32Array.from(numbers);
}

function anyValue(pick: Pick): unknown {
  switch (pick(4)) {
    case 0:
      return pickOf(pick, VALUES);
    case 1:
      return anyArray(pick);
    default:
      return pickOf(pick, NUMBERS);
  }
}

/** A copy with up to three fields changed or taken away. */
function damaged<T extends object>(pick: Pick, sound: T): T {
  const copy: Fields = { ...(sound as Fields) };
  for (let n = pick(4); n > 0; n--) {
    const key = pickOf(pick, Object.keys(copy));
    if (pick(8) === 0) delete copy[key];
    else copy[key] = anyValue(pick);
  }
  return copy as T;
}

const someTokens = (pick: Pick): Uint32Array =>
  pick(8) === 0
    ? (anyValue(pick) as Uint32Array)
    : Uint32Array.from({ length: 1 + pick(12) }, () => (pick(30) === 0 ? 2 ** 31 : pick(256)));

/** The value; undefined for a typed error. */
function taken<T>(result: Result<T>): T | undefined {
  if (result.error === undefined) return result.value;
  const { code, message } = result.error;
  expect(message).not.toBe('');
  // A defect of Headlight itself.
  expect(code, message).not.toBe('Internal');
  return undefined;
}

let module: HeadlightModule;
let runtime: Runtime;
let model: Model;

beforeAll(async () => {
  const path = await randomModel('values', { ...SMALL, vocab: 256, ctx: 64 });
  const file = readFileSync(path);
  rmSync(path);
  const glue = (await import(glueUrl.href)) as { default: typeof createHeadlight };
  module = await glue.default();
  runtime = taken(module.createRuntime(1)) as Runtime;
  const loader = taken(runtime.createLoader());
  if (loader === undefined) throw new Error('no loader');
  for (let at = 0; at < file.length; ) {
    const n = Math.min(loader.stageBytes(), file.length - at);
    module.HEAPU8.set(file.subarray(at, at + n), loader.stage());
    at += taken(loader.append(n))?.taken ?? n;
    if (loader.state() === 'planned') taken(loader.allocate());
  }
  model = taken(loader.finish()) as Model;
  loader.delete();
});

function each(name: string, work: (pick: Pick) => boolean): void {
  const wasmBytes = module.wasmBytes();
  const { runs, taken: nTaken } = hostileRuns(name, RUNS, work);
  const grownBytes = module.wasmBytes() - wasmBytes;
  console.info(
    `fuzz values, ${name}: ${runs} runs, ${nTaken} taken, ${runs - nTaken} typed errors, ${grownBytes} bytes grown`,
  );
}

function withSession(options: SessionOptionsWire, work: (session: Session) => boolean): boolean {
  const session = taken(model.createSession(options));
  if (session === undefined) return false;
  try {
    return work(session);
  } finally {
    session.delete();
  }
}

const soundSession = SOUND.session as SessionOptionsWire;

function run(session: Session, tokens: Uint32Array, options: GenerateOptionsWire): boolean {
  if (taken(session.begin(tokens, options)) === undefined) return false;
  for (let i = 0; i < 8; i++) {
    const step = taken(session.advance(1e9));
    if (step === undefined || step.done) return step !== undefined;
  }
  session.cancel();
  return true;
}

it('session options', () => {
  const right = SOUND.generate as GenerateOptionsWire;
  each('session options', (pick) =>
    withSession(damaged(pick, soundSession), (session) =>
      run(session, Uint32Array.of(5, 6, 7), right),
    ),
  );
});

it('options and tokens of a run', () => {
  each('run', (pick) =>
    withSession(soundSession, (session) => {
      const options = damaged(pick, SOUND.generate);
      if (pick(2) === 0) options.capture = damaged(pick, SOUND.capture);
      return run(session, someTokens(pick), options as GenerateOptionsWire);
    }),
  );
});

it('tokens and captures of a forward pass', () => {
  each('forward', (pick) =>
    withSession(soundSession, (session) => {
      const capture = pick(4) === 0 ? null : damaged(pick, SOUND.capture);
      const begun = session.beginForward(someTokens(pick), pick(2) === 0, capture as never);
      if (taken(begun) === undefined) return false;
      return taken(session.advanceForward(1e9)) !== undefined;
    }),
  );
});

it('edits of a model, and what runs on the copy', () => {
  each('edit', (pick) => {
    const edited = taken(model.edit(damaged(pick, SOUND.edit) as ModelEditWire));
    if (edited === undefined) return false;
    const session = taken(edited.createSession(soundSession));
    if (session !== undefined) {
      run(session, Uint32Array.of(5, 6, 7), SOUND.generate as GenerateOptionsWire);
      session.delete();
    }
    edited.delete();
    return true;
  });
});

it('the trace of a block', () => {
  each('trace', (pick) => {
    const options = damaged(pick, SOUND.trace);
    if (typeof options.budgetMs === 'number' && options.budgetMs > 1) options.budgetMs = 1;
    return taken(model.traceBlock(someTokens(pick), options as never)) !== undefined;
  });
});

it('saved bytes', () => {
  withSession(soundSession, (session) => {
    run(session, Uint32Array.of(5, 6, 7), SOUND.generate as GenerateOptionsWire);
    const saved = taken(session.save()) as Uint8Array;
    each('saved bytes', (pick) => {
      const bytes =
        pick(5) === 0
          ? (anyValue(pick) as Uint8Array)
          : saved.slice(0, pick(2) === 0 ? pick(saved.length) : saved.length);
      if (bytes instanceof Uint8Array && bytes.length > 0 && pick(2) === 0)
        bytes[pick(bytes.length)] = pick(256);
      return taken(session.restore(bytes)) !== undefined;
    });
    return true;
  });
});

it('an attention call', () => {
  const q = new Float32Array(3 * ATTEND_HEADS * 8).fill(0.5);
  const k = new Float32Array(5 * 2 * 8).fill(0.25);
  const v = new Float32Array(5 * 2 * 6).fill(2);
  each('attend', (pick) => {
    const spec = damaged(pick, SOUND.attend) as never;
    const rows = (sound: Float32Array) => (pick(10) === 0 ? (anyValue(pick) as never) : sound);
    const result = taken(module.attend(runtime, spec, rows(q), rows(k), rows(v)));
    if (result === undefined) return false;
    // Weighted means of the values, or zeros where all keys are masked; masks may add NaN.
    for (const x of result.out) expect(Number.isNaN(x) || (x >= 0 && x <= 2.02)).toBe(true);
    return true;
  });
});
