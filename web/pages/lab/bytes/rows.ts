// The rows of a preset with what follows from them: our bytes beside the printed ones, the article's losses and their change,
// and which cut is the cheapest at each size. No DOM.
import {
  type LayoutCost,
  layoutCost,
  type Preset,
  type PresetRow,
  type Series,
} from 'headlight-wasm/lab';

export interface ComputedRow extends PresetRow {
  cost: LayoutCost;
  /** Against the first row, in per cent; negative is smaller. */
  fileChange: number;
  /** From the article's losses, in per cent. */
  lossChange: number | undefined;
  /** Parameters against the first row. */
  parameterChange: number;
}

function percent(value: number, base: number): number {
  return 100 * (value / base - 1);
}

export function computeRows(preset: Preset): ComputedRow[] {
  const costs = preset.rows.map(({ shape }) => layoutCost(shape, { weights: preset.weights }));
  const first = costs[0];
  const firstLoss = preset.rows[0]?.printed.loss;
  return preset.rows.map((row, i) => {
    const cost = costs[i] ?? layoutCost(row.shape);
    const { loss } = row.printed;
    return {
      ...row,
      cost,
      fileChange: percent(cost.fileBytes, first?.fileBytes ?? cost.fileBytes),
      lossChange:
        loss === undefined || firstLoss === undefined ? undefined : percent(loss, firstLoss),
      parameterChange: cost.parameters - (first?.parameters ?? cost.parameters),
    };
  });
}

export interface Level {
  /** Mean of the rows' file bytes. */
  bytes: number;
  rows: ComputedRow[];
  cheapest: ComputedRow;
  dearest: ComputedRow;
}

/** Rows within this of each other were made for the same size. */
const sameSizeBytes = 0.8e6;

/** The sizes at which several cuts can be compared, largest first. */
export function levels(rows: readonly ComputedRow[]): Level[] {
  const cuts = rows
    .filter((row) => row.lossChange !== undefined && row.series !== 'full')
    .sort((a, b) => b.cost.fileBytes - a.cost.fileBytes);
  const groups: ComputedRow[][] = [];
  for (const row of cuts) {
    const group = groups.at(-1);
    const first = group?.[0];
    if (group && first && first.cost.fileBytes - row.cost.fileBytes <= sameSizeBytes)
      group.push(row);
    else groups.push([row]);
  }
  return groups.filter((group) => group.length > 1).map(level);
}

function level(group: ComputedRow[]): Level {
  const byLoss = [...group].sort((a, b) => (a.lossChange ?? 0) - (b.lossChange ?? 0));
  const [cheapest, dearest] = [byLoss[0], byLoss.at(-1)];
  if (!cheapest || !dearest) throw new Error('a level has rows');
  const bytes = group.reduce((sum, { cost }) => sum + cost.fileBytes, 0) / group.length;
  return { bytes, rows: byLoss, cheapest, dearest };
}

export const seriesNames: Record<Series, string> = {
  full: 'the full head',
  'queries and keys': 'queries and keys cut',
  values: 'values changed',
  both: 'both cut',
};

/** "The cheapest cut at 65 MB is ..." for people who cannot see the chart. */
export function findings(rows: readonly ComputedRow[]): string[] {
  return levels(rows).map(({ bytes, cheapest, dearest }) => {
    const change = ({ lossChange }: ComputedRow) => `+${(lossChange ?? 0).toFixed(2)} %`;
    return (
      `At ${Math.round(bytes / 1e6)} MB: cheapest ${seriesNames[cheapest.series ?? 'full']} (${change(cheapest)} loss), ` +
      `dearest ${seriesNames[dearest.series ?? 'full']} (${change(dearest)}).`
    );
  });
}
