// What a look at a model found: the tokens and every head's map of weights, which grows by a row while text is generated. No
// DOM.
import type { Captured } from 'headlight-wasm';
import { headMetrics, rowDistance, rowEntropy } from 'headlight-wasm/lab';

export interface HeadId {
  layer: number;
  head: number;
}

export const headName = ({ layer, head }: HeadId) => `${layer}.${head}`;

/** "3.1" -> layer 3, head 1. */
export function parseHead(text: string | undefined): HeadId | undefined {
  const found = /^(\d{1,4})\.(\d{1,4})$/.exec(text ?? '');
  return found === null ? undefined : { layer: Number(found[1]), head: Number(found[2]) };
}

export interface RowFacts {
  /** Weight of the first token, and of a learned sink. */
  firstToken: number;
  learnedSink: number;
  /** In nats, and the number of equally used tokens that would have as much. */
  entropy: number;
  effectiveTokens: number;
  /** In tokens. */
  distance: number;
}

/** Rows of one head: row i has i + 1 weights. */
export class HeadMap {
  readonly id: HeadId;
  readonly rows: Float32Array[] = [];
  readonly sinkMass: number[] = [];

  constructor(id: HeadId) {
    this.id = id;
  }

  /** [n, n], zeros above the diagonal, of the first n rows. */
  square(n: number): Float32Array {
    const map = new Float32Array(n * n);
    for (let i = 0; i < n; i++) map.set(this.rows[i]?.subarray(0, n) ?? [], i * n);
    return map;
  }

  facts(row: number): RowFacts {
    const weights = this.rows[row] ?? new Float32Array();
    const entropy = rowEntropy(weights);
    return {
      firstToken: weights[0] ?? 0,
      learnedSink: this.sinkMass[row] ?? 0,
      entropy,
      effectiveTokens: Math.exp(entropy),
      distance: rowDistance(weights),
    };
  }
}

export class LookData {
  readonly tokens: number[];
  readonly pieces: string[];
  readonly maps = new Map<string, HeadMap>();

  constructor(tokens: readonly number[], pieces: readonly string[]) {
    this.tokens = [...tokens];
    this.pieces = [...pieces];
  }

  get layers(): number[] {
    return [...new Set([...this.maps.values()].map(({ id }) => id.layer))];
  }

  map(id: HeadId): HeadMap | undefined {
    return this.maps.get(headName(id));
  }

  /** The chosen head, or the nearest that is there. */
  nearest({ layer, head }: HeadId): HeadId | undefined {
    if (this.maps.has(headName({ layer, head }))) return { layer, head };
    const first = [...this.maps.values()][0];
    return this.map({ layer, head: 0 })?.id ?? first?.id;
  }

  /**
   * A head worth a first look: of all, the one that most looks one token back, or at what followed the same token before.
   */
  mostPointed(): HeadId | undefined {
    const n = this.tokens.length;
    let best: { id: HeadId; share: number } | undefined;
    for (const map of this.maps.values()) {
      const { previousToken, induction = 0 } = headMetrics(map.square(n), this.tokens);
      const share = Math.max(previousToken, induction);
      if (best === undefined || share > best.share) best = { id: map.id, share };
    }
    return best?.id;
  }

  /** Takes rows in; those of positions that are there already are replaced. */
  add(captured: Captured): void {
    const { positions, nKv } = captured;
    for (const { layer, heads, attention, sinkMass } of captured.layers) {
      heads.forEach((head, h) => {
        const id = { layer, head };
        const map = this.maps.get(headName(id)) ?? new HeadMap(id);
        this.maps.set(headName(id), map);
        positions.forEach((position, r) => {
          const row = h * positions.length + r;
          map.rows[position] = attention.data.slice(row * nKv, row * nKv + position + 1);
          map.sinkMass[position] = sinkMass.data[row] ?? 0;
        });
      });
    }
  }
}

/** The keys of a row with the largest weights, largest first. */
export function largestKeys(row: ArrayLike<number>, n: number): number[] {
  return Array.from({ length: row.length }, (_, key) => key)
    .sort((a, b) => (row[b] ?? 0) - (row[a] ?? 0))
    .slice(0, n);
}

/** Weights that a page can hold and a capture can bring at once: 128 MB. */
const maxWeights = 32e6;
const maxTokens = 512;

/** Tokens of a text that all heads can be looked at for. */
export function tokenLimit(nHeads: number, nCtx: number): number {
  return Math.min(maxTokens, nCtx, Math.floor(Math.sqrt(maxWeights / nHeads)));
}

/** A token within a sentence. */
export const pieceName = (piece: string) => `“${pieceLabel(piece).trim()}”`;

/** A token as a label: its spaces seen, nothing empty. */
export function pieceLabel(piece: string): string {
  const shown = piece.replaceAll('\n', '⏎').replaceAll('\t', '⇥');
  return shown.trim() === '' ? '␣'.repeat(Math.max(1, shown.length)) : shown;
}
