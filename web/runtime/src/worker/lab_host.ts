// The lab's requests: edited copies of the loaded model, and what they can and cost. What computes long does it in pieces,
// between which other requests and a cancel come through.
import type {
  Calibration,
  GenerateOptionsWire,
  Model,
  Session,
} from '../../../../wasm/headlight.js';
import { AbortedError, BadOptionError } from '../errors.js';
import type {
  LabCall,
  LabOps,
  LabProgress,
  LabSession,
  VariantSpeed,
} from '../lab/lab_protocol.js';
import type {
  HeadCalibration,
  LayerCalibration,
  ModelCalibration,
} from '../lab/model_calibration.js';
import { computeForward } from './forward.js';
import { ADVANCE_BUDGET_MS } from './generation.js';
import { inTurns } from './in_turns.js';
import { encodeChat, lossTokens } from './lab_text.js';
import type { ModelHost } from './model_host.js';
import { unwrap } from './unwrap.js';

export interface LabContext {
  signal: AbortSignal;
  nextTurn(): Promise<void>;
  onProgress(progress: LabProgress): void;
}

const ORIGINAL = 0;

export class LabHost {
  readonly #host: ModelHost;
  readonly #variants = new Map<number, Model>();

  constructor(host: ModelHost) {
    this.#host = host;
  }

