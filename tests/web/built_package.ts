// The package as it was built, by the entries that a user's program in Node gets.
import { existsSync } from 'node:fs';
import type * as Package from '../../web/runtime/src/index.js';
import type * as Lab from '../../web/runtime/src/lab/index.js';

export const packageEntry = new URL('../../web/runtime/dist/node.js', import.meta.url);
const labEntry = new URL('../../web/runtime/dist/lab/node.js', import.meta.url);
if (!existsSync(packageEntry)) throw new Error('the package is not built: run `npm run build`');

export const headlight = (await import(packageEntry.href)) as typeof Package;
export const headlightLab = (await import(labEntry.href)) as typeof Lab;
