// SPDX-License-Identifier: Apache-2.0
//
// driver_imports: makes import() and import statements work in cells. Cells are evaluated as scripts
// of the console, for which node has no loader; they call a function of ours instead.
'use strict';

const CALL = 'globalThis.__import__';
// After one of these, or a word of these, a slash begins a regular expression.
const BEFORE_REGEXP = '(,=:[!&|?{};+-*%~^<>\n';
const WORDS_BEFORE_REGEXP = /(?:^|[^\w$.])(?:return|typeof|case|in|of|delete|void|throw|new|else|do|await|yield)$/;
const IMPORT_CALL = /^import(?=\s*\()/;

// Index behind the string, template, comment or regular expression that begins at index at.
function skip(code, at) {
  const first = code[at];
  if (code.startsWith('//', at)) {
    const end = code.indexOf('\n', at);
    return end < 0 ? code.length : end;
  }
  if (code.startsWith('/*', at)) {
    const end = code.indexOf('*/', at + 2);
    return end < 0 ? code.length : end + 2;
  }
  let inClass = false;
  for (let i = at + 1; i < code.length; i++) {
    if (code[i] === '\\') i++;
    else if (first === '/' && code[i] === '[') inClass = true;
    else if (first === '/' && code[i] === ']') inClass = false;
    else if (code[i] === first && !inClass) return i + 1;
    else if (code[i] === '\n' && first !== '`') return i;
  }
  return code.length;
}

function beginsSkipped(code, at) {
  const character = code[at];
  if (character === '"' || character === "'" || character === '`') return true;
  if (character !== '/') return false;
  if (code[at + 1] === '/' || code[at + 1] === '*') return true;
  const before = code.slice(0, at).trimEnd();
  return before === '' || BEFORE_REGEXP.includes(before.at(-1)) ||
    WORDS_BEFORE_REGEXP.test(before.slice(-12));
}

// import(x) becomes a call of ours, outside of strings, comments and the like. (Inside the
// substitutions of a template it stays.)
function rewriteCalls(code) {
  if (!code.includes('import')) return code;
  let out = '';
  for (let at = 0; at < code.length;) {
    if (beginsSkipped(code, at)) {
      const end = skip(code, at);
      out += code.slice(at, end);
      at = end;
    } else if (code[at] === 'i' && !/[\w$.#]/.test(code[at - 1] ?? '') &&
               IMPORT_CALL.test(code.slice(at, at + 100))) {
      out += CALL;
      at += 'import'.length;
    } else {
      out += code[at++];
    }
  }
  return out;
}

const IMPORT_STATEMENT =
  /^([ \t]*)import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s+|(\{[^}]*\})\s*)?from\s*(['"][^'"\n]+['"])[ \t]*;?/gm;
const IMPORT_EFFECTS = /^([ \t]*)import\s*(['"][^'"\n]+['"])[ \t]*;?/gm;

// Import statements become awaited calls, on the same lines.
function rewriteStatements(code) {
  return code
    .replace(IMPORT_STATEMENT, (whole, indent, byDefault, all, named, from) => {
      const lines = '\n'.repeat(whole.split('\n').length - 1);
      const load = `await ${CALL}(${from})`;
      if (all) {
        const also = byDefault ? `, ${byDefault} = ${all}.default` : '';
        return `${indent}const ${all} = ${load}${also};${lines}`;
      }
      const names = (named ?? '{}').slice(1, -1).replace(/\s+as\s+/g, ': ').replace(/\s+/g, ' ');
      const first = byDefault ? `default: ${byDefault}, ` : '';
      return `${indent}const { ${first}${names} } = ${load};${lines}`;
    })
    .replace(IMPORT_EFFECTS, (_, indent, from) => `${indent}await ${CALL}(${from});`);
}

module.exports = { rewriteCalls, rewriteStatements };
