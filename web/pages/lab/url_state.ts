// Everything that a visitor has changed, in the page's address: what is at its default is left out, so that a plain visit has
// a plain address and a shared one shows the same. Values are short texts; whoever reads checks them.

/** Browsers refuse more than about 100 changes of the address in 30 seconds. */
const writeDelayMs = 250;

export class UrlState {
  #values: URLSearchParams;
  #write: (search: string) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param write puts "?a=b" or "" into the address */
  constructor(search: string, write: (search: string) => void) {
    this.#values = new URLSearchParams(search);
    this.#write = write;
  }

  /** Undefined: at its default. */
  get(name: string): string | undefined {
    return this.#values.get(name) ?? undefined;
  }

  /** A number within its range, or undefined. */
  number(name: string, min: number, max: number): number | undefined {
    const text = this.get(name);
    const value = text === undefined || text.trim() === '' ? Number.NaN : Number(text);
    return value >= min && value <= max ? value : undefined;
  }

  /** Numbers separated by commas: exactly n finite ones, or undefined. */
  numbers(name: string, n: number): number[] | undefined {
    const list = this.get(name)?.split(',') ?? [];
    const values = list.map((text) => (text.trim() === '' ? Number.NaN : Number(text)));
    return values.length === n && values.every(Number.isFinite) ? values : undefined;
  }

  oneOf<T extends string>(name: string, known: readonly T[]): T | undefined {
    const value = this.get(name);
    return known.find((candidate) => candidate === value);
  }

  /** Undefined gives it back to its default. */
  set(name: string, value: string | number | undefined): void {
    if (value === undefined) this.#values.delete(name);
    else this.#values.set(name, String(value));
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.flush(), writeDelayMs);
  }

  flush(): void {
    clearTimeout(this.#timer);
    const text = this.#values.toString().replaceAll('%2C', ',');
    this.#write(text === '' ? '' : `?${text}`);
  }
}

export function pageState(): UrlState {
  return new UrlState(location.search, (search) => {
    history.replaceState(null, '', `${location.pathname}${search}${location.hash}`);
  });
}
