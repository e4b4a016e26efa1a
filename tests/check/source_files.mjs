// The project's own text files, for the checks. Walks the folder rather than asking git, so that the checks also run
// on an unpacked archive.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

// Built, installed or not ours to judge.
const skippedFolders = new Set(['node_modules', 'build', 'dist', '.git', '.cache']);
const binary = /\.(gguf|bin|png|jpg|ico|woff2?|wasm|gz|tgz)$/;

/** @returns {{path: string, text: string}[]} paths relative to `root`, with forward slashes */
export function sourceFiles(root) {
  const found = [];
  const visit = (folder) => {
    for (const entry of readdirSync(path.join(root, folder), { withFileTypes: true })) {
      const name = path.posix.join(folder, entry.name);
      if (entry.isDirectory()) {
        if (!skippedFolders.has(entry.name)) visit(name);
      } else if (entry.isFile() && !binary.test(entry.name)) {
        found.push({ path: name, text: readFileSync(path.join(root, name), 'utf8') });
      }
    }
  };
  visit('');
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

export function isCpp(file) {
  return /^(src|wasm|tests\/cpp)\/.*\.(h|cc)$/.test(file.path);
}

/** The 1-based line of `offset` in `text`. */
export function lineOf(text, offset) {
  return text.slice(0, offset).split('\n').length;
}
