// Messages -> prompt, by the Jinja chat template in the model file. For the engine's worker.
// The prompt comes back in segments that tell the template's own text from everything the caller passed
// in, so that only the template can write control tokens. Rendering is bounded (jinja_budget.ts).

import { Environment, parse, tokenize } from '@huggingface/jinja';
import { BadModelError, BadOptionError, HeadlightError, UnsupportedError } from '../errors.js';
import { WorkBudget } from './jinja_budget.js';
import { TemplateRefusal, templateGlobals } from './jinja_globals.js';
import { WatchedInterpreter } from './jinja_interpreter.js';
import { type ForeignRange, Origins } from './jinja_origin.js';
import { isString, type Value } from './jinja_values.js';
import type { GgufMetadata } from './metadata.js';
import type { TextSegment } from './tokenizer.js';

/** Other fields (tool_calls, name, ...) are handed to the template as they are. */
export interface TemplateMessage {
  readonly role: string;
  readonly content: string;
}

export interface RenderOptions {
  /** End with the opening of the assistant's turn. Default true. */
  readonly addGenerationPrompt?: boolean;
  /** Handed to the template; an error if the template has no place for tools. */
  readonly tools?: readonly unknown[];
  /** Further variables of the template, such as enable_thinking. */
  readonly variables?: Readonly<Record<string, unknown>>;
  /** What strftime_now tells. Default: now. */
  readonly now?: Date;
}

/** The part of Tokenizer that templates need. */
export interface TemplateVocabulary {
  readonly bosId: number | undefined;
  readonly eosId: number | undefined;
  tokenText(id: number): string;
  idOf(tokenText: string): number | undefined;
}

type Program = ReturnType<typeof parse>;

const KEY = 'tokenizer.chat_template';
const REMEDY = 'Render the prompt yourself and pass it to complete().';
/** The largest known templates have 40,000 characters; the library's lexer copies text per token. */
const MAX_TEMPLATE_LENGTH = 1 << 18;
/** The library removes {% generation %} by an expression that is quadratic in runs of white space. */
const MAX_WHITE_SPACE_RUN = 4096;
// A role goes into turn headers, where templates build control tokens out of it ('<|' + role + '|>').
const ROLE = /^[A-Za-z][\w.-]{0,63}$/;
/** What a vocabulary with <|im_start|> was all but certainly trained on. */
const CHATML =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + " +
  "'<|im_end|>' + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

export class ChatTemplate {
  /** The Jinja source in use; undefined when the model has none and none can be assumed. */
  readonly source: string | undefined;
  /** Where the source is from: the file, or ChatML because the vocabulary has <|im_start|>. */
  readonly origin: 'file' | 'chatml' | 'none';
  private readonly toolSource: string | undefined;
  private readonly tokens: Readonly<Record<string, string>>;
  private readonly programs = new Map<string, Program>();

  /** Never throws: a template that cannot be used matters only to those who render it. */
  static fromMetadata(meta: GgufMetadata, vocabulary: TemplateVocabulary): ChatTemplate {
    return new ChatTemplate(meta, vocabulary);
  }

  private constructor(meta: GgufMetadata, vocabulary: TemplateVocabulary) {
    const own = meta.get(KEY);
    const chatml = vocabulary.idOf('<|im_start|>') !== undefined ? CHATML : undefined;
    this.source = typeof own === 'string' ? own : chatml;
    this.origin = typeof own === 'string' ? 'file' : chatml !== undefined ? 'chatml' : 'none';
    const forTools = meta.get(`${KEY}.tool_use`);
    this.toolSource = typeof forTools === 'string' ? forTools : undefined;
    const { bosId, eosId } = vocabulary;
    this.tokens = {
      bos_token: bosId === undefined ? '' : vocabulary.tokenText(bosId),
      eos_token: eosId === undefined ? '' : vocabulary.tokenText(eosId),
    };
  }

  /**
   * The prompt for a conversation, for Tokenizer.encodeSegments. Segments that are not `special` hold
   * what came from the messages, tools and variables; roles count as the template's.
   *
   * @throws BadOptionError for messages that are malformed or that the template refuses;
   *   UnsupportedError, naming it, for a tag, filter or test that is not implemented, or if there is
   *   no template; BadModelError if rendering exceeds its bounds.
   */
  render(messages: readonly TemplateMessage[], options: RenderOptions = {}): TextSegment[] {
    checkMessages(messages);
    const source = this.sourceFor(options.tools);
    const budget = new WorkBudget();
    const origins = new Origins((units) => budget.spend(units));
    try {
      const program = this.parsed(source);
      const environment = this.environment(messages, options, origins, budget);
      const result = new WatchedInterpreter(environment, budget, origins).run(program);
      return isString(result) ? cut(result.value, origins.foreignIn(result)) : [];
    } catch (thrown) {
      throw asTemplateError(thrown);
    }
  }

