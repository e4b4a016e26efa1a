// Logits without generation, in pieces, so that other requests and a stop come through.
import type { Session } from '../../../../wasm/headlight.js';
import type { Captured } from '../capture_types.js';
import { AbortedError } from '../errors.js';
import type { CaptureRequestWire } from '../protocol.js';
import { ADVANCE_BUDGET_MS, type RunContext } from './generation.js';
import { inTurns } from './in_turns.js';
import { unwrap } from './unwrap.js';

export interface ForwardCall {
  tokens: Uint32Array;
  allPositions: boolean;
  capture: CaptureRequestWire | null;
}

/** Throws AbortedError when the signal has fired; the session is then ready for the next request. */
export async function computeForward(
  session: Session,
  { tokens, allPositions, capture }: ForwardCall,
  context: Pick<RunContext, 'signal' | 'nextTurn'>,
): Promise<{ logits: Float32Array; capture: Captured | null }> {
  unwrap(session.beginForward(tokens, allPositions, capture));
  try {
    return await inTurns(() => unwrap(session.advanceForward(ADVANCE_BUDGET_MS)), context);
  } catch (error) {
    if (error instanceof AbortedError) session.cancel();
    throw error;
  }
}
