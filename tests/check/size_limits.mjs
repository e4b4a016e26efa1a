// Files, functions and parameter lists of C++ stay short. (TypeScript's functions and parameters: biome.json.)
// It reads clang-formatted code with a brace counter, which is enough for a limit; it is no parser.
import { isCpp, lineOf } from './source_files.mjs';

const maxFileLines = 400;
const maxFunctionLines = 60;
const maxParameters = 6;

const counted = /\.(h|cc|ts|mjs|js|css|html|cmake|sh)$|(^|\/)CMakeLists\.txt$/;
const notAFunction =
  /^(namespace|struct|class|enum|union|extern|if|for|while|switch|do|else|try|catch|return)\b/;

/** @returns {string[]} one line per offence */
export function sizeFindings(files) {
  return files.flatMap((file) => {
    const findings = [];
    const lines = file.text.split('\n').length - (file.text.endsWith('\n') ? 1 : 0);
    if (counted.test(file.path) && lines > maxFileLines) {
      findings.push(`${file.path}: ${lines} lines, at most ${maxFileLines}`);
    }
    if (isCpp(file)) findings.push(...functionFindings(file));
    return findings;
  });
}

function functionFindings(file) {
  return cppFunctions(file.text).flatMap(({ header, firstLine, lastLine }) => {
    const where = `${file.path}:${firstLine}`;
    const findings = [];
    const lines = lastLine - firstLine + 1;
    if (lines > maxFunctionLines) {
      findings.push(`${where}: a function of ${lines} lines, at most ${maxFunctionLines}`);
    }
    const parameters = parameterCount(header);
    if (parameters > maxParameters) {
      findings.push(`${where}: ${parameters} parameters, at most ${maxParameters}: make a struct`);
    }
    return findings;
  });
}

/** The outermost functions with a body: {header, firstLine, lastLine}. */
export function cppFunctions(text) {
  const code = blanked(text);
  const functions = [];
  let headerStart = 0;
  for (let i = 0; i < code.length; ++i) {
    if (code[i] === ';' || code[i] === '}') headerStart = i + 1;
    if (code[i] !== '{') continue;
    const header = code.slice(headerStart, i);
    const kind = braceKind(header);
    if (kind === 'scope') {
      headerStart = i + 1;
      continue;
    }
    const end = matchingBrace(code, i);
    if (kind === 'function') {
      const start = headerStart + header.search(/\S/);
      functions.push({
        header: header.trim(),
        firstLine: lineOf(code, start),
        lastLine: lineOf(code, end),
      });
      headerStart = end + 1;
    }
    i = end;
  }
  return functions;
}

/** What `{` opens after `header`: a scope with declarations inside, a function's body, or an initialiser. */
function braceKind(header) {
  const text = header
    .replace(/^(\s|template\s*<[^(){};]*>\s*|public:|private:|protected:)+/, '')
    .trim();
  if (/^(inline\s+)?(namespace|struct|class|enum|union|extern)\b/.test(text)) return 'scope';
  if (!text.includes('(') || notAFunction.test(text)) return 'initialiser';
  // `Type::Type(int a) : a_{a}, b_{1} {`: braces after a member's name belong to the initialiser list.
  if (/\)\s*(noexcept\s*)?:[^:].*[\w>]$/s.test(text)) return 'initialiser';
  return /=\s*(\[.*)?$/s.test(text.replace(/\([^()]*\)/g, '')) ? 'initialiser' : 'function';
}

/** Comments, strings, characters and preprocessor lines, replaced by spaces of the same extent. */
function blanked(text) {
  const token =
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|R"\(([\s\S]*?)\)"|"(?:\\.|[^"\\\n])*"|(?<![\w])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*/gm;
  return text.replace(token, (found) => found.replace(/[^\n]/g, ' '));
}

function matchingBrace(code, open) {
  let depth = 0;
  for (let i = open; i < code.length; ++i) {
    if (code[i] === '{') ++depth;
    if (code[i] === '}' && --depth === 0) return i;
  }
  return code.length;
}

/** Commas of the first parenthesis of a function's header, at its own depth, plus one. */
export function parameterCount(header) {
  const open = header.indexOf('(');
  let depth = 0;
  let commas = 0;
  for (let i = open; i < header.length; ++i) {
    if ('(<[{'.includes(header[i])) ++depth;
    if (')>]}'.includes(header[i]) && header[i - 1] !== '-' && --depth === 0) {
      return header.slice(open + 1, i).trim() === '' ? 0 : commas + 1;
    }
    if (header[i] === ',' && depth === 1) ++commas;
  }
  return 0;
}
