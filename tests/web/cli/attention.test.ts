// `inspect` and `attend`: a look inside as people and programs call it.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

const inProject = (name: string) => fileURLToPath(new URL(`../../../${name}`, import.meta.url));
const program = inProject('build/cli/main.js');
const model = inProject('examples/models/default-q8_0.gguf');
const onnx = inProject('../shared/conformance/onnx_attention.jsonl');
const softmax = inProject('../shared/conformance/onnx_softmax.jsonl');
const folder = mkdtempSync(path.join(tmpdir(), 'headlight-attention-'));
afterAll(() => rmSync(folder, { recursive: true }));

function headlight(...args: string[]) {
  const { stdout, stderr, status } = spawnSync(process.execPath, [program, ...args], {
    encoding: 'utf8',
  });
  return { stdout, stderr, status, lines: stdout.split('\n').filter((line) => line !== '') };
}

const jsonLines = (...args: string[]) => {
  const { lines, status } = headlight(...args, '--json');
  return { status, lines: lines.map((line) => JSON.parse(line)) };
};

const PROMPT = ['--prompt', 'The cat sat on the mat', '--layer', '1'];
const sum = (row: number[]) => row.reduce((a, b) => a + b, 0);

describe('inspect', () => {
  it('gives the tokens, their pieces, the head counts and one row of weights that sums to 1', () => {
    const [found] = jsonLines('inspect', model, ...PROMPT, '--head', '2').lines;
    expect(found).toMatchObject({ nQHeads: 8, nKvHeads: 2, layer: 1, head: 2, what: 'weights' });
    expect(found.pieces).toEqual(['<s>', 'The', ' cat', ' sat', ' on', ' the', ' m', 'at']);
    expect(found.tokens).toHaveLength(8);
    expect(found.positions).toEqual([7]);
    expect(found.weights.map((row: number[]) => row.length)).toEqual([8]);
    expect(sum(found.weights[0])).toBeCloseTo(1, 5);
  });

  it('--rows all: a row a token, causal, the last one as alone; --tokens instead of a text', () => {
    const [last] = jsonLines('inspect', model, ...PROMPT, '--head', '2').lines;
    const tokens = ['--tokens', last.tokens.join(','), '--layer', '1', '--head', '2'];
    const [all] = jsonLines('inspect', model, ...tokens, '--rows', 'all').lines;
    expect(all.weights).toHaveLength(8);
    expect(all.weights[7]).toEqual(last.weights[0]);
    all.weights.forEach((row: number[], position: number) => {
      expect(sum(row)).toBeCloseTo(1, 5);
      expect(row.slice(position + 1).every((weight) => weight === 0)).toBe(true);
    });
  });

  it('--what scores: softmax of them gives the weights, and keys that are not admitted are null', () => {
    const row = ['--head', '0', '--rows', 'all'];
    const [weights] = jsonLines('inspect', model, ...PROMPT, ...row).lines;
    const [scores] = jsonLines('inspect', model, ...PROMPT, ...row, '--what', 'scores').lines;
    expect(scores.weights[3].slice(4)).toEqual([null, null, null, null]);
    const exp = scores.weights[3].slice(0, 4).map(Math.exp);
    exp.forEach((value: number, key: number) => {
      expect(value / sum(exp)).toBeCloseTo(weights.weights[3][key], 5);
    });
  });

  it.each([
    [
      'a layer that is not there',
      ['--prompt', 'a', '--layer', '99', '--head', '0'],
      /capture\.layers\[0\] is 99.*below \d+/,
    ],
    [
      'a head that is not there',
      ['--prompt', 'a', '--layer', '0', '--head', '8'],
      /capture\.heads\[0\] is 8.*below 8, the query heads/,
    ],
    ['no layer', ['--prompt', 'a', '--head', '0'], /--layer N is missing/],
    ['no text', ['--layer', '0', '--head', '0'], /--prompt TEXT and --tokens/],
    [
      'rows of another kind',
      ['--prompt', 'a', '--layer', '0', '--head', '0', '--rows', 'first'],
      /'last' or 'all'/,
    ],
    [
      'what there is not',
      ['--prompt', 'a', '--layer', '0', '--head', '0', '--what', 'logits'],
      /'weights' \| 'scores'/,
    ],
  ])('%s is refused with the value and the remedy', (_, args, message) => {
    const { status, lines } = jsonLines('inspect', model, ...args);
    expect(status).toBe(1);
    expect(lines[0].error).toMatchObject({ code: 'BadOption' });
    expect(lines[0].error.message).toMatch(message);
  });
});

// Worked by hand: one query [1, 0] at position 1 on keys [1, 0] and [0, 1], scale 1, so scores 1 and 0; values 10 and 20.
const E1 = Math.E / (Math.E + 1);
const tensor = (shape: number[], data: unknown[], type = 'f32') => ({ type, shape, data });
const base = {
  name: 'two keys',
  op: 'Attention',
  attrs: { scale: 1 } as Record<string, number>,
  inputs: {
    Q: tensor([1, 1, 1, 2], [1, 0]),
    K: tensor([1, 1, 2, 2], [1, 0, 0, 1]),
    V: tensor([1, 1, 2, 1], [10, 20]),
  } as Record<string, ReturnType<typeof tensor>>,
  outputs: { Y: tensor([1, 1, 1, 1], [10 * E1 + 20 * (1 - E1)]) } as Record<
    string,
    ReturnType<typeof tensor>
  >,
};

