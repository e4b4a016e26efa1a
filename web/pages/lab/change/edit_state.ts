// The edit that the section shows: what the controls say, in the address and as the lab takes it. No DOM.
import type { CacheType } from 'headlight-wasm';
import type { HeadRef, ModelEdit } from 'headlight-wasm/lab';
import type { UrlState } from '../url_state.js';

export type HeadFate = 'stays' | 'pruned' | 'fixed';
export const FATES: readonly HeadFate[] = ['stays', 'pruned', 'fixed'];
export const CACHES: readonly CacheType[] = ['f32', 'f16', 'int8'];

export interface EditState {
  /** "3.5" -> what becomes of it; heads that stay are not in it. */
  heads: ReadonlyMap<string, Exclude<HeadFate, 'stays'>>;
  /** 0: as it is. */
  kvHeads: number;
  dQk: number;
  dV: number;
  window: number;
  sinks: number;
  samePairs: boolean;
  cache: CacheType;
}

export const NOTHING: EditState = {
  heads: new Map(),
  ...{ kvHeads: 0, dQk: 0, dV: 0, window: 0, sinks: 4, samePairs: false },
  cache: 'f32',
};

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

/** What the lab takes; the cache format is no part of the model. */
export function modelEdit(state: EditState): ModelEdit {
  const [prune, fix] = [headsWith(state, 'pruned'), headsWith(state, 'fixed')];
  const { kvHeads, dQk, dV, window, sinks, samePairs } = state;
  return {
    ...(prune.length > 0 ? { prune } : {}),
    ...(fix.length > 0 ? { fix } : {}),
    ...(kvHeads > 0 ? { kvHeads } : {}),
    ...(dQk > 0 ? { dQk } : {}),
    ...(dQk > 0 && samePairs ? { samePairs } : {}),
    ...(dV > 0 ? { dV } : {}),
    ...(window > 0 ? { window, sinks } : {}),
  };
}

export function isNothing(state: EditState): boolean {
  return Object.keys(modelEdit(state)).length === 0 && state.cache === 'f32';
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
    window === undefined ? '' : `window ${window}, ${sinks} sinks`,
    state.cache === 'f32' ? '' : `${state.cache} cache`,
  ].filter((part) => part !== '');
  return parts.length === 0 ? 'as loaded' : parts.join('; ');
}

const NUMBERS = { kvHeads: 'ekv', dQk: 'eqk', dV: 'ev', window: 'ew', sinks: 'es' } as const;

export function writeState(state: EditState, url: UrlState): void {
  const list = (fate: HeadFate) => heads(headsWith(state, fate)).replaceAll(' ', '') || undefined;
  url.set('prune', list('pruned'));
  url.set('fix', list('fixed'));
  for (const [name, key] of Object.entries(NUMBERS)) {
    const value = state[name as keyof typeof NUMBERS];
    url.set(key, value === NOTHING[name as keyof typeof NUMBERS] ? undefined : value);
  }
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
  const number = (name: keyof typeof NUMBERS) =>
    Math.floor(url.number(NUMBERS[name], 0, 1e6) ?? NOTHING[name]);
  return {
    heads: fates,
    kvHeads: number('kvHeads'),
    dQk: number('dQk'),
    dV: number('dV'),
    window: number('window'),
    sinks: number('sinks'),
    samePairs: url.get('ep') === '1',
    cache: url.oneOf('ec', CACHES) ?? 'f32',
  };
}
