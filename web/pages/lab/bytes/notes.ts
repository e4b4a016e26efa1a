// What a layout's widths mean beyond bytes, in sentences. No DOM.
import type { LayoutCost, ModelShape } from 'headlight-wasm/lab';
import { binaryBytes, largeNumber, megabytes, trimmed } from './units.js';

/** A WebAssembly vector. */
const vectorBytes = 16;

/** A usual one, such as Gemma 3's larger. */
const windowKeys = 1024;

/** Loads and dot products that score one int8 key. */
export function keyLoads(dQk: number): number {
  return Math.ceil(dQk / vectorBytes);
}

export function keyNotes(shape: ModelShape, cost: LayoutCost): string[] {
  const { nQHeads, nKvHeads, dQk, dV, dModel } = shape;
  const loads = keyLoads(dQk);
  const plural = loads === 1 ? '' : 's';
  const padding = loads * vectorBytes - dQk;
  const notes = [
    `An int8 key of ${dQk} is ${loads} load${plural} of 16 bytes and ${loads} dot-product instruction${plural}` +
      (padding === 0 ? '.' : `, ${padding} of the ${loads * vectorBytes} places empty.`),
    `${nQHeads} softmax${nQHeads === 1 ? '' : 'es'} a token and layer, ${nQHeads / nKvHeads} on each KV head.`,
  ];
  const { nCtx } = cost;
  notes.push(
    `Written out, one head’s scores of ${nCtx.toLocaleString('en-GB')} tokens would be ${largeNumber(nCtx ** 2)} numbers, ` +
      `${megabytes(2 * nCtx ** 2)} in f16, and four times that for twice the tokens; computed tile by tile they are never stored.`,
  );
  if (nCtx > windowKeys) {
    notes.push(
      `A sliding window of ${windowKeys.toLocaleString('en-GB')} keys needs ${largeNumber(nCtx * windowKeys)} of them, one for one with the tokens. ` +
        'Linear attention and state-space models keep a state of fixed size instead; Headlight runs windows, not those.',
    );
  }
  if (dQk !== dV) {
    const change = 100 * (1 - dQk / dV);
    notes.push(
      `Keys are ${trimmed(Math.abs(change))} % ${change > 0 ? 'smaller' : 'larger'} than values ` +
        `(${binaryBytes(cost.kvKeyBytesPerToken)} against ${binaryBytes(cost.kvValueBytesPerToken)} a token).`,
    );
  }
  if (cost.kvAllocatedBytesPerToken !== cost.kvBytesPerToken) {
    notes.push(
      `This engine begins every row at a multiple of 16 bytes: ${binaryBytes(cost.kvAllocatedBytesPerToken)} a token are allocated.`,
    );
  }
  if (nQHeads * dQk === dModel && dQk < 64) {
    notes.push(
      'Heads below 64 are thin: the second article advises 64 to 128 (its advice, not a rule).',
    );
  }
  return notes;
}