const cases = [
  base,
  {
    ...base,
    name: 'weights',
    attrs: { scale: 1, qk_matmul_output_mode: 3 },
    outputs: { ...base.outputs, qk_matmul_output: tensor([1, 1, 1, 2], [E1, 1 - E1]) },
  },
  {
    ...base,
    name: 'a boolean mask leaves the second key',
    inputs: { ...base.inputs, attn_mask: tensor([1, 2], [0, 1], 'bool') },
    outputs: { Y: tensor([1, 1, 1, 1], [20]) },
  },
  {
    ...base,
    name: 'scores after a mask',
    attrs: { scale: 1, qk_matmul_output_mode: 2 },
    inputs: { ...base.inputs, attn_mask: tensor([1, 2], [0.5, '-inf']) },
    outputs: {
      Y: tensor([1, 1, 1, 1], [10]),
      qk_matmul_output: tensor([1, 1, 1, 2], [1.5, '-inf']),
    },
  },
  {
    ...base,
    name: 'heads inside, a past, causal',
    attrs: { scale: 1, is_causal: 1, q_num_heads: 2, kv_num_heads: 1 },
    inputs: {
      Q: tensor([1, 1, 4], [1, 0, 0, 1]),
      K: tensor([1, 1, 2], [0, 1]),
      V: tensor([1, 1, 1], [20]),
      past_key: tensor([1, 1, 1, 2], [1, 0]),
      past_value: tensor([1, 1, 1, 1], [10]),
    },
    outputs: { Y: tensor([1, 1, 2], [10 * E1 + 20 * (1 - E1), 20 * E1 + 10 * (1 - E1)]) },
  },
];
const written = (name: string, ...lines: unknown[]) => {
  const full = path.join(folder, name);
  writeFileSync(full, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
  return full;
};

describe('attend', () => {
  it.each(['reference', 'tiled', 'decode'])('%s: the cases worked by hand come out', (kernel) => {
    const file = written('good.jsonl', ...cases);
    const { status, lines } = jsonLines('attend', file, '--kernel', kernel);
    expect(status).toBe(0);
    expect(lines.map(({ name, ok, kernel: ran }) => [name, ok, ran])).toEqual(
      cases.map(({ name }) => [name, true, kernel]),
    );
    for (const { maxAbsError } of lines) expect(maxAbsError).toBeLessThan(4e-6);
  });

  it('a wrong output or wrong scores fail by name, and the exit code says so', () => {
    const wrong = { ...base, name: 'wrong', outputs: { Y: tensor([1, 1, 1, 1], [12]) } };
    const wrongScores = {
      ...cases[1],
      name: 'wrong scores',
      outputs: { ...base.outputs, qk_matmul_output: tensor([1, 1, 1, 2], [0.5, 0.5]) },
    };
    const { status, lines } = jsonLines('attend', written('bad.jsonl', wrong, base, wrongScores));
    expect(status).toBe(1);
    expect(lines.map(({ ok }) => ok)).toEqual([false, true, false]);
    expect(lines[2].maxAbsError).toBeCloseTo(E1 - 0.5, 5);
  });

  it('what it cannot run is skipped with the reason', () => {
    const softmax = { ...base, name: 'another operator', op: 'Softmax' };
    const attribute = { ...base, name: 'unknown', attrs: { softmax_precision: 1 } };
    const { status, lines } = jsonLines('attend', written('skip.jsonl', softmax, attribute));
    expect(status).toBe(0);
    expect(lines).toEqual([
      { name: 'another operator', skipped: 'the operator is Softmax, not Attention' },
      { name: 'unknown', skipped: 'the attribute softmax_precision is not known' },
    ]);
  });

  it.each([
    ['a file that is not there', ['nope.jsonl'], /nope\.jsonl.*no such file/],
    ['no file', [], /CASES\.jsonl is missing/],
    ['a line that is no case', [written('line.jsonl', base, { name: 'x' })], /line 2.*inputs/],
    ['an unknown kernel', [written('one.jsonl', base), '--kernel', 'fast'], /kernel.*'reference'/],
  ])('%s is an error that says where', (_, args, message) => {
    const { status, lines } = jsonLines('attend', ...args);
    expect(status).toBe(1);
    expect(lines.at(-1).error.message).toMatch(message);
  });

  it.skipIf(!existsSync(onnx)).each(['reference', 'tiled', 'decode'])(
    '%s: all 58 of the ONNX node tests come out (needs ../shared)',
    (kernel) => {
      const { status, lines } = jsonLines('attend', onnx, '--kernel', kernel);
      expect(lines.filter(({ ok }) => ok !== true)).toEqual([]);
      expect(lines).toHaveLength(58);
      expect(status).toBe(0);
    },
  );

  it.skipIf(!existsSync(softmax))('other ONNX operators are skipped (needs ../shared)', () => {
    const { lines, status } = jsonLines('attend', softmax);
    expect(lines.every(({ skipped }) => /Softmax/.test(skipped))).toBe(true);
    expect(status).toBe(0);
  });
});
