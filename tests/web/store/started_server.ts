// A server that goes wrong on demand, for the tests of one file, and addresses on it that nobody has used.
import { afterAll, beforeAll } from 'vitest';
import { FaultServer } from './fault_server.js';

export const server = new FaultServer();
beforeAll(() => server.start());
afterAll(() => server.stop());

let nPaths = 0;
export const newPath = () => `/model-${nPaths++}.gguf`;
