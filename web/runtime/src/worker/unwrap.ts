// WASM reports errors as data; here they become the package's error classes.
import type { Result } from '../../../../wasm/headlight.js';
import { errorFromCode } from '../errors.js';

export function unwrap<T>(result: Result<T>): T {
  if (result.error !== undefined) {
    const { code, message, details } = result.error;
    throw errorFromCode(code, message, details);
  }
  return result.value;
}