  async call(call: LabCall, context: LabContext): Promise<LabOps[LabCall['op']]['reply']> {
    switch (call.op) {
      case 'edit': {
        const edited = unwrap(this.#host.model.edit(call.edit));
        this.#variants.set(call.variant, edited);
        const { layers, weightsBytes } = edited.info();
        return { layers, weightsBytes };
      }
      case 'drop':
        this.#variants.get(call.variant)?.delete();
        this.#variants.delete(call.variant);
        return null;
      case 'openSession':
        this.#host.adopt(call.session, this.#session(call.variant, call));
        return null;
      case 'calibrate':
        return this.#calibrate(call, context);
      case 'losses':
        return this.#losses(call, context);
      case 'recall':
        return this.#recall(call, context);
      case 'speed':
        return this.#speed(call, context);
      case 'logits': {
        const session = this.#session(call.variant, call);
        try {
          const wanted = { tokens: call.tokens, allPositions: false, capture: null };
          const { logits } = await computeForward(session, wanted, context);
          return { logits };
        } finally {
          session.delete();
        }
      }
      case 'tensor': {
        const model = this.#model(call.variant);
        return unwrap(model.attentionTensor(call.layer, call.role, call.encoded));
      }
      case 'singularValues': {
        const model = this.#model(call.variant);
        return { values: unwrap(model.singularValues(call.layer, call.role)) };
      }
      case 'trace':
        return unwrap(this.#model(call.variant).traceBlock(call.tokens, call));
    }
  }

  #model(variant: number): Model {
    if (variant === ORIGINAL) return this.#host.model;
    const model = this.#variants.get(variant);
    if (model === undefined)
      throw new BadOptionError('This edited model was dropped. Make it again with edit().');
    return model;
  }

  #session(variant: number, { kvCacheK, kvCacheV, eviction }: LabSession): Session {
    const options = { ...this.#host.options, kvCacheK, kvCacheV, ...eviction };
    return unwrap(this.#model(variant).createSession(options));
  }

  /** Runs `step` for each item with a session that is gone afterwards. */
  async #forEach<T>(
    {
      variant,
      what,
      items,
    }: { variant: { variant: number } & LabSession; what: string; items: readonly T[] },
    context: LabContext,
    step: (session: Session, item: T) => Promise<void>,
  ): Promise<void> {
    const session = this.#session(variant.variant, variant);
    try {
      for (const [i, item] of items.entries()) {
        await breathe(context, { done: i / items.length, what });
        await step(session, item);
      }
    } finally {
      session.delete();
    }
  }

  async #calibrate(
    call: LabOps['calibrate']['body'],
    context: LabContext,
  ): Promise<ModelCalibration> {
    const { segmentTokens, maxSegments } = call;
    const model = this.#model(call.variant);
    const ids = call.dialogues.flatMap((messages) => [...encodeChat(this.#host.text, messages)]);
    const n = Math.min(maxSegments, Math.floor(ids.length / segmentTokens));
    const segments = Array.from({ length: n }, (_, i) =>
      Uint32Array.from(ids.slice(i * segmentTokens, (i + 1) * segmentTokens)),
    );
    if (n < 2)
      throw new BadOptionError(
        `calibrate: the text has ${ids.length} tokens, two segments are needed`,
      );
    const calibration = unwrap(model.createCalibration(segmentTokens));
    try {
      for (const [i, tokens] of [...segments, ...segments].entries()) {
        await breathe(context, { done: i / (2 * n), what: 'calibrating' });
        unwrap(calibration.segment(tokens, i >= n));
        await inTurns(() => unwrap(calibration.advance(ADVANCE_BUDGET_MS)) || null, context);
      }
      const layers = model
        .info()
        .layers.map((_, layer) => layerOf(calibration, layer, segmentTokens));
      return { layers, nSegments: n, segmentTokens };
    } finally {
      calibration.delete();
    }
  }

  async #losses(call: LabOps['losses']['body'], context: LabContext) {
    const reply = {
      ...{ lossSum: 0, nTokens: 0, nLikeliest: 0 },
      ...{ perDialogue: [] as number[], answersOnly: this.#host.text.hasChatTemplate },
    };
    const items = call.dialogues;
    await this.#forEach(
      { variant: call, what: 'perplexity', items },
      context,
      async (session, dialogue) => {
        const { tokens, counted } = lossTokens(this.#host.text, dialogue, this.#host.nCtx);
        unwrap(session.beginScores(tokens));
        const scored = () => unwrap(session.advanceScores(ADVANCE_BUDGET_MS));
        const { logProbabilities, likeliest } = await inTurns(scored, context);
        const losses = counted.map((i) => -(logProbabilities[i - 1] ?? 0));
        const sum = losses.reduce((a, b) => a + b, 0);
        reply.lossSum += sum;
        reply.nTokens += counted.length;
        reply.nLikeliest += counted.filter((i) => likeliest[i - 1] === tokens[i]).length;
        reply.perDialogue.push(sum / Math.max(1, counted.length));
      },
    );
    return reply;
  }

  async #recall(call: LabOps['recall']['body'], context: LabContext) {
    const { tokenizer, endOfGenerationIds } = this.#host.text;
    const options = greedy(call.maxTokens, Uint32Array.from(endOfGenerationIds), false);
    const answers: LabOps['recall']['reply']['answers'] = [];
    const items = call.questions;
    await this.#forEach(
      { variant: call, what: 'recall', items },
      context,
      async (session, asked) => {
        const prompt = encodeChat(this.#host.text, asked.messages, true);
        const ids = await generate(session, prompt, options, context);
        const answer = tokenizer.decode(Uint32Array.from(ids)).trim();
        const isRight = answer.toLowerCase().includes(asked.expected.toLowerCase());
        const question = asked.messages.at(-1)?.content ?? '';
        answers.push({ question, expected: asked.expected, answer, isRight });
      },
    );
    return { answers };
  }

  async #speed(call: LabOps['speed']['body'], context: LabContext) {
    const { variants, rounds, nPrompt, nTokens } = call;
    const sessions = variants.map((variant) => this.#session(variant.variant, variant));
    const vocabSize = this.#host.model.info().vocabSize;
    const prompt = Uint32Array.from({ length: nPrompt }, (_, i) => (i * 7919) % vocabSize);
    const options = greedy(nTokens, new Uint32Array(), true);
    const speeds = sessions.map(
      (session): VariantSpeed => ({
        ...{ msPerToken: [], attentionMsPerToken: [], prefillMsPerToken: [] },
        kvBytesPerToken: session.plan().kvBytesPerToken,
        kvCacheBytes: session.plan().kvCacheBytes,
      }),
    );
    try {
      for (let round = 0; round < rounds; round++) {
        for (const [i, session] of sessions.entries()) {
          const done = (round + i / sessions.length) / rounds;
          await breathe(context, { done, what: 'speed' });
          unwrap(session.truncate(0));
          await generate(session, prompt, options, context);
          const { decodeMs, decodeStages, nDecodeSteps, prefillMs } = session.stats();
          const n = Math.max(1, nDecodeSteps);
          speeds[i]?.msPerToken.push(decodeMs / n);
          speeds[i]?.attentionMsPerToken.push(decodeStages.attentionMs / n);
          speeds[i]?.prefillMsPerToken.push(prefillMs / nPrompt);
        }
      }
      return { variants: speeds };
    } finally {
      for (const session of sessions) session.delete();
    }
  }
}

/** Figures of a head in LayerCalibrationWire. */
const HEAD_NUMBERS = 8;

function layerOf(calibration: Calibration, layer: number, nTokens: number): LayerCalibration {
  const { byOffset, numbers, pairShares } = unwrap(calibration.layer(layer));
  const heads = Array.from(
    { length: numbers.length / HEAD_NUMBERS },
    (_, head): HeadCalibration => {
      const own = numbers.subarray(head * HEAD_NUMBERS, (head + 1) * HEAD_NUMBERS);
      const [firstWeight = 0, spread = 0, meanSpread = 0, likeliestOffset = 0] = own;
      const [shift = 0, mean = 0, first = 0, table = 0] = own.subarray(4);
      return {
        byOffset: byOffset.slice(head * nTokens, (head + 1) * nTokens),
        ...{ firstWeight, spread, meanSpread, likeliestOffset },
        outputErrors: { shift, mean, first, table },
      };
    },
  );
  return { heads, pairShares: Array.from(pairShares) };
}

async function breathe(context: LabContext, progress: LabProgress): Promise<void> {
  context.onProgress(progress);
  await context.nextTurn();
  if (context.signal.aborted) throw new AbortedError();
}

function greedy(
  maxTokens: number,
  stopTokens: Uint32Array,
  ignoreStopTokens: boolean,
): GenerateOptionsWire {
  return {
    ...{ temperature: 0, topK: 0, topP: 1, minP: 0, nLogprobs: 0, seedLow: 0, seedHigh: 0 },
    ...{ repetitionPenalty: 1, frequencyPenalty: 0, presencePenalty: 0, penaltyLastN: 0 },
    ...{ logitBiasIds: new Uint32Array(), logitBiasValues: new Float32Array() },
    ...{ maxTokens, stopTokens, ignoreStopTokens, capture: null },
  };
}

async function generate(
  session: Session,
  prompt: Uint32Array,
  options: GenerateOptionsWire,
  context: LabContext,
): Promise<number[]> {
  unwrap(session.begin(prompt, options));
  const ids: number[] = [];
  for (;;) {
    const step = unwrap(session.advance(ADVANCE_BUDGET_MS));
    ids.push(...step.tokens.map(({ id }) => id));
    if (step.done) return ids;
    if (context.signal.aborted) throw new AbortedError();
    // Each turn gives way; a report each would be too many.
    await context.nextTurn();
  }
}
