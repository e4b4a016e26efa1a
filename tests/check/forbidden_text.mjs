// Text that must not be committed: paths of one machine, host names of package registries; and in the decoder, the
// name of any architecture (what differs between families is data, in the table of architectures).
import { lineOf } from './source_files.mjs';

// Written in parts, so that this file passes its own check.
const registryHosts = [
  ['registry', 'npmjs', 'org'],
  ['registry', 'yarnpkg', 'com'],
  ['deb', 'debian', 'org'],
  ['security', 'debian', 'org'],
  ['pypi', 'org'],
  ['pythonhosted', 'org'],
  ['crates', 'io'],
  ['proxy', 'golang', 'org'],
  ['repo1', 'maven', 'org'],
].map((parts) => parts.join('.'));

const machinePath =
  /(?<![\w.}$"')-])\/(?:work|root|home|tmp|Users)\/|["'`(]\/(?:work|root|home|tmp|Users)\//g;

const decoderFiles = /^src\/model\/decoder[^/]*$/;
const knownArchitectures = [
  ...[
    'llama',
    'qwen',
    'gemma',
    'mistral',
    'mixtral',
    'phi',
    'gpt',
    'falcon',
    'bloom',
    'mpt',
    'needle',
  ],
  ...['smollm', 'olmo', 'deepseek', 'starcoder', 'stablelm', 'granite', 'cohere', 'minicpm'],
];

/** @returns {string[]} one line per offence */
export function forbiddenTextFindings(files) {
  return files.flatMap((file) => {
    const hosts = registryHosts.flatMap((host) => occurrences(file, host, 'a package registry'));
    const paths = [...file.text.matchAll(machinePath)].map(
      (match) => `${at(file, match.index)}: a path of one machine`,
    );
    return [...hosts, ...paths];
  });
}

/** @returns {string[]} one line per offence */
export function decoderNameFindings(files) {
  const names = new RegExp(`\\b(${knownArchitectures.join('|')})\\d*\\w*`, 'gi');
  return files
    .filter((file) => decoderFiles.test(file.path))
    .flatMap((file) =>
      [...file.text.matchAll(names)].map(
        (match) => `${at(file, match.index)}: names the architecture "${match[0]}"; say it as data`,
      ),
    );
}

function occurrences(file, needle, what) {
  const found = [];
  for (let i = file.text.indexOf(needle); i >= 0; i = file.text.indexOf(needle, i + 1)) {
    found.push(`${at(file, i)}: ${needle} is the host of ${what}`);
  }
  return found;
}

function at(file, offset) {
  return `${file.path}:${lineOf(file.text, offset)}`;
}
