// Puts the service worker beside the built pages, with the list of everything that belongs to the build.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Plugin } from 'vite';

const PLACE = /\/\* __SET__ \*\/ \{[^}]*\}/;

const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** @param source of the service worker; @param isolate it adds COOP and COEP, for hosts that cannot */
export function serviceWorkerFor(folder: string, source: string, isolate: boolean): string {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .map((name) => name.split(path.sep).join('/'))
    .filter((name) => name !== 'service_worker.js')
    .sort()
    .map((name) => [name, sha256(readFileSync(path.join(folder, name)))]);
  const version = sha256(JSON.stringify([files, source, isolate])).slice(0, 16);
  if (!PLACE.test(source)) throw new Error('the service worker has no place for its set');
  return source.replace(PLACE, () => JSON.stringify({ version, files, isolate }));
}

export function offline(sourceFile: string): Plugin {
  let folder = '';
  return {
    name: 'headlight:offline',
    apply: 'build',
    configResolved({ root, build }) {
      folder = path.resolve(root, build.outDir);
    },
    closeBundle() {
      const isolate = process.env.HEADLIGHT_ISOLATE === '1';
      const worker = serviceWorkerFor(folder, readFileSync(sourceFile, 'utf8'), isolate);
      writeFileSync(path.join(folder, 'service_worker.js'), worker);
    },
  };
}
