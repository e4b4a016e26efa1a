// A line of an Attention test file, in the form of ONNX's node tests, as calls of attend(): one a batch entry. It decides
// what such a case means; the kernels compute.
import type { LabAttendOptions } from 'headlight-wasm/lab';

export interface TensorJson {
  type: string;
  shape: number[];
  /** Infinities and NaN are strings: "inf", "-inf", "nan". */
  data: (number | string)[];
}
export interface CaseJson {
  name: string;
  op?: string;
  attrs: Record<string, number>;
  inputs: Record<string, TensorJson>;
  outputs: Record<string, TensorJson>;
}

/** Of one batch entry. */
export interface AttentionCall {
  options: LabAttendOptions;
  /** [nTokens, nQHeads, dV] */
  expected: Float32Array;
  /** [nQHeads, nTokens, nKv]; undefined: the case has none. */
  expectedScores: Float32Array | undefined;
}

/** The case cannot be run, and why. */
export class Skipped extends Error {}

/** What is there is no case, and why. */
export class BadCase extends Error {}

const KNOWN_ATTRS = [
  'is_causal',
  'kv_num_heads',
  'q_num_heads',
  'qk_matmul_output_mode',
  'scale',
  'softcap',
];
const KNOWN_INPUTS = ['Q', 'K', 'V', 'attn_mask', 'past_key', 'past_value', 'nonpad_kv_seqlen'];
/** By qk_matmul_output_mode. */
const STAGES = ['scaled', 'softcapped', 'scores', 'weights'] as const;

/** Of scores: what a test file may ask for at once. */
const MAX_SCORES = 2 ** 26;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function checkTensor(name: string, tensor: unknown): void {
  if (!isObject(tensor) || typeof tensor.type !== 'string')
    throw new BadCase(`${name} is no tensor: {"type", "shape", "data"} are expected`);
  const { shape, data } = tensor;
  const isShape =
    Array.isArray(shape) && shape.length <= 4 && shape.every((n) => Number.isInteger(n) && n >= 1);
  if (!isShape) throw new BadCase(`the shape of ${name} must be up to 4 whole numbers above 0`);
  const n = (shape as number[]).reduce((product, size) => product * size, 1);
  const isData =
    Array.isArray(data) && data.every((x) => typeof x === 'number' || typeof x === 'string');
  if (!isData || data.length !== n)
    throw new BadCase(`the data of ${name} must be ${n} numbers, as its shape says`);
}

/** What JSON.parse gave, checked. Throws BadCase. */
export function checkedCase(test: unknown): CaseJson {
  if (!isObject(test) || typeof test.name !== 'string')
    throw new BadCase('{"name", "attrs", "inputs", "outputs"} are expected');
  const { attrs = {}, inputs, outputs } = test;
  if (!isObject(inputs) || !isObject(outputs) || !isObject(attrs))
    throw new BadCase('{"name", "attrs", "inputs", "outputs"} are expected');
  for (const [name, value] of Object.entries(attrs))
    if (typeof value !== 'number') throw new BadCase(`the attribute ${name} must be a number`);
  for (const [name, tensor] of [...Object.entries(inputs), ...Object.entries(outputs)])
    checkTensor(name, tensor);
  return { ...(test as unknown as CaseJson), attrs: attrs as Record<string, number> };
}

function numbers(tensor: TensorJson): Float32Array {
  return Float32Array.from(tensor.data, (value) => {
    if (typeof value === 'number') return value;
    return value === '-inf' || value === '-Infinity' ? Number.NEGATIVE_INFINITY : Number(value);
  });
}

/** [batch, tokens, heads, d], from that or from ONNX's [batch, heads, tokens, d] or [batch, tokens, heads * d]. */
class Rows {
  readonly nBatch: number;
  readonly nTokens: number;
  readonly nHeads: number;
  readonly d: number;
  readonly #data: Float32Array;

  constructor(name: string, tensor: TensorJson | undefined, nHeads: number) {
    if (tensor === undefined) throw new Skipped(`there is no ${name}`);
    const { shape } = tensor;
    const [a = 0, b = 0, c = 0, d = 0] = shape;
    if (shape.length !== 3 && shape.length !== 4)
      throw new Skipped(`${name} has ${shape.length} dimensions, 3 or 4 are expected`);
    const is4d = shape.length === 4;
    this.nBatch = a;
    this.nHeads = is4d ? b : nHeads;
    this.nTokens = is4d ? c : b;
    this.d = is4d ? d : c / nHeads;
    this.#data = numbers(tensor);
    if (is4d) this.#data = this.#headsInside();
  }

