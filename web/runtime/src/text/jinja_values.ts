// The few facts about @huggingface/jinja's run-time values and syntax nodes that the guarded interpreter
// relies on: the library exports the interpreter, not these classes. For jinja_*.ts.

import type { Environment, Interpreter } from '@huggingface/jinja';

export type Value = ReturnType<Interpreter['evaluate']>;
export type Statement = NonNullable<Parameters<Interpreter['evaluate']>[0]>;
export type Scope = Environment;

/** The fields of a syntax node that are looked at, whatever its kind. */
export interface SyntaxNode {
  readonly type: string;
  readonly operator?: { readonly value: string };
  readonly filter?: SyntaxNode;
  readonly callee?: SyntaxNode;
  readonly property?: SyntaxNode;
  readonly value?: unknown;
}

export function isString(value: Value): value is Value & { value: string } {
  return value.type === 'StringValue';
}

export function isFunction(value: Value): boolean {
  return value.type === 'FunctionValue';
}

/** The values inside an array, tuple, object or namespace; undefined for anything else. */
export function elementsOf(value: Value): readonly Value[] | undefined {
  if (Array.isArray(value.value)) return value.value as Value[];
  if (value.value instanceof Map) return [...(value.value as Map<string, Value>).values()];
  return undefined;
}

/** The name of a filter, with or without arguments. */
export function filterName(node: SyntaxNode): string | undefined {
  const name = node.filter?.type === 'CallExpression' ? node.filter.callee : node.filter;
  return typeof name?.value === 'string' ? name.value : undefined;
}
