// The command `lab`: figures before and after a change, the changed file, and what is said of wrong calls.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';

const inProject = (name: string) => fileURLToPath(new URL(`../../../${name}`, import.meta.url));
const program = inProject('build/cli/main.js');
const model = inProject('examples/models/default-q8_0.gguf');
const folder = mkdtempSync(path.join(tmpdir(), 'headlight-lab-'));
afterAll(() => rmSync(folder, { recursive: true }));
if (!existsSync(program)) throw new Error('the command line is not built: run `npm run build`');

function lab(...args: string[]) {
  const all = [program, 'lab', model, '--threads', '1', ...args, '--json'];
  const { stdout, status } = spawnSync(process.execPath, all, { encoding: 'utf8' });
  return { status, ...JSON.parse(stdout) };
}

it('pruning, pooling and cuts: figures before and after, and a file that has the new layout', () => {
  const out = path.join(folder, 'changed.gguf');
  const { status, edit, before, after } = lab(
    ...['--prune', '3.5,4.1', '--cut-qk', '16', '--same-pairs', '--cut-v', '24', '--out', out],
  );
  expect(status).toBe(0);
  expect(edit).toEqual({
    prune: [
      { layer: 3, head: 5 },
      { layer: 4, head: 1 },
    ],
    ...{ dQk: 16, samePairs: true, dV: 24 },
  });
  expect(before.recall.asked).toBe(24);
  expect(before.loss).toBeLessThan(0.5);
  expect(after.loss).toBeGreaterThan(before.loss - 0.01);
  expect(after.weightsBytes).toBeLessThan(before.weightsBytes);
  expect([before.kvBytesPerToken, after.kvBytesPerToken]).toEqual([2688, 1920]);
  expect(after.tokensPerSecond).toBeGreaterThan(0);
  const info = spawnSync(process.execPath, [program, 'info', out, '--json'], { encoding: 'utf8' });
  expect(JSON.parse(info.stdout).model.layers[0]).toMatchObject({ dQk: 16, dV: 24 });
});

it('a fixed head comes with what calibration says of it', () => {
  const fixed = lab('--fix', '2.0').fixed[0];
  expect(fixed).toMatchObject({ layer: 2, head: 0 });
  expect(fixed.spread).toBeGreaterThan(0);
  expect(Object.keys(fixed.outputErrors)).toEqual(['shift', 'mean', 'first', 'table']);
});

it('an eviction is the session’s, and costs recall', () => {
  const { edit, eviction, before, after } = lab('--evict', 'sinks=4,window=48');
  // The session's policy, not a mask in the model.
  expect([edit, eviction]).toEqual([{}, { policy: 'sinks', sinks: 4, window: 48 }]);
  expect(after.recall.right).toBeLessThan(before.recall.right);
});

it('--label: every head with its metrics, label and kind; nothing is changed', () => {
  const { status, heads } = lab('--label');
  expect(status).toBe(0);
  expect(heads).toHaveLength(48);
  const labels = heads.map((head: { label: string }) => head.label);
  expect(labels.filter((name: string) => name === 'previous-token').length).toBeGreaterThan(0);
  expect(heads[0]).toMatchObject({ layer: 0, head: 0, spread: expect.any(Number) });
  expect(lab('--label', '--prune', '3.5')).toMatchObject({
    error: { message: expect.stringMatching(/leave out prune/) },
  });
});

it('--rank: stable rank is the sum of squared singular values over the largest square, and routing has fewer directions', () => {
  const { status, layers } = lab('--rank');
  expect(status).toBe(0);
  expect(layers).toHaveLength(6);
  for (const { tensors } of layers) {
    for (const which of ['q', 'k', 'v', 'o']) {
      const { stableRank, singularValues } = tensors[which];
      const squares = singularValues.map((value: number) => value * value);
      const sum = squares.reduce((a: number, b: number) => a + b, 0);
      expect(stableRank).toBeCloseTo(sum / squares[0], 4);
    }
    expect(tensors.k.stableRank).toBeLessThan(tensors.v.stableRank);
    expect(tensors.k.singularValues).toHaveLength(48);
  }
});

it('--trace: the tensors of a block, of which the output is the input plus attention plus feed-forward', () => {
  const { status, tensors, layer } = lab('--trace', '2', '--tokens', '1,5,9');
  expect(status).toBe(0);
  expect(layer).toBe(2);
  const named = (name: string) => tensors.find((one: { name: string }) => one.name === name);
  expect(named('q rotated')).toMatchObject({ shape: [3, 8, 24], bytes: 3 * 192 * 4, dtype: 'f32' });
  const [input, attention, down, output] = ['input', 'attention out', 'down', 'output'].map(
    (name) => named(name).values as number[],
  );
  const sums = input?.map((value, i) => value + (attention?.[i] ?? 0) + (down?.[i] ?? 0)) ?? [];
  expect(Math.max(...sums.map((sum, i) => Math.abs(sum - (output?.[i] ?? 0))))).toBeLessThan(1e-4);
  expect(lab('--trace', '2')).toMatchObject({
    error: { message: expect.stringMatching(/--prompt TEXT or --tokens/) },
  });
  expect(lab('--trace', '2', '--rank', '--tokens', '1')).toMatchObject({
    error: { message: expect.stringMatching(/leave out/) },
  });
});

it('wrong calls are named', () => {
  expect(lab()).toMatchObject({
    error: { message: expect.stringMatching(/a change is expected/) },
  });
  expect(lab('--prune', '3')).toMatchObject({
    error: { message: expect.stringMatching(/LAYER.HEAD/) },
  });
  expect(lab('--prune', '9.0')).toMatchObject({ error: { details: { option: 'layer' } } });
  expect(lab('--evict', 'all')).toMatchObject({
    error: { message: expect.stringMatching(/sinks=N/) },
  });
  expect(lab('--pool-kv', '3')).toMatchObject({ error: { details: { option: 'n_kv_heads' } } });
  const refused = lab('--window', '32', '--out', path.join(folder, 'x.gguf'));
  expect(refused).toMatchObject({ status: 1, error: { code: 'Unsupported' } });
});
