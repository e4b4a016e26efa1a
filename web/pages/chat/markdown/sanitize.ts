// The last gate between a model's output and the document: DOMPurify with a short list of what Markdown needs, on top of
// blocks.ts, which already writes nothing else. A model's output is untrusted: it may quote a page that somebody else
// wrote. No script, no style, no image or frame, no id or name, nothing that loads by itself.
import DOMPurify, { type Config } from 'dompurify';

const config: Config & { RETURN_DOM_FRAGMENT: true } = {
  ALLOWED_TAGS: [
    ...['p', 'br', 'hr', 'h3', 'h4', 'h5', 'h6', 'blockquote', 'ul', 'ol', 'li', 'pre', 'code'],
    ...['em', 'strong', 'del', 'a', 'table', 'thead', 'tbody', 'tr', 'th', 'td'],
  ],
  ALLOWED_ATTR: ['href', 'title', 'class', 'start', 'align'],
  ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
  // Not addresses, so not held against that pattern.
  ADD_URI_SAFE_ATTR: ['start', 'align'],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOW_UNKNOWN_PROTOCOLS: false,
  RETURN_DOM_FRAGMENT: true,
};

const allowedClass = /^language-[\w+#.-]{1,24}$/;

/** What may be put into the document of `html`. Links open in a new tab that knows nothing of this one. */
export function sanitize(html: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(html, config);
  for (const element of fragment.querySelectorAll('[class]')) {
    const isLanguage = element.localName === 'code' && allowedClass.test(element.className);
    if (!isLanguage) element.removeAttribute('class');
  }
  for (const link of fragment.querySelectorAll('a')) {
    if (!link.hasAttribute('href')) {
      link.replaceWith(...link.childNodes);
      continue;
    }
    link.target = '_blank';
    link.rel = 'noopener noreferrer nofollow';
  }
  return fragment;
}