  private sourceFor(tools: readonly unknown[] | undefined): string {
    const source = tools === undefined ? this.source : (this.toolSource ?? this.source);
    if (source === undefined) {
      throw new UnsupportedError(
        `The model file has no ${KEY}, and its vocabulary does not tell which format it was trained ` +
          `on (there is no <|im_start|>). ${REMEDY}`,
        { key: KEY },
      );
    }
    if (tools !== undefined && !/\btools\b/.test(source)) {
      throw new BadOptionError(
        "The model's chat template has no place for tools. Describe them in a system message instead.",
        { option: 'tools', key: KEY },
      );
    }
    return source;
  }

  private parsed(source: string): Program {
    const known = this.programs.get(source);
    if (known !== undefined) return known;
    checkSource(source);
    const program = parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true }));
    this.programs.set(source, program);
    return program;
  }

  private environment(
    messages: readonly TemplateMessage[],
    options: RenderOptions,
    origins: Origins,
    budget: WorkBudget,
  ): Environment {
    const environment = new Environment();
    const own = {
      ...templateGlobals(budget, options.now ?? new Date()),
      ...this.tokens,
      add_generation_prompt: options.addGenerationPrompt ?? true,
    };
    for (const [name, value] of Object.entries(own)) {
      origins.introduce(environment.set(name, value), true);
    }
    const conversation = environment.set('messages', messages);
    origins.introduce(conversation, false);
    for (const message of conversation.value as Value[]) {
      const role = (message.value as Map<string, Value>).get('role');
      if (role !== undefined) origins.trust(role);
    }
    // As transformers passes it: defined, and none when absent.
    origins.introduce(environment.set('tools', options.tools ?? null), false);
    for (const [name, value] of Object.entries(options.variables ?? {})) {
      if (environment.variables.has(name)) {
        throw new BadOptionError(`variables.${name} cannot be set: Headlight sets it.`, { name });
      }
      origins.introduce(environment.set(name, value), false);
    }
    return environment;
  }
}

function checkMessages(messages: readonly TemplateMessage[]): void {
  messages.forEach((message, index) => {
    const { role, content } = message as { role: unknown; content: unknown };
    if (typeof role !== 'string' || !ROLE.test(role)) {
      throw new BadOptionError(
        `messages[${index}].role is ${JSON.stringify(role)}; a role is a short word such as 'user'.`,
        { option: 'messages', index },
      );
    }
    const calls = content === undefined || content === null ? 'tool_calls' in message : false;
    if (typeof content !== 'string' && !calls) {
      throw new BadOptionError(
        `messages[${index}].content is of type ${content === null ? 'null' : typeof content}; ` +
          'a string was expected.',
        { option: 'messages', index },
      );
    }
  });
}

function checkSource(source: string): void {
  if (source.length > MAX_TEMPLATE_LENGTH) {
    throw new BadModelError(
      `${KEY} has ${source.length} characters (limit ${MAX_TEMPLATE_LENGTH}). ${REMEDY}`,
      { key: KEY, length: source.length, limit: MAX_TEMPLATE_LENGTH },
    );
  }
  let run = 0;
  for (const character of source) {
    run = /\s/.test(character) ? run + 1 : 0;
    if (run > MAX_WHITE_SPACE_RUN) {
      throw new BadModelError(
        `${KEY} has more than ${MAX_WHITE_SPACE_RUN} white space characters in a row. ${REMEDY}`,
        { key: KEY, limit: MAX_WHITE_SPACE_RUN },
      );
    }
  }
}

function cut(text: string, foreign: readonly ForeignRange[]): TextSegment[] {
  const segments: TextSegment[] = [];
  const add = (start: number, end: number, special: boolean): void => {
    if (start < end) segments.push({ text: text.slice(start, end), special });
  };
  let done = 0;
  for (const { start, end } of foreign) {
    add(done, start, true);
    add(start, end, false);
    done = end;
  }
  add(done, text.length, true);
  return segments;
}

// What the library says of things that it does not implement.
const NOT_IMPLEMENTED: readonly (readonly [kind: string, pattern: RegExp])[] = [
  ['tag', /^Unknown statement type: (\w+)/],
  [
    'filter',
    /^Unknown \w*filter: (\w+)|^Cannot apply filter "(\w+)"|^Unknown \w+Value filter: (\w+)/i,
  ],
  ['test', /^Unknown test: (\w+)/],
];

function asTemplateError(thrown: unknown): unknown {
  if (thrown instanceof HeadlightError) return thrown;
  if (thrown instanceof TemplateRefusal) {
    return new BadOptionError(`The model's chat template refuses the messages: ${thrown.message}`, {
      option: 'messages',
      key: KEY,
    });
  }
  const { message } = thrown as Error;
  if (thrown instanceof RangeError) {
    return new BadModelError(
      `The model's chat template needs too much memory or nesting. ${REMEDY}`,
      {
        key: KEY,
        cause: message,
      },
    );
  }
  for (const [kind, pattern] of NOT_IMPLEMENTED) {
    const name = pattern
      .exec(message)
      ?.slice(1)
      .find((group) => group !== undefined);
    if (name === undefined) continue;
    return new UnsupportedError(
      `The model's chat template uses the ${kind} '${name}' in a way that is not implemented ` +
        `(${message}). ${REMEDY}`,
      { key: KEY, [kind]: name },
    );
  }
  return new UnsupportedError(`The model's chat template cannot be used: ${message}. ${REMEDY}`, {
    key: KEY,
  });
}
