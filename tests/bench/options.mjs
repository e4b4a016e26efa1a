// The options of `npm run bench`, checked: an unknown or impossible one ends with what is allowed.
import { parseArgs } from 'node:util';
import { tensorTypes } from './make_model.mjs';
import { shapes } from './shapes.mjs';

const choices = {
  shape: Object.keys(shapes),
  type: Object.keys(tensorTypes),
  module: ['auto', 'simd', 'relaxed'],
  browser: ['chromium', 'firefox'],
  peer: ['wllama', 'native', 'none'],
  kv: ['f32', 'f16', 'int8'],
};

const usage = `npm run bench -- [--model FILE | --shape ${choices.shape.join('|')}] [--type ${choices.type.join('|')}]
  [--threads N] [--module auto|simd|relaxed] [--browser chromium|firefox] [--peer wllama|native|none]
  [--baseline FOLDER] [--rounds 3] [--prompt 256] [--gen 64] [--ctx N] [--kv f32|f16|int8] [--no-isolation] [--json]
--baseline: another build's web/runtime/dist as the peer`;

function wholeNumber(name, text, min) {
  const value = Number(text);
  if (!Number.isInteger(value) || value < min) {
    throw new Error(`--${name} must be a whole number of at least ${min}, got ${text}\n${usage}`);
  }
  return value;
}

export function readOptions(argv) {
  const text = (value) => ({ type: 'string', default: value });
  const { values } = parseArgs({
    args: argv,
    options: {
      model: { type: 'string' },
      shape: text('smol135'),
      type: text('q8_0'),
      threads: text('1'),
      module: text('auto'),
      browser: text('chromium'),
      peer: text('none'),
      baseline: { type: 'string' },
      rounds: text('3'),
      prompt: text('256'),
      gen: text('64'),
      ctx: { type: 'string' },
      kv: text('f32'),
      'no-isolation': { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  for (const [name, allowed] of Object.entries(choices)) {
    if (!allowed.includes(values[name])) {
      throw new Error(
        `--${name} must be one of ${allowed.join(', ')}, got ${values[name]}\n${usage}`,
      );
    }
  }
  const { 'no-isolation': noIsolation, ctx, ...rest } = values;
  if (rest.baseline !== undefined) {
    if (rest.peer !== 'none')
      throw new Error(`--baseline is the peer: no --peer beside it\n${usage}`);
    rest.peer = 'baseline';
  }
  return {
    ...rest,
    isolation: !noIsolation,
    threads: wholeNumber('threads', values.threads, 1),
    rounds: wholeNumber('rounds', values.rounds, 1),
    prompt: wholeNumber('prompt', values.prompt, 2),
    gen: wholeNumber('gen', values.gen, 1),
    ...(ctx === undefined ? {} : { ctx: wholeNumber('ctx', ctx, 16) }),
  };
}
