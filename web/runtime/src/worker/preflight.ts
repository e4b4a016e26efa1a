// What a model would take and whether there is memory for it, from its header alone; with what would fit where there is not.
import type { HeadlightModule, Loader } from '../../../../wasm/headlight.js';
import type { PreflightWire, SessionOptionsWire, SourceWire } from '../protocol.js';
import { inspectModel, type LoadContext, MARGIN_BYTES } from './load_model.js';
import { MAX_WASM_PAGES, WASM_PAGE_BYTES } from './start_module.js';
import { unwrap } from './unwrap.js';

/** Shorter contexts hold no conversation. */
const LEAST_CTX = 128;
const MAX_ALTERNATIVES = 3;

export async function preflight(
  context: LoadContext,
  sources: readonly SourceWire[],
  session: SessionOptionsWire,
): Promise<PreflightWire> {
  let candidates: PreflightWire['alternatives'] = [];
  const plan = await inspectModel(context, sources, session, (loader) => {
    candidates = smaller(loader, session);
  });
  const hadBytes = context.module.wasmBytes();
  const { weightsBytes, kvCacheBytes, workspaceBytes } = plan;
  const fits = isThere(context.module, weightsBytes + kvCacheBytes + workspaceBytes);
  const alternatives = fits
    ? []
    : candidates.filter(({ neededBytes }) => isThere(context.module, neededBytes));
  return { plan, fits, hadBytes, alternatives: alternatives.slice(0, MAX_ALTERNATIVES) };
}

/** Takes the memory for it, which this worker gives back when it ends. */
function isThere(module: HeadlightModule, neededBytes: number): boolean {
  const bytes = neededBytes + MARGIN_BYTES;
  return bytes <= MAX_WASM_PAGES * WASM_PAGE_BYTES && module.reserve(bytes).error === undefined;
}

/** The longest context first, the wished cache format before int8. */
function smaller(loader: Loader, session: SessionOptionsWire): PreflightWire['alternatives'] {
  const { weightsBytes } = unwrap(loader.modelInfo());
  const asked = unwrap(loader.planSession(session)).nCtx;
  const formats = [
    { kvCacheK: session.kvCacheK, kvCacheV: session.kvCacheV },
    { kvCacheK: 'int8', kvCacheV: 'int8' },
  ] as const;
  const found: PreflightWire['alternatives'] = [];
  for (let nCtx = asked; nCtx >= LEAST_CTX; nCtx = Math.floor(nCtx / 2)) {
    for (const format of formats) {
      const { kvCacheK: k, kvCacheV: v } = format;
      if (found.some((one) => one.nCtx === nCtx && one.kvCache.k === k && one.kvCache.v === v))
        continue;
      const plan = unwrap(loader.planSession({ ...session, ...format, nCtx }));
      const neededBytes = weightsBytes + plan.kvCacheBytes + plan.workspaceBytes;
      found.push({ nCtx, kvCache: { k, v }, neededBytes });
    }
  }
  return found;
}
