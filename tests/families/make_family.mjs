// Writes the tiny random model of a family (families.mjs) as a GGUF file of f32 tensors, the same bytes on every machine:
// numbers come from 32-bit integers, products and square roots, which IEEE 754 rounds one way only.
//   node tests/families/make_family.mjs NAME OUT
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { byteVocabulary, ggufHeader, padded } from '../gguf_header.mjs';
import { families, familyKeys } from './families.mjs';
import { tensor } from './parts.mjs';

/** The top of the range of a uniform number with standard deviation 1. */
const kUniformTop = Math.sqrt(3);
const kNormSpread = 0.3;
const kBiasSpread = 0.3;

/** xorshift32: uniform in [-1, 1). */
function uniform(seed) {
  let x = seed | 1;
  return () => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return x / 2 ** 31;
  };
}

function values({ dims, kind, gain = 1, values: given }, next) {
  const n = dims.reduce((a, b) => a * b, 1);
  if (given) return Float32Array.from(given);
  const scale = (gain * kUniformTop) / Math.sqrt(dims[0]);
  const of = {
    matrix: () => next() * scale,
    norm: () => 1 + kNormSpread * next(),
    bias: () => kBiasSpread * next(),
  }[kind];
  return Float32Array.from({ length: n }, of);
}

function tensorsOf(family) {
  const blocks = Array.from({ length: family.layers }, (_, i) =>
    family
      .block(i)
      .flat()
      .map((t) => ({ ...t, name: `blk.${i}.${t.name}` })),
  );
  const embedding = tensor('token_embd', [family.d, family.vocab], { gain: family.embeddingGain });
  return [embedding, ...family.top, ...blocks.flat()].flat();
}
/** @param {string} name a key of `families` */
export function makeFamily(name) {
  const family = families[name];
  if (!family) throw new Error(`family must be one of ${Object.keys(families)}, got ${name}`);
  const tensors = tensorsOf(family);
  const next = uniform(0x9e3779b9);
  const entries = [...familyKeys(name), ...byteVocabulary(family.vocab)];
  const parts = [];
  const table = tensors.map((t) => {
    const data = Buffer.from(values(t, next).buffer);
    parts.push(data, Buffer.alloc(padded(data.length) - data.length));
    return { name: t.name, dims: t.dims, type: 0, bytes: data.length };
  });
  return Buffer.concat([ggufHeader(entries, table), ...parts]);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [name, out] = process.argv.slice(2);
  if (!out) {
    console.error(`usage: make_family.mjs ${Object.keys(families).join('|')} OUT`);
    process.exit(2);
  }
  writeFileSync(out, makeFamily(name));
}
