// SPDX-License-Identifier: Apache-2.0
//
// driver_kernel.js: cells one after the other in one node, its variables kept.
//
// A cell is evaluated as the console of the developer tools does (let, const and class may be
// declared again, await works at top level) through an inspector session of this process with
// itself. What a cell wrote before its END frame is in the pipes by then: node writes to pipes
// synchronously.
'use strict';

const { createHook } = require('node:async_hooks');
const fs = require('node:fs');
const inspector = require('node:inspector');
const { isBuiltin } = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const util = require('node:util');
const { Worker } = require('node:worker_threads');
const { install } = require('./driver_globals.js');
const { rewriteCalls, rewriteStatements } = require('./driver_imports.js');

const SOCKET = '/run/kernd/driver.sock';

class Exit extends Error {}
class Interrupted extends Error {}

const exit = process.exit.bind(process);
const session = new inspector.Session();
const exchange = {}; // where the inspector's functions leave what they were called with
let running = null; // { cell, finish(code, interrupted) }
let ended = 0; // number of the last cell whose end was told

// ---- evaluation ----------------------------------------------------------------------------------

function post(method, parameters) {
  return new Promise((resolve, reject) => {
    session.post(method, parameters, (error, reply) => (error ? reject(error) : resolve(reply)));
  });
}

// A value the inspector speaks of, as itself.
async function valueOf(remote) {
  if (remote.objectId === undefined) {
    const text = remote.unserializableValue;
    if (text === undefined) return remote.value;
    return text.endsWith('n') ? BigInt(text.slice(0, -1)) : Number(text);
  }
  const take = exchange.take;
  exchange.take = undefined;
  await post('Runtime.callFunctionOn', {
    objectId: remote.objectId,
    functionDeclaration: 'function(){ "use strict"; globalThis[Symbol.for("kernd")].take = this; }',
  });
  const value = exchange.take;
  exchange.take = take;
  return value;
}

// The inspector holds the promise of a cell weakly, and brings the process down when it is collected
// before it is settled. It is among the first that the evaluation makes.
let made = [];
const watch = createHook({
  init(_id, type, _trigger, resource) {
    if (type === 'PROMISE' && made.length < 4) made.push(resource);
  },
});
const unsettled = new Set();

// Runs up to the first await before it returns.
async function evaluate(source, name) {
  made = [];
  watch.enable();
  const reply = post('Runtime.evaluate', {
    expression: `${rewriteCalls(source)}\n//# sourceURL=${name}`,
    replMode: true,
    awaitPromise: true,
    objectGroup: 'cell',
  });
  watch.disable();
  const held = made;
  unsettled.add(held);
  const { result, exceptionDetails } = await reply.catch(() => {
    throw new Interrupted(); // there is no other reason why it has no reply
  });
  unsettled.delete(held);
  if (exceptionDetails === undefined) return valueOf(result);
  const error = exceptionDetails.exception ? await valueOf(exceptionDetails.exception)
    : new Error(exceptionDetails.text);
  if (error instanceof SyntaxError && exceptionDetails.stackTrace === undefined) {
    addPlace(error, exceptionDetails, source, name);
  }
  throw error;
}

function addPlace(error, details, source, name) {
  const line = source.split('\n')[details.lineNumber] ?? '';
  const place = `${name}:${details.lineNumber + 1}\n${line}\n${' '.repeat(details.columnNumber)}^\n\n`;
  error.stack = place + String(error);
}

async function evaluateAny(source, name) {
  try {
    return await evaluate(source, name);
  } catch (error) {
    if (!(error instanceof SyntaxError) || !/import statement|import declarations/.test(error.message)) {
      throw error;
    }
    return evaluate(rewriteStatements(source), name);
  }
}

// ---- what is shown -------------------------------------------------------------------------------

function jsonOf(value) {
  if (typeof value !== 'object' || value === null) return undefined;
  const shape = Object.getPrototypeOf(value);
  if (!Array.isArray(value) && shape !== Object.prototype && shape !== null) return undefined;
  try {
    return JSON.stringify(value)?.toWellFormed?.() ?? JSON.stringify(value);
  } catch {
    return undefined; // a cycle, a BigInt
  }
}

function asText(mime, part) {
  if (part instanceof Uint8Array) {
    const isText = mime.startsWith('text/') || /(json|xml)$/.test(mime);
    return Buffer.from(part).toString(isText ? 'utf8' : 'base64');
  }
  return typeof part === 'string' ? part : JSON.stringify(part) ?? '';
}

function encoded(bundle) {
  return Object.fromEntries(Object.entries(bundle).map(([mime, part]) => [mime, asText(mime, part)]));
}

// { mime: text }, or a promise of it where the value's own method gives one.
function bundleOf(value) {
  const method = value?.[Symbol.for('Jupyter.display')];
  if (typeof method === 'function') {
    const bundle = method.call(value);
    return util.types.isPromise(bundle) ? bundle.then(encoded) : encoded(bundle);
  }
  const bundle = { 'text/plain': util.inspect(value) };
  const json = jsonOf(value);
  if (json !== undefined) bundle['application/json'] = json;
  return bundle;
}

function sendResult(bundle, isMain, limit) {
  link.postMessage({ result: { bundle, isMain, textMax: limit } });
}

// Sends at once where it can, so that results keep the order of the calls.
function show(value, isMain, limit, isBundle = false) {
  if (value === undefined) return undefined;
  const bundle = isBundle ? encoded(value) : bundleOf(value);
  if (util.types.isPromise(bundle)) return bundle.then((done) => sendResult(done, isMain, limit));
  return sendResult(bundle, isMain, limit);
}

