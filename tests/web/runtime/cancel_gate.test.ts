// The shared flag that stops a run: it never reaches the run after the one it was meant for.
import { expect, it } from 'vitest';
import {
  closeGate,
  lowerFlag,
  openGate,
  stopThrough,
} from '../../../web/runtime/src/cancel_gate.js';

const flags = () => new Int32Array(new SharedArrayBuffer(64));

it('a stop during the run raises the flag, and the worker hears of it when the run ends', () => {
  const gate = openGate(flags(), 3);
  stopThrough(gate);
  expect(gate.flags[3]).toBe(1);
  expect(closeGate(gate)).toBe(true);
  lowerFlag(gate);
  expect(gate.flags[3]).toBe(0);
});

it('a stop after the run has ended raises nothing', () => {
  const gate = openGate(flags(), 3);
  expect(closeGate(gate)).toBe(false);
  stopThrough(gate);
  expect(gate.flags[3]).toBe(0);
});

it('a second stop of the same run changes nothing', () => {
  const gate = openGate(flags(), 3);
  stopThrough(gate);
  closeGate(gate);
  lowerFlag(gate);
  stopThrough(gate);
  expect(gate.flags[3]).toBe(0);
});
