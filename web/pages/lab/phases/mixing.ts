// Two facts about a block that its table cannot show: what enters the first one is rows of the embedding table, and one head,
// taken out, changes every place of what W_O gives.
import type { BlockTrace, LabModel, ModelLab, TracedTensorName } from 'headlight-wasm/lab';
import { shown } from '../hand/arithmetic.js';

const shownTokens = 4;
const shownPlaces = 4;

export interface EmbeddingRows {
  ids: number[];
  pieces: string[];
  /** [ids.length, dModel]: what enters block 0. */
  rows: Float32Array;
  vocabSize: number;
}

export async function embeddingRows(
  model: LabModel,
  ids: readonly number[],
  pieces: readonly string[],
  vocabSize: number,
): Promise<EmbeddingRows> {
  const some = ids.slice(0, shownTokens);
  const { tensors } = await model.trace(some, { layer: 0, budgetMs: 0 });
  const rows = valuesOf({ tensors }, 'input');
  return { ids: [...some], pieces: pieces.slice(0, shownTokens), rows, vocabSize };
}

export function embeddingText({ ids, pieces, rows, vocabSize }: EmbeddingRows): string {
  const width = rows.length / Math.max(1, ids.length);
  const lines = ids.map((id, i) => {
    const values = [...rows.subarray(i * width, i * width + shownPlaces)];
    return `“${pieces[i] ?? ''}” is row ${id}: ${values.map((x) => shown(x, 3)).join(', ')}, …`;
  });
  const table = `${vocabSize.toLocaleString('en-GB')} × ${width.toLocaleString('en-GB')}`;
  return `Looked up, not computed: what enters block 0 is rows of the embedding table, ${table}. ${lines.join('; ')}.`;
}

export interface Mixing {
  layer: number;
  head: number;
  /** Places of what W_O gives that changed, of so many. */
  changed: number;
  places: number;
  /** Places of queries, keys and values that changed: of what comes before W_O. */
  before: number;
}

/** The block with and without one head. */
export async function mixingOf(
  lab: ModelLab,
  ids: readonly number[],
  layer: number,
  head: number,
): Promise<Mixing> {
  const whole = await lab.original.trace([...ids], { layer, budgetMs: 0 });
  const model = await lab.edit({ prune: [{ layer, head }] });
  try {
    const pruned = await model.trace([...ids], { layer, budgetMs: 0 });
    const differing = (name: TracedTensorName) => {
      const [a, b] = [valuesOf(whole, name), valuesOf(pruned, name)];
      return a.reduce((n, x, i) => n + (x === b[i] ? 0 : 1), 0);
    };
    return {
      ...{ layer, head },
      changed: differing('attention out'),
      places: valuesOf(whole, 'attention out').length,
      before: differing('norm') + differing('k') + differing('v'),
    };
  } finally {
    await model.drop();
  }
}

export function mixingText({ layer, head, changed, places, before }: Mixing): string {
  const count = (n: number) => n.toLocaleString('en-GB');
  return (
    `Without head ${head} of layer ${layer}, ${count(changed)} of ${count(places)} numbers behind W_O are others, and ` +
    `${before === 0 ? 'no key or value' : `${count(before)} before it`}: W_O is dense, and one head reaches every place.`
  );
}

function valuesOf({ tensors }: Pick<BlockTrace, 'tensors'>, name: TracedTensorName): Float32Array {
  return tensors.find((tensor) => tensor.name === name)?.values ?? new Float32Array();
}
