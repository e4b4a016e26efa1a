// Heatmaps on canvas: one pixel a weight, drawn once when the numbers change and scaled by the browser, so that pointing costs
// nothing. The shade is the square root of the weight: small weights stay visible.

export interface HeatColours {
  low: Rgb;
  high: Rgb;
  /** Where a row can see nothing: keys after it. */
  none: Rgb;
}
export type Rgb = readonly [number, number, number];

/** "#1c5b82" -> 28, 91, 130; "#fff" is short for "#ffffff", and what a build makes of it. */
export function rgbOf(hex: string): Rgb {
  const digits = hex.trim().slice(1);
  const whole = digits.length === 3 ? digits.replace(/./g, '$&$&') : digits;
  const value = Number.parseInt(whole, 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

export function themeColours(): HeatColours {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => rgbOf(style.getPropertyValue(name));
  return { low: colour('--surface'), high: colour('--accent'), none: colour('--sunken') };
}

export const shadeOf = (weight: number) => Math.sqrt(Math.min(1, Math.max(0, weight)));

export function mixed(low: Rgb, high: Rgb, share: number): Rgb {
  const at = (i: 0 | 1 | 2) => Math.round(low[i] + (high[i] - low[i]) * share);
  return [at(0), at(1), at(2)];
}

/** WCAG 2: relative luminance of an sRGB colour. */
export function luminance(rgb: Rgb): number {
  const [r, g, b] = rgb.map((channel) => {
    const value = channel / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Black or white, whichever has more contrast: at least 4.58 on any colour. Theme inks have less on middle shades. */
export function inkOn(rgb: Rgb): '#000' | '#fff' {
  return (luminance(rgb) + 0.05) ** 2 > 1.05 * 0.05 ? '#000' : '#fff';
}

/** rows[i] has the weights of keys 0 to i. The canvas becomes n x n pixels. */
export function drawHeat(
  canvas: HTMLCanvasElement,
  rows: readonly (Float32Array | undefined)[],
  n: number,
  { low, high, none }: HeatColours,
): void {
  if (canvas.width !== n || canvas.height !== n) {
    canvas.width = n;
    canvas.height = n;
  }
  // Written once and shown for long: dozens of canvases that the compositor asks for a new picture cost each frame.
  const context = canvas.getContext('2d', { willReadFrequently: true });
  if (!context || n === 0) return;
  const image = context.createImageData(n, n);
  for (let i = 0; i < n; i++) {
    const row = rows[i];
    for (let j = 0; j < n; j++) {
      const [r, g, b] = j > i || !row ? none : mixed(low, high, shadeOf(row[j] ?? 0));
      image.data.set([r, g, b, 255], 4 * (i * n + j));
    }
  }
  context.putImageData(image, 0, 0);
}
