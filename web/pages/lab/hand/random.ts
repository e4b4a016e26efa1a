// Normal numbers that are the same on every machine. No DOM.

/** Mulberry32 (public domain): uniform in (0, 1). */
export function uniform(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 2 ** 32;
  };
}

/** Box-Muller: mean 0, variance 1. */
export function normals(n: number, seed: number): Float32Array {
  const next = uniform(seed);
  const values = new Float32Array(n);
  for (let i = 0; i < n; i += 2) {
    const radius = Math.sqrt(-2 * Math.log(next()));
    const angle = 2 * Math.PI * next();
    values[i] = radius * Math.cos(angle);
    if (i + 1 < n) values[i + 1] = radius * Math.sin(angle);
  }
  return values;
}

/** Standard deviation of q·k over draws of both, each of unit variance: the square root of dQk. */
export function scoreDeviation(dQk: number, nDraws: number, seed: number): number {
  const values = normals(2 * dQk * nDraws, seed);
  let [sum, squares] = [0, 0];
  for (let draw = 0; draw < nDraws; draw++) {
    let score = 0;
    const at = 2 * dQk * draw;
    for (let i = 0; i < dQk; i++) score += (values[at + i] ?? 0) * (values[at + dQk + i] ?? 0);
    sum += score;
    squares += score * score;
  }
  const mean = sum / nDraws;
  return Math.sqrt(squares / nDraws - mean * mean);
}
