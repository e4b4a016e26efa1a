// Where each character of a rendered template comes from: the template, or the values given to it. So
// that "<|im_end|>" in a message stays text while the template's own becomes a token. For
// jinja_interpreter.ts, which reports every value that it computes with the values it came from.
//
// Strings are tracked by identity of the library's value objects. Joining and trimming keep exact
// ranges; any other string made of a foreign one counts as foreign altogether. In doubt a string is
// foreign: then a control token of the template may stay text, but never the other way round.

import {
  elementsOf,
  filterName,
  isFunction,
  isString,
  type SyntaxNode,
  type Value,
} from './jinja_values.js';

/** Half-open range of UTF-16 units that are not the template's. */
export interface ForeignRange {
  readonly start: number;
  readonly end: number;
}

/** The values that one syntax node evaluated on its way to a result. */
export interface Inputs {
  readonly node: SyntaxNode;
  /** Results of the expressions in it, in order. */
  readonly values: Value[];
  /** Results of the statement lists in it, in order. */
  readonly blocks: Value[];
}

interface Method {
  readonly owner: Value;
  readonly name: string;
}

const NONE: readonly ForeignRange[] = [];
const TRIMS = new Map([
  ['trim', { left: true, right: true }],
  ['strip', { left: true, right: true }],
  ['lstrip', { left: true, right: false }],
  ['rstrip', { left: false, right: true }],
]);

/** Part of a unit of work that looking at one element of a list costs. */
const UNITS_PER_ELEMENT = 1 / 8;

export class Origins {
  private readonly spend: (units: number) => void;
  private readonly seen = new WeakSet<Value>();
  private readonly ranges = new WeakMap<Value, readonly ForeignRange[]>();
  /** Containers whose keys are foreign. */
  private readonly foreignKeys = new WeakSet<Value>();
  private readonly methods = new WeakMap<Value, Method>();

  /** @param spend is told what following lists and objects costs. */
  constructor(spend: (units: number) => void) {
    this.spend = spend;
  }

  /** A value that the caller passes in. `trusted`: treat its strings as the template's own. */
  introduce(value: Value, trusted: boolean): void {
    this.seen.add(value);
    if (isString(value)) {
      if (!trusted) this.markForeign(value);
      return;
    }
    if (!trusted) this.foreignKeys.add(value);
    for (const element of elementsOf(value) ?? []) this.introduce(element, trusted);
  }

  trust(value: Value): void {
    this.ranges.delete(value);
  }

  foreignIn(value: Value): readonly ForeignRange[] {
    return this.ranges.get(value) ?? NONE;
  }

  /** The method that a function value is, if it was looked up on a value. */
  methodOf(value: Value): Method | undefined {
    return this.methods.get(value);
  }

  /** Records what `value`, the result of a node, is made of. */
  note(value: Value, inputs: Inputs): void {
    if (this.seen.has(value)) return; // handed on, not made here
    this.seen.add(value);
    if (isFunction(value)) this.noteMethod(value, inputs);
    else if (isString(value)) this.setRanges(value, this.rangesOfResult(value, inputs));
    else if (elementsOf(value) !== undefined) {
      // A container never seen before, from a variable: a macro's kwargs, or `loop`.
      const unknown = inputs.node.type === 'Identifier' && inputs.node.value !== 'loop';
      this.noteContainer(value, unknown || this.anyForeign(inputs));
    }
  }

  /** Records that `value` is the concatenation of `parts` as text. */
  noteConcatenation(value: Value, parts: readonly Value[]): void {
    if (this.seen.has(value)) return;
    this.seen.add(value);
    this.setRanges(value, this.concatenation(value, parts));
  }

  private rangesOfResult(value: Value, inputs: Inputs): readonly ForeignRange[] {
    const { node, values, blocks } = inputs;
    const operator = node.operator?.value;
    switch (node.type) {
      case 'StringLiteral':
        return NONE;
      case 'BinaryExpression':
        if (operator === '+' || operator === '~') return this.concatenation(value, values);
        break;
      case 'For':
        return this.concatenation(value, blocks);
      case 'Identifier':
        // A string never seen before, from a variable: the key of an object that is looped over.
        return whole(value);
      case 'FilterExpression':
      case 'FilterStatement': {
        const operand = node.type === 'FilterStatement' ? blocks[0] : values[0];
        return this.rangesOfTrim(value, operand, filterName(node)) ?? this.inDoubt(value, inputs);
      }
      case 'CallExpression': {
        const method = this.methods.get(values.at(-1) as Value);
        const trimmed = this.rangesOfTrim(value, method?.owner, method?.name);
        return trimmed ?? this.inDoubt(value, inputs);
      }
    }
    return this.inDoubt(value, inputs);
  }

