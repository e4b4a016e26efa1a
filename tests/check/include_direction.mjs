// Which folder of src may include which: those before it, never a sibling, never one after it.
// The web side has one such rule: pages and examples use the public package alone.
import { lineOf } from './source_files.mjs';

// Folders in one row are siblings.
const layers = [
  ['base'],
  ['simd'],
  ['gguf', 'quant'],
  ['kernels'],
  ['position', 'kv'],
  ['attention'],
  ['model'],
  ['sample'],
  ['session'],
  ['lab'],
];
const rank = new Map(layers.flatMap((row, i) => row.map((folder) => [folder, i])));

const includeLine = /^[ \t]*#[ \t]*include[ \t]+"([^"]+)"/gm;
// The package's entries are its name and its name with /lab.
const privateImport =
  /(?:from|import)\s*\(?\s*['"]([^'"]*\/runtime\/(?:src|dist)\/[^'"]*|headlight-wasm\/(?!lab['"])[^'"]*)['"]/g;

/** @returns {string[]} one line per offence */
export function includeDirectionFindings(files) {
  return files.flatMap((file) => {
    if (/^src\/.*\.(h|cc)$/.test(file.path)) return cppFindings(file);
    if (/^(web\/pages|examples)\/.*\.(ts|js|mjs|html)$/.test(file.path)) return webFindings(file);
    return [];
  });
}

function cppFindings(file) {
  const folder = file.path.split('/')[1];
  if (!rank.has(folder))
    return [`${file.path}: src/${folder} has no place in the order of folders`];
  return [...file.text.matchAll(includeLine)].flatMap((match) => {
    const target = match[1].split('/')[0];
    const where = `${file.path}:${lineOf(file.text, match.index)}`;
    if (!rank.has(target) || !match[1].includes('/')) {
      return [`${where}: "${match[1]}" is not relative to src, or its folder is unknown`];
    }
    const allowed = target === folder || rank.get(target) < rank.get(folder);
    return allowed ? [] : [`${where}: src/${folder} must not include "${match[1]}"`];
  });
}

function webFindings(file) {
  return [...file.text.matchAll(privateImport)].map(
    (match) =>
      `${file.path}:${lineOf(file.text, match.index)}: "${match[1]}" is not public: import "headlight-wasm" or "headlight-wasm/lab"`,
  );
}
