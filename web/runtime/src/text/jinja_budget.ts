// How much a chat template may compute. Templates come out of model files and run synchronously in the
// worker, so a hostile or broken one could hang it or fill its memory; this counts work and stops it.
// For jinja_interpreter.ts. All bounds are counts, never time: the same template always ends the same.

import { BadModelError } from '../errors.js';
import { elementsOf, filterName, isString, type SyntaxNode, type Value } from './jinja_values.js';

/**
 * Units of work for one rendering: a syntax node, an iteration, a list element or 32 characters
 * handled is about one. 500 messages through Qwen 3's template take 55,000, 2,000 take 390,000; a
 * million take a second or two.
 */
export const MAX_WORK = 1_000_000;
/** UTF-16 units of any string during rendering: 50 times what a context of 32k tokens holds. */
export const MAX_TEXT_LENGTH = 1 << 22;
/** Nested evaluations, macro calls included; a level takes about 1 KiB of JavaScript's stack. */
export const MAX_DEPTH = 400;

const CHARS_PER_UNIT = 32;
/** The library makes three objects an item before the first iteration. */
const UNITS_PER_ITEM = 3;

export class WorkBudget {
  private left = MAX_WORK;
  private depth = 0;

  spend(units: number): void {
    this.left -= units;
    if (!(this.left >= 0)) {
      throw tooMuch(`did not end within ${MAX_WORK} steps`, MAX_WORK);
    }
  }

  enter(): void {
    this.spend(1);
    if (++this.depth > MAX_DEPTH) throw tooMuch(`nests deeper than ${MAX_DEPTH} levels`, MAX_DEPTH);
  }

  leave(): void {
    this.depth--;
  }

  /** After each result. */
  checkResult(value: Value): void {
    if (isString(value)) this.checkLength(value.value.length);
    else if (Array.isArray(value.value)) this.spend(value.value.length / CHARS_PER_UNIT);
  }

  checkLength(length: number): void {
    if (length > MAX_TEXT_LENGTH) {
      throw tooMuch(`makes a text of ${length} characters`, MAX_TEXT_LENGTH);
    }
  }

  /**
   * Each time a node has got one more input: what the library then does in one go with its inputs
   * (search, compare, concatenate) is paid for before it happens.
   */
  checkInputs(node: SyntaxNode, values: readonly Value[]): void {
    const latest = values.at(-1) as Value;
    switch (node.type) {
      case 'For':
        if (values.length === 1) this.spend(UNITS_PER_ITEM * lengthOf(latest));
        break;
      case 'BinaryExpression':
        if (node.operator?.value !== 'and' && node.operator?.value !== 'or') this.payFor(values);
        break;
      case 'FilterExpression':
        this.checkCall(filterName(node), values[0] as Value, values.slice(1));
        break;
      case 'MemberExpression':
        if (node.property?.type === 'SliceExpression') this.spendOn(values[0] as Value);
        break;
      case 'CallExpression':
      case 'TestExpression':
        this.spendOn(latest);
        break;
    }
  }

  /** A filter, or a method, just before it is applied to `owner`; the result's growth is bounded. */
  checkCall(name: string | undefined, owner: Value, args: readonly Value[]): void {
    this.spendOn(owner);
    const [first, second] = args;
    const text = isString(owner) ? owner.value : undefined;
    if (name === 'replace' && text !== undefined && first !== undefined && second !== undefined) {
      if (!isString(first) || !isString(second)) return; // the library refuses it
      const times = first.value === '' ? text.length + 1 : text.split(first.value).length - 1;
      this.checkLength(text.length + times * second.value.length);
    } else if (name === 'join') {
      const separator = first !== undefined && isString(first) ? first.value.length : 0;
      const length = text === undefined ? this.printed(owner) : text.length;
      this.checkLength(length + lengthOf(owner) * separator);
    } else if (name === 'indent' && text !== undefined) {
      this.checkLength(text.length + text.split('\n').length * indentOf(args));
    } else if ((name === 'tojson' || name === 'string') && text === undefined) {
      this.printed(owner, indentOf(args));
    }
  }

  /** A value about to be turned into text. @returns the text's length, roughly and not too small. */
  printed(value: Value, indent = 0, level = 1): number {
    this.spend(1);
    if (isString(value)) {
      this.spendOn(value);
      return value.value.length;
    }
    let length = 2;
    // Counted with repetition, as it prints: a list may hold another many times over.
    for (const element of elementsOf(value) ?? []) {
      length += this.printed(element, indent, level + 1) + 2 + indent * level;
      this.checkLength(length);
    }
    return length;
  }

  private payFor(values: readonly Value[]): void {
    const latest = values.at(-1) as Value;
    const containers = values.filter((value) => elementsOf(value) !== undefined);
    if (values.length < 2 || containers.length !== 1) this.spendOn(latest);
    else this.printed(containers[0] as Value); // compared with, or joined to, something as text
  }

  private spendOn(value: Value): void {
    this.spend(lengthOf(value) / CHARS_PER_UNIT);
  }
}

function lengthOf(value: Value): number {
  return isString(value) ? value.value.length : (elementsOf(value)?.length ?? 0);
}

/** The width among a filter's arguments; Jinja's default is 4. */
function indentOf(args: readonly Value[]): number {
  const widths = args.map((arg) => (typeof arg.value === 'number' ? arg.value : 0));
  return Math.max(4, ...widths);
}

function tooMuch(what: string, limit: number): BadModelError {
  return new BadModelError(
    `The model's chat template ${what} (limit ${limit}): it has no end, or the conversation is too long for it. ` +
      'Pass fewer or shorter messages, or render the prompt yourself and pass it to complete().',
    { key: 'tokenizer.chat_template', limit },
  );
}
