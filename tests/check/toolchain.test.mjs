// The parts of the set-up and build that decide something: what is missing, too old or too big.
import { describe, expect, it } from 'vitest';
import {
  checkModuleSize,
  loadingTheSharedWasm,
  maxModuleBytes,
} from '../../wasm/toolchain/build.mjs';
import { TaskError } from '../../wasm/toolchain/run.mjs';
import { relaxedSimdFlags } from '../../wasm/toolchain/run_wasm.mjs';
import { isOlder, sameModules } from '../../wasm/toolchain/setup.mjs';

describe('set-up', () => {
  const entry = (version, more = {}) => ({ version, integrity: `sha512-${version}`, ...more });
  const wanted = {
    '': { version: '1.0.0' },
    'web/runtime': { version: '0.1.0' },
    'node_modules/a': entry('1.0.0'),
    'node_modules/other-system': entry('1.0.0', { optional: true }),
  };

  it('is content with the packages of the lock file, less those of other systems', () => {
    expect(sameModules(wanted, { 'node_modules/a': entry('1.0.0') })).toBe(true);
  });

  it.each([
    ['a missing package', {}],
    ['another version', { 'node_modules/a': entry('1.0.1') }],
    ['one too many', { 'node_modules/a': entry('1.0.0'), 'node_modules/b': entry('2.0.0') }],
  ])('sees %s', (_what, installed) => {
    expect(sameModules(wanted, installed)).toBe(false);
  });

  it('compares versions by number', () => {
    expect(isOlder('3.1.6', '3.1.60')).toBe(true);
    expect(isOlder('3.1.60', '3.1.60')).toBe(false);
    expect(isOlder('4.0.1', '3.1.60')).toBe(false);
  });

  it('asks V8 for relaxed SIMD only where a flag is needed', () => {
    expect(relaxedSimdFlags('20.20.2')).toContain('--no-liftoff');
    expect(relaxedSimdFlags('22.1.0')).toEqual([]);
  });
});

describe('modules', () => {
  it('over the size limit fail the build', () => {
    expect(() => checkModuleSize('a.wasm', maxModuleBytes)).not.toThrow();
    expect(() => checkModuleSize('a.wasm', maxModuleBytes + 1)).toThrow(TaskError);
  });

  it('have a Node glue that loads the shared .wasm', () => {
    const glue = loadingTheSharedWasm('headlight-simd.node.mjs', 'f("headlight-simd.node.wasm")');
    expect(glue.toString()).toBe('f("headlight-simd.wasm")');
    expect(() => loadingTheSharedWasm('headlight-simd.node.mjs', 'other')).toThrow(TaskError);
  });
});