  private concatenation(value: Value, parts: readonly Value[]): readonly ForeignRange[] {
    const ranges: { start: number; end: number }[] = [];
    let offset = 0;
    for (const part of parts) {
      if (part.type === 'NullValue' || part.type === 'UndefinedValue') continue;
      const length = isString(part) ? part.value.length : part.toString().length;
      const all = !isString(part) && this.isForeign(part) ? [{ start: 0, end: length }] : NONE;
      for (const { start, end } of isString(part) ? this.foreignIn(part) : all) {
        const last = ranges.at(-1);
        if (last?.end === offset + start) last.end = offset + end;
        else ranges.push({ start: offset + start, end: offset + end });
      }
      offset += length;
    }
    // Never seen; a library that joins otherwise must not make foreign text trusted.
    if (offset !== (value.value as string).length) {
      return parts.some((part) => this.isForeign(part)) ? whole(value) : NONE;
    }
    return ranges;
  }

  private rangesOfTrim(
    value: Value,
    from: Value | undefined,
    name: string | undefined,
  ): readonly ForeignRange[] | undefined {
    const sides = TRIMS.get(name ?? '');
    if (sides === undefined || from === undefined || !isString(from)) return undefined;
    const skipped = sides.left ? from.value.length - from.value.trimStart().length : 0;
    const length = (value.value as string).length;
    return this.foreignIn(from)
      .map(({ start, end }) => ({
        start: Math.max(start - skipped, 0),
        end: Math.min(end - skipped, length),
      }))
      .filter(({ start, end }) => start < end);
  }

  private inDoubt(value: Value, inputs: Inputs): readonly ForeignRange[] {
    return this.anyForeign(inputs) ? whole(value) : NONE;
  }

  private anyForeign({ values, blocks }: Inputs): boolean {
    return values.some((v) => this.isForeign(v)) || blocks.some((v) => this.isForeign(v));
  }

  private isForeign(value: Value, visited = new Set<Value>()): boolean {
    if (isString(value)) return this.foreignIn(value).length > 0;
    if (this.foreignKeys.has(value)) return true;
    if (visited.has(value)) return false; // a namespace may hold itself
    visited.add(value);
    this.spend(UNITS_PER_ELEMENT);
    const owner = this.methods.get(value)?.owner;
    if (owner !== undefined) return this.isForeign(owner, visited);
    return (elementsOf(value) ?? []).some((element) => this.isForeign(element, visited));
  }

  /** A new container: strings in it that were not seen before were made together with it. */
  private noteContainer(value: Value, foreign: boolean): void {
    if (foreign && value.value instanceof Map) this.foreignKeys.add(value);
    const elements = elementsOf(value) ?? [];
    this.spend(elements.length * UNITS_PER_ELEMENT);
    for (const element of elements) {
      if (this.seen.has(element)) continue;
      this.seen.add(element);
      if (!isString(element)) this.noteContainer(element, foreign);
      else if (foreign) this.markForeign(element);
    }
  }

  private noteMethod(value: Value, { node, values }: Inputs): void {
    const owner = values[0];
    if (node.type !== 'MemberExpression' || owner === undefined) return;
    const name = values[1]?.value ?? node.property?.value;
    if (typeof name === 'string') this.methods.set(value, { owner, name });
  }

  private markForeign(value: Value): void {
    this.setRanges(value, whole(value));
  }

  private setRanges(value: Value, ranges: readonly ForeignRange[]): void {
    if (ranges.length > 0) this.ranges.set(value, ranges);
  }
}

function whole(value: Value): readonly ForeignRange[] {
  const { length } = value.value as string;
  return length === 0 ? NONE : [{ start: 0, end: length }];
}