  #headsInside(): Float32Array {
    const { nBatch, nTokens, nHeads, d } = this;
    const out = new Float32Array(this.#data.length);
    for (let i = 0; i < nBatch * nHeads * nTokens; i++) {
      const token = i % nTokens;
      const head = Math.floor(i / nTokens) % nHeads;
      const batch = Math.floor(i / nTokens / nHeads);
      const to = ((batch * nTokens + token) * nHeads + head) * d;
      out.set(this.#data.subarray(i * d, (i + 1) * d), to);
    }
    return out;
  }

  /** The first n rows of one batch entry. */
  of(batch: number, n = this.nTokens): Float32Array {
    const width = this.nHeads * this.d;
    const first = batch * this.nTokens * width;
    return this.#data.subarray(first, first + n * width);
  }
}

function joined(a: Float32Array, b: Float32Array): Float32Array {
  const out = new Float32Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}

/** attn_mask [batch or 1, heads or 1, tokens, keys], leading ones left out, of one batch entry: [nQHeads, nTokens, nKv]. */
function maskOf(
  tensor: TensorJson,
  batch: number,
  nQHeads: number,
  nTokens: number,
  nKv: number,
): Float32Array {
  const shape = [...Array<number>(4 - tensor.shape.length).fill(1), ...tensor.shape];
  const [nBatch = 1, nHeads = 1, nRows = 1, nKeys = 1] = shape;
  const data = numbers(tensor);
  const out = new Float32Array(nQHeads * nTokens * nKv).fill(Number.NEGATIVE_INFINITY);
  for (let i = 0; i < out.length; i++) {
    const key = i % nKv;
    if (key >= nKeys) continue; // keys beyond the mask are not admitted
    const row = Math.floor(i / nKv) % nTokens;
    const head = Math.floor(i / nKv / nTokens);
    const at = (nBatch === 1 ? 0 : batch) * nHeads + (nHeads === 1 ? 0 : head);
    const value = data[(at * nRows + (nRows === 1 ? 0 : row)) * nKeys + key] ?? 0;
    out[i] = tensor.type === 'bool' ? (value === 0 ? Number.NEGATIVE_INFINITY : 0) : value;
  }
  return out;
}

function checkKnown(test: CaseJson): void {
  if (test.op !== undefined && test.op !== 'Attention')
    throw new Skipped(`the operator is ${test.op}, not Attention`);
  for (const [kind, given, known] of [
    ['attribute', test.attrs, KNOWN_ATTRS],
    ['input', test.inputs, KNOWN_INPUTS],
  ] as const) {
    const foreign = Object.keys(given).find((name) => !known.includes(name));
    if (foreign !== undefined) throw new Skipped(`the ${kind} ${foreign} is not known`);
  }
}

/** Live rows end where the query rows do. Without a causal mask it does not matter where these begin. */
function positionBeforeEnd(nKv: number, nTokens: number, isCausal: boolean): number {
  if (isCausal && nTokens > nKv)
    throw new Skipped(`there are ${nTokens} causal queries and only ${nKv} live keys`);
  return Math.max(0, nKv - nTokens);
}

/** Throws Skipped. */
export function callsOf(test: CaseJson, kernel: LabAttendOptions['kernel']): AttentionCall[] {
  checkKnown(test);
  const { attrs, inputs, outputs } = test;
  const { q_num_heads: nQ = 1, kv_num_heads: nKvHeads = 1 } = attrs;
  const q = new Rows('Q', inputs.Q, nQ);
  const k = new Rows('K', inputs.K, nKvHeads);
  const v = new Rows('V', inputs.V, nKvHeads);
  const y = new Rows('Y', outputs.Y, nQ);
  const past =
    inputs.past_key === undefined
      ? undefined
      : {
          k: new Rows('past_key', inputs.past_key, nKvHeads),
          v: new Rows('past_value', inputs.past_value, nKvHeads),
        };
  const scores = outputs.qk_matmul_output;
  const isF16 = inputs.Q?.type === 'f16';
  const isCausal = attrs.is_causal === 1;
  const what = STAGES[attrs.qk_matmul_output_mode ?? 0];
  const calls: AttentionCall[] = [];
  for (let batch = 0; batch < q.nBatch; batch++) {
    const nPast = past?.k.nTokens ?? 0;
    const nLive = inputs.nonpad_kv_seqlen?.data[batch];
    const nKv = nLive === undefined ? nPast + k.nTokens : Number(nLive);
    if (!Number.isInteger(nKv) || nKv < nPast || nKv > nPast + k.nTokens)
      throw new Skipped(`nonpad_kv_seqlen is ${nKv}, of ${nPast + k.nTokens} keys`);
    const own = { k: k.of(batch, nKv - nPast), v: v.of(batch, nKv - nPast) };
    const mask = inputs.attn_mask;
    const nScores = q.nHeads * q.nTokens * nKv;
    if (nScores > MAX_SCORES) throw new Skipped(`it has ${nScores} scores, over ${MAX_SCORES}`);
    calls.push({
      options: {
        nQHeads: q.nHeads,
        nKvHeads: k.nHeads,
        dQk: q.d,
        dV: v.d,
        q: q.of(batch),
        k: past === undefined ? own.k : joined(past.k.of(batch), own.k),
        v: past === undefined ? own.v : joined(past.v.of(batch), own.v),
        firstPosition: nLive === undefined ? nPast : positionBeforeEnd(nKv, q.nTokens, isCausal),
        causal: isCausal,
        ...(attrs.scale === undefined ? {} : { scale: attrs.scale }),
        ...(attrs.softcap === undefined ? {} : { softcap: attrs.softcap }),
        ...(mask === undefined ? {} : { mask: maskOf(mask, batch, q.nHeads, q.nTokens, nKv) }),
        ...(scores === undefined || what === undefined ? {} : { capture: what }),
        ...(kernel === undefined ? {} : { kernel }),
        ...(isF16 ? { kvCache: { k: 'f16', v: 'f16' } } : {}),
      },
      expected: y.of(batch),
      expectedScores:
        scores === undefined
          ? undefined
          : numbers(scores).subarray(batch * nScores, (batch + 1) * nScores),
    });
  }
  return calls;
}
