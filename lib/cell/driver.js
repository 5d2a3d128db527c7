// SPDX-License-Identifier: Apache-2.0
//
// driver.js: evaluates the file /run/kernd/cell.js as `node -e` evaluates its argument, so that the
// code is in no argument list, and so that node can be up before there is any code. What an evaluated
// program sees is made here: require and module as of a file in the working directory, the built-in
// modules as globals, "[eval]" as file name. Frames are told in wire.h.
'use strict';

const { closeSync, openSync, readFileSync, readSync, writeSync } = require('node:fs');
const Module = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const vm = require('node:vm');
const { install } = require('./driver_globals.js');

const NAME = '[eval]';

// kernd-init has connected it to kernd before node began. Read and written without the event loop,
// whose turns the code would notice: it has to run where a main script runs.
const LINK = 250;
const READY = 17;
const FIELD_NAME = 1;
const FIELD_ENVIRONMENT = 4;

// Since node 20.10 and 21.7 the loader can be asked to resolve from the working directory.
const LOADER = vm.constants && vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
// Here, not where it is used: the code must not see it in require.cache.
const { rewriteCalls } = LOADER === undefined ? require('./driver_imports.js') : {};

// Before, import() of the code becomes a call of this: scripts have no loader without a flag that
// child processes would inherit.
function importer(module) {
  const base = pathToFileURL(module.filename);
  return async (specifier) => {
    if (/^\.{0,2}\//.test(specifier)) return import(new URL(specifier, base).href);
    if (Module.builtinModules.includes(specifier) || /^[a-z]+:/.test(specifier)) {
      return import(specifier);
    }
    return import(pathToFileURL(module.require.resolve(specifier)).href);
  };
}

// The warning that the loader constant above is experimental is about us, not about the code.
function muteLoaderWarning() {
  const { emitWarning } = process;
  process.emitWarning = function filtered(warning, ...rest) {
    if (String(warning).startsWith('vm.USE_MAIN_CONTEXT_DEFAULT_LOADER ')) {
      process.emitWarning = emitWarning;
      return;
    }
    Reflect.apply(emitWarning, process, [warning, ...rest]);
  };
}

// What the compiler says of a script that is meant as an ES module.
const MODULE_ERRORS = [
  'Cannot use import statement outside a module',
  "Unexpected token 'export'",
  "Cannot use 'import.meta' outside a module",
  'await is only valid in async functions and the top level bodies of modules',
];

// A URL of its own in the working directory, from where its imports resolve.
function evaluateModule(source, directory) {
  const url = `${pathToFileURL(directory).href}/[eval1]`;
  let settled = false;
  let ranDry = false;
  Module.register(pathToFileURL(path.join(__dirname, 'driver_module.mjs')), {
    parentURL: url, data: { url, source },
  });
  process.on('beforeExit', () => { ranDry = true; });
  process.on('exit', () => {
    // As node does for a main module whose top-level await never ends.
    if (!settled && ranDry && process.exitCode === undefined) process.exitCode = 13;
  });
  import(url).finally(() => { settled = true; });
}

function compile(source, module) {
  if (LOADER !== undefined) {
    return new vm.Script(source, { filename: NAME, importModuleDynamically: LOADER });
  }
  const rewritten = rewriteCalls(source);
  if (rewritten !== source) {
    Object.defineProperty(globalThis, '__import__', { value: importer(module) });
  }
  return new vm.Script(rewritten, { filename: NAME });
}

function read(file) {
  return readFileSync(file, 'utf8').replace(/^\ufeff/, '');
}

function evaluate(source, module) {
  const directory = process.cwd();
  let script;
  try {
    script = compile(source, module);
  } catch (error) {
    if (Module.register && MODULE_ERRORS.includes(error.message)) {
      evaluateModule(source, directory);
      return;
    }
    throw error;
  }
  script.runInThisContext({ displayErrors: true });
}

// ---- before the code comes ----------------------------------------------------------------------

function receive(size) {
  const data = Buffer.alloc(size);
  for (let at = 0; at < size;) {
    const got = readSync(LINK, data, at, size - at, null);
    if (got === 0) process.exit(0); // kernd has no use for this node any more
    at += got;
  }
  return data;
}

// The fields of the payload of a CELL frame. kernd wrote it: it is well-formed.
function fieldsOf(payload) {
  const fields = {};
  for (let at = 10; at < payload.length;) {
    const end = at + 5 + payload.readUInt32BE(at + 1);
    fields[payload[at]] = payload.toString('utf8', at + 5, end);
    at = end;
  }
  return fields;
}

function receiveCell() {
  return fieldsOf(receive(receive(5).readUInt32BE(1)));
}

function sayReady() {
  const text = Buffer.from(`\x01node ${process.version}`);
  const header = Buffer.alloc(5);
  header[0] = READY;
  header.writeUInt32BE(text.length, 1);
  writeSync(LINK, Buffer.concat([header, text]));
}

function setEnvironment(text) {
  for (const pair of text.split('\0')) {
    const equals = pair.indexOf('=');
    if (equals > 0) process.env[pair.slice(0, equals)] = pair.slice(equals + 1);
  }
}

// What nearly every program does is done once while nobody waits: node compiles its own functions at
// their first call. The standard streams are left as they are, also where node would open one of
// itself (to look for colours, or in pipe.destroy()); the copy of the pipe has flags of its own.
function warmUp(module) {
  const { Console } = require('node:console');
  const { Socket } = require('node:net');
  const { Writable } = require('node:stream');
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const pipe = new Socket({ fd: openSync('/proc/self/fd/1', 'w'), readable: false, writable: true });
  pipe.write('');
  pipe._handle.close();
  new Console({ stdout: nowhere, colorMode: false }).log('%s', 1, { key: [1.5, 'text'] }, new Map());
  compile('(() => [0])()', module).runInThisContext();
  const field = Buffer.from([...Array(10), FIELD_NAME, 0, 0, 0, 1, 0x30]);
  setEnvironment(fieldsOf(Buffer.concat([field]))[FIELD_NAME]);
  read('/proc/self/statm');
  // What all of this has put off would be done, and compiled, at the end of the code instead.
  process._tickCallback?.();
}

// What there is no function of node's for: see addon.c. null where this node is not one that loads it
// (that of an image, with another C library), or was told to write something at its end.
function loadAddon() {
  if (process.execArgv.length > 0 || process.env.NODE_OPTIONS || process.env.NODE_V8_COVERAGE) return null;
  const addon = { exports: {} };
  try {
    process.dlopen(addon, path.join(__dirname, 'kernd-node.so'));
  } catch {
    return null;
  }
  return addon.exports;
}

// At the end of a program that no longer listens node would give back each piece of memory that it has,
// and wait for its threads, which the end of the process does anyway: a millisecond. It ends at once
// instead, or as by process.exit() where the code has brought threads or libraries of its own. Nothing
// of this is on the stack, or among the listeners, of code that runs. What ends with another code may be
// an error that node has yet to print.
function endQuickly(addon) {
  const { emit } = process;
  const emitOrEnd = function emitOrEnd(name, ...rest) {
    if (name === 'exit' && rest[0] === 0) {
      addon?.end();
      process.reallyExit(0);
    }
    return Reflect.apply(emit, this, [name, ...rest]);
  };
  Object.defineProperty(process, 'emit', {
    get: () => (process._exiting && process.listenerCount('exit') === 0 ? emitOrEnd : emit),
    set(value) {
      Object.defineProperty(process, 'emit', {
        value, writable: true, configurable: true, enumerable: true,
      });
    },
    configurable: true,
    enumerable: false,
  });
}

function runCell() {
  const addon = loadAddon();
  addon?.shrink();
  const module = install(NAME);
  muteLoaderWarning();
  warmUp(module);
  endQuickly(addon);
  addon?.mark();
  sayReady();
  const fields = receiveCell();
  closeSync(LINK);
  setEnvironment(fields[FIELD_ENVIRONMENT] ?? '');
  evaluate(read(fields[FIELD_NAME]), module);
}

runCell();
