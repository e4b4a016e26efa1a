// Every error that the package throws, for its users and for both sides of the worker protocol.
// Each one is a HeadlightError with a string `code`, a message that names the value and the remedy, and
// `details` with the numbers and keys involved. The text layer, the store and the engine throw these;
// WASM reports the same codes as data, and `errorFromCode` turns them into the class.

export type ErrorCode =
  | 'OutOfMemory' // needs more memory than the browser or device gives
  | 'BadModel' // the file is damaged or contradicts itself
  | 'Unsupported' // a well-formed file or feature that Headlight does not implement
  | 'ContextFull' // the prompt cannot fit into the context
  | 'Quota' // the browser's storage is full
  | 'Network' // a download failed
  | 'Integrity' // bytes do not match their expected hash or length
  | 'Aborted' // the caller's AbortSignal fired
  | 'WorkerLost' // the worker ended or failed to start
  | 'BadOption' // an argument or option is invalid or cannot be honoured
  | 'Internal'; // a fault of Headlight itself

export type ErrorDetails = Readonly<Record<string, string | number>>;

export class HeadlightError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(
    code: ErrorCode,
    message: string,
    details: ErrorDetails = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.code = code;
    this.details = { ...details };
    // AbortError is the name that callers of fetch() and AbortSignal already test for.
    const name = code === 'Aborted' ? 'AbortError' : `${code}Error`;
    Object.defineProperty(this, 'name', { value: name, configurable: true, writable: true });
  }
}

export class OutOfMemoryError extends HeadlightError {
  declare readonly code: 'OutOfMemory';
  constructor(message: string, details?: ErrorDetails, options?: ErrorOptions) {
    super('OutOfMemory', message, details, options);
  }
}

export class BadModelError extends HeadlightError {
  declare readonly code: 'BadModel';
  constructor(message: string, details?: ErrorDetails, options?: ErrorOptions) {
    super('BadModel', message, details, options);
  }
}

export class UnsupportedError extends HeadlightError {
  declare readonly code: 'Unsupported';
  constructor(message: string, details?: ErrorDetails, options?: ErrorOptions) {
    super('Unsupported', message, details, options);
  }
}

export class ContextFullError extends HeadlightError {
  declare readonly code: 'ContextFull';
  constructor(message: string, details?: ErrorDetails, options?: ErrorOptions) {
    super('ContextFull', message, details, options);
  }
}

export class QuotaError extends HeadlightError {
  declare readonly code: 'Quota';
  constructor(message: string, details?: ErrorDetails, options?: ErrorOptions) {
    super('Quota', message, details, options);
  }
}

export class NetworkError extends HeadlightError {
  declare readonly code: 'Network';
  constructor(message: string, details?: ErrorDetails, options?: ErrorOptions) {
    super('Network', message, details, options);
  }
}

export class IntegrityError extends HeadlightError {
  declare readonly code: 'Integrity';
  constructor(message: string, details?: ErrorDetails, options?: ErrorOptions) {
    super('Integrity', message, details, options);
  }
}

/** `error.name` is 'AbortError', so code written for fetch() recognises it. */
export class AbortedError extends HeadlightError {
  declare readonly code: 'Aborted';
  constructor(
    message = 'The operation was aborted',
    details?: ErrorDetails,
    options?: ErrorOptions,
  ) {
    super('Aborted', message, details, options);
  }
}

export class WorkerLostError extends HeadlightError {
  declare readonly code: 'WorkerLost';
  constructor(message: string, details?: ErrorDetails, options?: ErrorOptions) {
    super('WorkerLost', message, details, options);
  }
}

export class BadOptionError extends HeadlightError {
  declare readonly code: 'BadOption';
  constructor(message: string, details?: ErrorDetails, options?: ErrorOptions) {
    super('BadOption', message, details, options);
  }
}

export class InternalError extends HeadlightError {
  declare readonly code: 'Internal';
  constructor(message: string, details?: ErrorDetails, options?: ErrorOptions) {
    super('Internal', message, details, options);
  }
}

type ErrorClass = new (
  message: string,
  details?: ErrorDetails,
  options?: ErrorOptions,
) => HeadlightError;

const ERROR_CLASSES: Readonly<Record<ErrorCode, ErrorClass>> = {
  OutOfMemory: OutOfMemoryError,
  BadModel: BadModelError,
  Unsupported: UnsupportedError,
  ContextFull: ContextFullError,
  Quota: QuotaError,
  Network: NetworkError,
  Integrity: IntegrityError,
  Aborted: AbortedError,
  WorkerLost: WorkerLostError,
  BadOption: BadOptionError,
  Internal: InternalError,
};

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERROR_CLASSES, value);
}

/** The class for a code that arrived as data (from WASM). A code this build does not know is Internal. */
export function errorFromCode(
  code: string,
  message: string,
  details: ErrorDetails = {},
): HeadlightError {
  if (isErrorCode(code)) return new ERROR_CLASSES[code](message, details);
  return new InternalError(message, { ...details, code });
}

/** What crosses postMessage: structured clone would drop the class, `code` and `details`. */
export interface WireError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: ErrorDetails;
  readonly stack: string;
}

/** Characters of an address in a message. */
const SHOWN_ADDRESS = 200;

/** For messages: a data: address may be as long as a model. */
export function shownAddress(url: string): string {
  return url.length > SHOWN_ADDRESS ? `${url.slice(0, SHOWN_ADDRESS - 3)}...` : url;
}

/** Any thrown value as a HeadlightError; HeadlightErrors are returned as they are. */
export function asHeadlightError(thrown: unknown): HeadlightError {
  if (thrown instanceof HeadlightError) return thrown;
  if (thrown instanceof Error || isDomException(thrown)) {
    const { name, message } = thrown;
    if (name === 'AbortError') return new AbortedError(message, {}, { cause: thrown });
    if (name === 'QuotaExceededError') return new QuotaError(message, {}, { cause: thrown });
    const error = new InternalError(`${name}: ${message}`, {}, { cause: thrown });
    if (typeof thrown.stack === 'string') error.stack = thrown.stack;
    return error;
  }
  return new InternalError(`A value that is not an Error was thrown: ${String(thrown)}`);
}

export function toWire(thrown: unknown): WireError {
  const { code, message, details, stack } = asHeadlightError(thrown);
  return { code, message, details: { ...details }, stack: stack ?? '' };
}

/** The error class again, with the stack of the side that threw it. */
export function fromWire(wire: WireError): HeadlightError {
  const error = errorFromCode(wire.code, wire.message, wire.details);
  if (wire.stack !== '') error.stack = wire.stack;
  return error;
}

// Older engines' DOMException is not an instance of Error.
function isDomException(
  value: unknown,
): value is { name: string; message: string; stack?: string } {
  return typeof DOMException !== 'undefined' && value instanceof DOMException;
}
