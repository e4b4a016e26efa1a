// The edit that the section shows: what the controls say, in the address and as the lab takes it. No DOM.
import type { CacheType, Eviction } from 'headlight-wasm';
import type { HeadRef, ModelEdit, SessionKeeps } from 'headlight-wasm/lab';
import type { UrlState } from '../url_state.js';

export type HeadFate = 'stays' | 'pruned' | 'fixed';
export const FATES: readonly HeadFate[] = ['stays', 'pruned', 'fixed'];
export const CACHES: readonly CacheType[] = ['f32', 'f16', 'int8'];

/** Which keys a query sees: 'window' is a mask in the model; the last three are policies of the session that holds the cache. */
export const KEEPS = ['all', 'window', 'sinks', 'h2o', 'snapkv'] as const;
export type Keep = (typeof KEEPS)[number];

export interface EditState {
  /** "3.5" -> what becomes of it; heads that stay are not in it. */
  heads: ReadonlyMap<string, Exclude<HeadFate, 'stays'>>;
  /** 0: as it is. */
  kvHeads: number;
  dQk: number;
  dV: number;
  keep: Keep;
  /** Of 'window' and 'sinks'. */
  window: number;
  sinks: number;
  /** Of 'h2o' and 'snapkv': keys of each layer and KV head. */
  budget: number;
  samePairs: boolean;
  cache: CacheType;
}

export const NOTHING: EditState = {
  heads: new Map(),
  ...{ kvHeads: 0, dQk: 0, dV: 0, samePairs: false },
  ...{ keep: 'all', window: 48, sinks: 4, budget: 48 },
  cache: 'f32',
};

/** The session takes no more. */
export const MAX_SINKS = 32;

export const headKey = ({ layer, head }: HeadRef) => `${layer}.${head}`;

function headOf(key: string): HeadRef | undefined {
  const found = /^(\d{1,4})\.(\d{1,4})$/.exec(key);
  return found === null ? undefined : { layer: Number(found[1]), head: Number(found[2]) };
}

function headsWith(state: EditState, fate: HeadFate): HeadRef[] {
  const heads = [...state.heads].flatMap(([key, its]) => (its === fate ? [headOf(key)] : []));
  return heads
    .filter((head) => head !== undefined)
    .sort((a, b) => a.layer - b.layer || a.head - b.head);
}

/** What the lab takes; the cache's format and what a session keeps in it are no part of the model. */
export function modelEdit(state: EditState): ModelEdit {
  const [prune, fix] = [headsWith(state, 'pruned'), headsWith(state, 'fixed')];
  const { kvHeads, dQk, dV, keep, window, sinks, samePairs } = state;
  return {
    ...(prune.length > 0 ? { prune } : {}),
    ...(fix.length > 0 ? { fix } : {}),
    ...(kvHeads > 0 ? { kvHeads } : {}),
    ...(dQk > 0 ? { dQk } : {}),
    ...(dQk > 0 && samePairs ? { samePairs } : {}),
    ...(dV > 0 ? { dV } : {}),
    ...(keep === 'window' ? { window, sinks } : {}),
  };
}

function evictionOf({ keep, window, sinks, budget }: EditState): Eviction | undefined {
  if (keep === 'sinks') return { policy: keep, sinks, window };
  return keep === 'h2o' || keep === 'snapkv' ? { policy: keep, budget } : undefined;
}

/** What a session over the model keeps. */
export function sessionKeeps(state: EditState): SessionKeeps {
  const eviction = evictionOf(state);
  return {
    kvCache: { k: state.cache, v: state.cache },
    ...(eviction === undefined ? {} : { eviction }),
  };
}

export function isNothing(state: EditState): boolean {
  const isSame = Object.keys(modelEdit(state)).length === 0 && state.cache === 'f32';
  return isSame && evictionOf(state) === undefined;
}

const heads = (list: readonly HeadRef[]) => list.map(headKey).join(', ');

/** "pruned 3.5; keys 16 wide". Short enough for a row of a table. */
export function describe(state: EditState): string {
  const { prune = [], fix = [], kvHeads, dQk, dV, window, sinks } = modelEdit(state);
  const parts = [
    prune.length > 0 ? `pruned ${heads(prune)}` : '',
    fix.length > 0 ? `fixed ${heads(fix)}` : '',
    kvHeads === undefined ? '' : `${kvHeads} KV head${kvHeads === 1 ? '' : 's'}`,
    dQk === undefined ? '' : `d_qk ${dQk}`,
    dV === undefined ? '' : `d_v ${dV}`,
    window === undefined ? '' : `window ${window}, ${sinks} sinks, by mask`,
    state.keep === 'sinks' ? `keeps ${state.sinks} first + ${state.window} last keys` : '',
    state.keep === 'h2o' ? `H2O, ${state.budget} keys` : '',
    state.keep === 'snapkv' ? `SnapKV, ${state.budget} keys` : '',
    state.cache === 'f32' ? '' : `${state.cache} cache`,
  ].filter((part) => part !== '');
  return parts.length === 0 ? 'as loaded' : parts.join('; ');
}

const NUMBERS = {
  ...{ kvHeads: 'ekv', dQk: 'eqk', dV: 'ev' },
  ...{ window: 'ew', sinks: 'es', budget: 'eb' },
} as const;

export function writeState(state: EditState, url: UrlState): void {
  const list = (fate: HeadFate) => heads(headsWith(state, fate)).replaceAll(' ', '') || undefined;
  url.set('prune', list('pruned'));
  url.set('fix', list('fixed'));
  for (const [name, key] of Object.entries(NUMBERS)) {
    const value = state[name as keyof typeof NUMBERS];
    url.set(key, value === NOTHING[name as keyof typeof NUMBERS] ? undefined : value);
  }
  url.set('ek', state.keep === 'all' ? undefined : state.keep);
  url.set('ep', state.samePairs ? 1 : undefined);
  url.set('ec', state.cache === 'f32' ? undefined : state.cache);
}

export function readState(url: UrlState): EditState {
  const fates = new Map<string, Exclude<HeadFate, 'stays'>>();
  for (const [key, fate] of [
    ['prune', 'pruned'],
    ['fix', 'fixed'],
  ] as const) {
    for (const name of url.get(key)?.split(',') ?? []) {
      if (headOf(name) !== undefined) fates.set(name, fate);
    }
  }
  const number = (name: keyof typeof NUMBERS, min = 0) =>
    Math.floor(url.number(NUMBERS[name], min, 1e6) ?? NOTHING[name]);
  return {
    heads: fates,
    kvHeads: number('kvHeads'),
    dQk: number('dQk'),
    dV: number('dV'),
    keep: url.oneOf('ek', KEEPS) ?? 'all',
    window: number('window', 1),
    sinks: Math.min(number('sinks'), MAX_SINKS),
    budget: number('budget', 1),
    samePairs: url.get('ep') === '1',
    cache: url.oneOf('ec', CACHES) ?? 'f32',
  };
}
