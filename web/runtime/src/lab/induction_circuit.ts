// The two-layer induction circuit as a model that was not trained but written down: layer 0 copies the previous token into
// each position, layer 1 looks for positions whose previous token is the present one and copies what stands there. So after
// A B C A B it says C, and where no token comes twice every position looks at itself. It is an ordinary GGUF file of the
// "llama" architecture with feed-forwards of zeros, and runs on the ordinary kernels.
//
// The residual stream has four parts: the token (one place each), the previous token, the output, and a constant 1:
//   [0, V) token | [V, 2V) previous token | [2V, 3V) output | 3V the constant
// Each part is written once with a 1, so that the length before layer 0 is sqrt(2), before layer 1 sqrt(3), before the head
// sqrt(4), and what the norms do is undone by a factor in the weights.
import { type GgufTensor, writeGguf } from './gguf_file.js';
import { ggufKeys } from './gguf_keys.js';

/** GGML's number of the type. */
const F32 = 0;
const LETTERS = Array.from({ length: 26 }, (_, i) => String.fromCharCode(65 + i));
/** "▁" is SentencePiece's space. Letters alone are there to be merged. */
const TOKENS = ['<unk>', '<s>', '</s>', '▁', ...LETTERS, ...LETTERS.map((letter) => `▁${letter}`)];
const [NORMAL, UNKNOWN, CONTROL] = [1, 2, 3];

const V = TOKENS.length;
const D_MODEL = Math.ceil((3 * V + 1) / 8) * 8;
const CONSTANT = 3 * V;
/** The first N_ROT elements of a query or key are rotated and know positions, the others compare tokens. */
const N_ROT = 8;
const D_QK = N_ROT + V;
const FREQ_BASE = 100;
const D_FF = 8;
const N_CTX = 128;
const EPS = 1e-6;

/** How far the favourite position of a head is ahead of the next best, in units of (1 - cos 1). */
const PREVIOUS_SHARPNESS = 40;
const SELF_SHARPNESS = 20;
/** More than the positions can say against it: at most 2 for each of the N_ROT / 2 pairs. */
const MATCH = N_ROT * SELF_SHARPNESS + 40;
const LOGIT = 10;

class Matrix {
  readonly values: Float32Array;
  readonly nRows: number;
  constructor(nRows: number, nCols: number) {
    this.nRows = nRows;
    this.values = new Float32Array(nRows * nCols);
  }
  set(row: number, col: number, value: number): void {
    this.values[row * (this.values.length / this.nRows) + col] = value;
  }
  named(name: string): GgufTensor {
    return f32Tensor(name, [this.values.length / this.nRows, this.nRows], this.values);
  }
}

function f32Tensor(name: string, dims: number[], values: Float32Array): GgufTensor {
  return { name, dims, type: F32, data: new Uint8Array(values.buffer) };
}

const ones = (name: string) => f32Tensor(name, [D_MODEL], new Float32Array(D_MODEL).fill(1));

/** What RMSNorm multiplies a vector with whose parts hold n ones. */
const normFactor = (n: number) => 1 / Math.sqrt(n / D_MODEL + EPS);

/**
 * Queries and keys from the constant: with key (1, 0) in each rotary pair and query (cos shift f, -sin shift f) the score of
 * key j for query i is sum_f cos((i - j - shift) f), largest at i - j = shift.
 */
function lookBack(q: Matrix, k: Matrix, shift: number, sharpness: number, factor: number): void {
  for (let pair = 0; pair < N_ROT / 2; pair++) {
    const frequency = FREQ_BASE ** ((-2 * pair) / N_ROT);
    // The kernels divide scores by sqrt(d_qk).
    const size = (sharpness * Math.sqrt(D_QK)) / factor;
    q.set(2 * pair, CONSTANT, size * Math.cos(shift * frequency));
    q.set(2 * pair + 1, CONSTANT, -size * Math.sin(shift * frequency));
    k.set(2 * pair, CONSTANT, 1 / factor);
  }
}

function layer(index: number): GgufTensor[] {
  const isInduction = index === 1;
  const factor = normFactor(isInduction ? 3 : 2);
  const q = new Matrix(D_QK, D_MODEL);
  const k = new Matrix(D_QK, D_MODEL);
  const v = new Matrix(V, D_MODEL);
  const o = new Matrix(D_MODEL, V);
  lookBack(q, k, isInduction ? 0 : 1, isInduction ? SELF_SHARPNESS : PREVIOUS_SHARPNESS, factor);
  for (let token = 0; token < V; token++) {
    if (isInduction) {
      q.set(N_ROT + token, token, (MATCH * Math.sqrt(D_QK)) / factor);
      k.set(N_ROT + token, V + token, 1 / factor);
    }
    v.set(token, token, 1 / factor);
    o.set((isInduction ? 2 : 1) * V + token, token, 1);
  }
  const name = (tensor: string) => `blk.${index}.${tensor}.weight`;
  return [
    ones(name('attn_norm')),
    q.named(name('attn_q')),
    k.named(name('attn_k')),
    v.named(name('attn_v')),
    o.named(name('attn_output')),
    ones(name('ffn_norm')),
    new Matrix(D_FF, D_MODEL).named(name('ffn_gate')),
    new Matrix(D_FF, D_MODEL).named(name('ffn_up')),
    new Matrix(D_MODEL, D_FF).named(name('ffn_down')),
  ];
}

/** The bytes of the GGUF file: for Engine.load(). Its tokens are capital letters, with a space before each. */
export function inductionCircuit(): Uint8Array<ArrayBuffer> {
  const embedding = new Matrix(V, D_MODEL);
  const head = new Matrix(V, D_MODEL);
  for (let token = 0; token < V; token++) {
    embedding.set(token, token, 1);
    embedding.set(token, CONSTANT, 1);
    head.set(token, 2 * V + token, LOGIT / normFactor(4));
  }
  const isLetter = (text: string) => text.length === 1 && text !== '▁';
  return writeGguf({
    keys: ggufKeys({
      'general.architecture': 'llama',
      'general.name': 'Induction circuit',
      'llama.block_count': 2,
      'llama.context_length': N_CTX,
      'llama.embedding_length': D_MODEL,
      'llama.feed_forward_length': D_FF,
      'llama.attention.head_count': 1,
      'llama.attention.head_count_kv': 1,
      'llama.attention.key_length': D_QK,
      'llama.attention.value_length': V,
      'llama.attention.layer_norm_rms_epsilon': { f32: EPS },
      'llama.rope.dimension_count': N_ROT,
      'llama.rope.freq_base': { f32: FREQ_BASE },
      'llama.vocab_size': V,
      'tokenizer.ggml.model': 'llama',
      'tokenizer.ggml.tokens': TOKENS,
      // Pairs are merged before what is left alone.
      'tokenizer.ggml.scores': Float32Array.from(TOKENS, (text) => (isLetter(text) ? -100 : -1)),
      'tokenizer.ggml.token_type': Int32Array.from(TOKENS, (_, i) =>
        i === 0 ? UNKNOWN : i < 3 ? CONTROL : NORMAL,
      ),
      'tokenizer.ggml.unknown_token_id': 0,
      'tokenizer.ggml.bos_token_id': 1,
      'tokenizer.ggml.eos_token_id': 2,
      'tokenizer.ggml.add_bos_token': true,
    }),
    tensors: [
      embedding.named('token_embd.weight'),
      ...layer(0),
      ...layer(1),
      ones('output_norm.weight'),
      head.named('output.weight'),
    ],
  });
}
