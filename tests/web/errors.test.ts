import { describe, expect, it } from 'vitest';
import * as errors from '../../web/runtime/src/errors.js';
import {
  AbortedError,
  asHeadlightError,
  BadModelError,
  errorFromCode,
  fromWire,
  HeadlightError,
  InternalError,
  QuotaError,
  toWire,
} from '../../web/runtime/src/errors.js';

type ErrorClass = new (message: string) => HeadlightError;
const EXPORTS: [string, unknown][] = Object.entries(errors);
const CLASSES = EXPORTS.filter(
  (entry): entry is [string, ErrorClass] =>
    typeof entry[1] === 'function' && entry[1].prototype instanceof HeadlightError,
);

describe('error classes', () => {
  it.each(CLASSES)('%s: its code is its name, and its name says it', (className, Class) => {
    const error = new Class('why');
    expect(`${error.code}Error`).toBe(className);
    expect(error.name).toBe(error.code === 'Aborted' ? 'AbortError' : className);
    expect(error).toBeInstanceOf(Error);
    expect(String(error)).toBe(`${error.name}: why`);
    expect(errorFromCode(error.code, 'why')).toBeInstanceOf(Class);
  });

  it('there is a class for each of the eleven codes', () => {
    expect(CLASSES).toHaveLength(11);
  });

  it('a code of another version becomes Internal and is kept in the details', () => {
    const error = errorFromCode('FromTheFuture', 'x', { key: 'k' });
    expect(error).toBeInstanceOf(InternalError);
    expect(error.details).toEqual({ key: 'k', code: 'FromTheFuture' });
    expect(errorFromCode('constructor', 'x')).toBeInstanceOf(InternalError);
  });
});

describe('across postMessage', () => {
  const overWire = (thrown: unknown): HeadlightError => fromWire(structuredClone(toWire(thrown)));

  it.each(CLASSES)('%s keeps class, code, message, details and stack', (_, Class) => {
    const error = new Class('needs 5 bytes');
    Object.assign(error, { details: { needed: 5, key: 'a' } });
    const copy = overWire(error);
    expect(copy).toBeInstanceOf(Class);
    expect(copy.code).toBe(error.code);
    expect(copy.message).toBe(error.message);
    expect(copy.details).toEqual({ needed: 5, key: 'a' });
    expect(copy.stack).toBe(error.stack);
    expect(copy.name).toBe(error.name);
  });

  it('other errors become Internal with their name and stack', () => {
    const error = new TypeError('x is not a function');
    const copy = overWire(error);
    expect([copy.code, copy.message]).toEqual(['Internal', 'TypeError: x is not a function']);
    expect(copy.stack).toBe(error.stack);
  });

  it.each([undefined, null, 42, 'text', { a: 1 }])('a thrown %j is reported', (thrown) => {
    expect(overWire(thrown)).toBeInstanceOf(InternalError);
  });
});

describe('errors of the platform', () => {
  it("an AbortSignal's reason is an AbortedError with the name AbortError", () => {
    const error = asHeadlightError(AbortSignal.abort().reason);
    expect(error).toBeInstanceOf(AbortedError);
    expect(error.name).toBe('AbortError');
  });

  it('a full storage is a QuotaError', () => {
    const error = asHeadlightError(new DOMException('full', 'QuotaExceededError'));
    expect(error).toBeInstanceOf(QuotaError);
    expect(error.cause).toBeInstanceOf(DOMException);
  });

  it('our own errors stay the same object', () => {
    const error = new BadModelError('x');
    expect(asHeadlightError(error)).toBe(error);
  });

  it('details are a copy', () => {
    const details = { key: 'a' };
    const error = new BadModelError('x', details);
    details.key = 'b';
    expect(error.details).toEqual({ key: 'a' });
  });
});