let textMax = 1 << 20;
globalThis.display = function display(value, options) {
  return show(value, false, textMax, options?.raw);
};

function describe(error) {
  if (!util.types.isNativeError(error)) return `Uncaught ${util.inspect(error)}`;
  const frames = String(error.stack ?? error).split('\n');
  const ours = frames.findIndex((frame) => frame.includes('(node:inspector:'));
  const kept = ours < 0 ? frames : frames.slice(0, ours);
  const rest = util.inspect(Object.assign(Object.create(null), error));
  const cause = error.cause === undefined ? '' : `\n[cause]: ${util.inspect(error.cause)}`;
  return kept.join('\n') + (rest === '[Object: null prototype] {}' ? '' : ` ${rest}`) + cause;
}

function complain(error) {
  try {
    process.stderr.write(`${describe(error)}\n`);
  } catch {
    // Standard error itself is broken.
  }
}

// ---- standard streams ----------------------------------------------------------------------------

const kept = [1, 2].map((number) => {
  const copy = fs.openSync(`/proc/self/fd/${number}`, 'w');
  return { number, copy, inode: fs.fstatSync(copy, { bigint: true }).ino };
});

function reopen(number, path, flags) {
  try {
    fs.closeSync(number);
  } catch {
    // It was closed already.
  }
  fs.openSync(path, flags); // the lowest free number is this one
}

let hasInput = true;
function prepareStreams(input) {
  for (const { number, copy, inode } of kept) {
    let now;
    try {
      now = fs.fstatSync(number, { bigint: true }).ino;
    } catch {
      now = undefined;
    }
    if (now !== inode) reopen(number, `/proc/self/fd/${copy}`, 'w');
  }
  if (input === undefined && !hasInput) return;
  hasInput = input !== undefined;
  const path = hasInput ? `/tmp/.kernd-input-${process.pid}` : '/dev/null';
  if (hasInput) fs.writeFileSync(path, input, { mode: 0o600 });
  reopen(0, path, 'r');
  if (hasInput) fs.unlinkSync(path);
  let stream;
  Object.defineProperty(process, 'stdin', {
    configurable: true,
    enumerable: true,
    get: () => (stream ??= fs.createReadStream(null, { fd: 0, autoClose: false })),
  });
}

// ---- cells ---------------------------------------------------------------------------------------

// The end of a cell comes by its value, by an error, an exit, or an interrupt: the first counts.
function begin(cell) {
  const finish = (code, interrupted = false) => {
    if (running?.cell === cell) end(cell.number, code, interrupted);
  };
  running = { cell, finish };
  prepare(cell);
  const name = String(Buffer.from(cell.name ?? 'cell')).replace(/\s/g, '-');
  const source = String(Buffer.from(cell.code ?? ''));
  // The last call: an interrupt ends this function in the middle of it.
  evaluateAny(source, name)
    .then((value) => value) // a promise as the last value is awaited too
    .then((value) => show(value, true, cell.textMax))
    .then(() => finish(process.exitCode ?? 0))
    .catch((error) => fail(error, finish));
}

function prepare(cell) {
  for (const pair of String(Buffer.from(cell.environment ?? '')).split('\0')) {
    const equals = pair.indexOf('=');
    if (equals > 0) process.env[pair.slice(0, equals)] = pair.slice(equals + 1);
  }
  if (cell.directory !== undefined) process.chdir(String(Buffer.from(cell.directory)));
  prepareStreams(cell.stdin);
  textMax = cell.textMax;
  process.exitCode = undefined;
}

function end(number, code, interrupted) {
  running = null;
  process.exitCode = undefined;
  session.post('Runtime.releaseObjectGroup', { objectGroup: 'cell' });
  link.postMessage({ end: { number, code: Number(code) & 0xff, interrupted } });
  ended = number;
}

function fail(error, finish) {
  if (error instanceof Exit) {
    finish(error.code);
  } else if (error instanceof Interrupted) {
    interrupt(running?.cell.number);
  } else {
    complain(error);
    finish(1);
  }
}

// Asked for the cell that the link has given and seen no end of. It may be unknown here: a busy
// machine is late, and what was stopped then was the taking of the cell, or the telling of its end.
function interrupt(number) {
  if (number === undefined || number === ended) return;
  watch.disable();
  process.stderr.write('Interrupted\n');
  end(number, 130, true);
}

function onUncaught(error) {
  if (running !== null) fail(error, running.finish);
  else if (!(error instanceof Exit)) complain(error);
}

function importFrom(specifier) {
  const base = pathToFileURL(module_.filename);
  if (/^\.{0,2}\//.test(specifier)) return import(new URL(specifier, base).href);
  if (isBuiltin(specifier) || /^[a-z]+:/.test(specifier)) return import(specifier);
  return import(pathToFileURL(module_.require.resolve(specifier)).href);
}

const link = new Worker(path.join(__dirname, 'driver_link.js'), {
  workerData: process.argv[2] || SOCKET,
});
link.on('message', (message) => {
  if (message.gone) exit(0);
  if (message.interrupt) interrupt(message.interrupt);
  if (message.cell) begin(message.cell);
});
Object.defineProperty(globalThis, Symbol.for('kernd'), { value: exchange });
globalThis.__import__ = importFrom;
process.exit = (code) => {
  throw Object.assign(new Exit('process.exit'), { code: code ?? process.exitCode ?? 0 });
};
process.on('SIGINT', () => {}); // interrupts come as frames too
process.on('uncaughtException', onUncaught);
process.on('unhandledRejection', onUncaught);
session.connect();
const module_ = install('[kernel]');
link.postMessage({ ready: true });
