// Markdown to HTML, block by block (marked does the parsing), for text that grows while it streams: a finished block is
// parsed once, so a long answer costs no more per token than a short one. The HTML holds none of the model's own tags
// (they are shown as text), no image (shown as a link) and no link but http, https and mailto; sanitize.ts checks that
// again before it meets the document.
import { Lexer, Marked, Parser, type Token, type Tokens } from 'marked';

const safeScheme = /^(?:https?:\/\/|mailto:)[^\s]/i;
// The one tag that is not shown as text: models break lines in table cells with it.
const lineBreak = /^<br\s*\/?>$/i;
const languageName = /^[\w+#.-]{1,24}/;

export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

/** The address when it is one that a click may open, else undefined. Relative ones would point into this site. */
export function safeHref(href: string): string | undefined {
  const address = href.trim().replaceAll('&amp;', '&');
  return safeScheme.test(address) ? address : undefined;
}

function anchor(href: string, title: string | null | undefined, content: string): string {
  const address = safeHref(href);
  if (address === undefined) return content;
  const hint = title ? ` title="${escapeHtml(title)}"` : '';
  return `<a href="${escapeHtml(address)}"${hint}>${content}</a>`;
}

const marked = new Marked({ gfm: true, breaks: true });
marked.use({
  renderer: {
    html(token: Tokens.HTML | Tokens.Tag): string {
      if (lineBreak.test(token.text)) return '<br>';
      const text = escapeHtml(token.text);
      return token.type === 'html' && token.block ? `<p>${text.trim()}</p>\n` : text;
    },
    // Within <script>, <pre> and the like marked passes text on as it is; here those tags are text, and so is this.
    text(token: Tokens.Text | Tokens.Escape): string | false {
      return 'escaped' in token && token.escaped ? escapeHtml(token.text) : false;
    },
    heading({ tokens, depth }: Tokens.Heading): string {
      // The page has the h1 and each message an h2.
      const level = Math.min(depth + 2, 6);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
    code({ text, lang }: Tokens.Code): string {
      const language = languageName.exec(lang ?? '')?.[0];
      const attribute = language ? ` class="language-${escapeHtml(language)}"` : '';
      return `<pre><code${attribute}>${escapeHtml(text)}\n</code></pre>\n`;
    },
    link({ href, title, tokens }: Tokens.Link): string {
      return anchor(href, title, this.parser.parseInline(tokens));
    },
    image({ href, title, text }: Tokens.Image): string {
      return anchor(href, title, escapeHtml(text ? `Image: ${text}` : 'Image'));
    },
    checkbox({ checked }: Tokens.Checkbox): string {
      return checked ? '☑ ' : '☐ ';
    },
  },
});

type Links = Lexer['tokens']['links'];

/** One HTML string; text that marked cannot parse (nested beyond the stack) is shown as it is. */
function renderTokens(tokens: Token[]): string {
  try {
    return Parser.parse(tokens, marked.defaults);
  } catch {
    return `<pre><code>${escapeHtml(tokens.map(({ raw }) => raw).join(''))}</code></pre>\n`;
  }
}

/** The top-level tokens of `source`; together their `raw` is `source`. */
function parseBlocks(source: string, links: Links): Token[] {
  try {
    const lexer = new Lexer(marked.defaults);
    Object.assign(lexer.tokens.links, links);
    return [...lexer.lex(source)];
  } catch {
    const token: Tokens.Code = { type: 'code', raw: source, text: source };
    return [token];
  }
}

export interface BlockUpdate {
  /** Blocks before this index are as they were. */
  from: number;
  /** The HTML of the blocks from `from` on. */
  html: string[];
}

// More text can change the last block and, through a list that goes on after a blank line, the one before it.
const openBlocks = 2;

export class MarkdownStream {
  #source = ''; // line ends normalised
  #parsed = 0; // characters of #source that lie in finished blocks
  #finished = 0; // finished blocks
  #links: Links = {};

  /** Takes the whole text so far. Text that is no continuation of the last is rendered anew. */
  update(text: string): BlockUpdate {
    const source = text.replace(/\r\n?/g, '\n');
    if (!source.startsWith(this.#source)) this.#restart();
    this.#source = source;
    const tokens = parseBlocks(source.slice(this.#parsed), this.#links);
    const from = this.#finished;
    const html = tokens.filter(isVisible).map((token) => renderTokens([token]));
    this.#close(tokens);
    return { from, html };
  }

  #restart(): void {
    this.#parsed = 0;
    this.#finished = 0;
    this.#links = {};
  }

  #close(tokens: readonly Token[]): void {
    let closable = tokens.filter(isVisible).length - openBlocks;
    for (const token of tokens) {
      if (closable <= 0) return;
      this.#parsed += token.raw.length;
      if (token.type === 'def') {
        const { tag, href, title } = token as Tokens.Def;
        this.#links[tag] ??= { href, title };
      }
      if (!isVisible(token)) continue;
      this.#finished += 1;
      closable -= 1;
    }
  }
}

function isVisible(token: Token): boolean {
  return token.type !== 'space' && token.type !== 'def';
}

/** A whole text at once: what the stream arrives at. */
export function renderMarkdown(text: string): string {
  return new MarkdownStream().update(text).html.join('');
}
