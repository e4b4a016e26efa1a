// `generate`: continues a text or tokens, or answers a conversation from a file.
import { readFileSync } from 'node:fs';
import process from 'node:process';
import type { ChatMessage, Engine, GenerateOptions, GenerateResult, Run } from 'headlight-wasm';
import { withEngine } from './engine.js';
import { printJson } from './output.js';
import { type Call, numberOf, stringOf, tokensOf, UsageError, type Values } from './usage.js';

type Prompt = { text: string } | { tokens: number[] } | { messages: ChatMessage[] };

function promptOf(values: Values): Prompt {
  const given = ['prompt', 'tokens', 'chat'].filter((flag) => values[flag] !== undefined);
  if (given.length !== 1) {
    const what =
      given.length === 0
        ? 'nothing is given to continue'
        : `${given.map((flag) => `--${flag}`).join(' and ')} exclude each other`;
    throw new UsageError(
      `generate: ${what}: give one of --prompt TEXT, --tokens 1,2,3 or --chat FILE.json`,
    );
  }
  const tokens = tokensOf(values);
  if (tokens !== undefined) return { tokens };
  const file = stringOf(values, 'chat');
  return file === undefined
    ? { text: stringOf(values, 'prompt') ?? '' }
    : { messages: readMessages(file) };
}

/** The package checks the messages themselves. */
function readMessages(file: string): ChatMessage[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`--chat ${file}: ${(error as Error).message}`);
  }
  try {
    return JSON.parse(text) as ChatMessage[];
  } catch (error) {
    throw new UsageError(
      `--chat ${file} is not JSON: ${(error as Error).message}. Expected: [{"role": "user", "content": "..."}]`,
    );
  }
}

function generateOptions(values: Values): GenerateOptions {
  const options = {
    maxTokens: numberOf(values, 'max-tokens'),
    temperature: numberOf(values, 'temperature'),
    topK: numberOf(values, 'top-k'),
    topP: numberOf(values, 'top-p'),
    minP: numberOf(values, 'min-p'),
    seed: numberOf(values, 'seed'),
  };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function start(engine: Engine, prompt: Prompt, options: GenerateOptions): Run {
  if ('messages' in prompt) return engine.chat(prompt.messages, options);
  return engine.complete('tokens' in prompt ? prompt.tokens : prompt.text, options);
}

function report({ info }: Engine, result: GenerateResult) {
  const { text, tokens, finishReason, seed, usage, timings } = result;
  const { prefillMs, prefillTokensPerSecond, decodeMs, decodeTokensPerSecond } = timings;
  const { weightsBytes, kvCacheBytes, workspaceBytes, wasmBytes } = info.memory;
  return {
    text,
    tokens,
    promptTokens: usage.promptTokens,
    finishReason,
    seed,
    timings: {
      loadMs: info.loadMs,
      prefillMs,
      prefillTokensPerSecond,
      decodeMs,
      decodeTokensPerSecond,
    },
    runtime: info.runtime,
    memory: { weightsBytes, kvCacheBytes, workspaceBytes, wasmBytes },
  };
}

function summary(
  { info }: Engine,
  { tokens, finishReason, seed, usage, timings }: GenerateResult,
): string {
  const rate = (perSecond: number) => `${perSecond.toFixed(1)} tokens/s`;
  return [
    `\n[${finishReason}: ${tokens.length} tokens, ${rate(timings.decodeTokensPerSecond)};`,
    `prompt ${usage.promptTokens} tokens, ${rate(timings.prefillTokensPerSecond)};`,
    `loaded in ${(info.loadMs / 1000).toFixed(2)} s; ${info.runtime.module}, ${info.runtime.threads} thread(s); seed ${seed}]\n`,
  ].join(' ');
}

/** The exit code of a program that Ctrl-C ended. */
const INTERRUPTED = 130;

export async function generate(call: Call, json: boolean): Promise<void> {
  const prompt = promptOf(call.values);
  const options = generateOptions(call.values);
  const interrupt = new AbortController();
  // The second Ctrl-C ends the process as usual.
  process.once('SIGINT', () => {
    process.exitCode = INTERRUPTED;
    interrupt.abort();
  });
  await withEngine(call, { json, signal: interrupt.signal }, async (engine) => {
    const run = start(engine, prompt, { ...options, signal: interrupt.signal });
    if (!json) {
      for await (const { text } of run) process.stdout.write(text);
    }
    const result = await run.result();
    if (json) printJson(report(engine, result));
    else process.stderr.write(summary(engine, result));
  });
}
