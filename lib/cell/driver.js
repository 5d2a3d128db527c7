// SPDX-License-Identifier: Apache-2.0
//
// driver.js: evaluates the file /run/kernd/cell.js as `node -e` evaluates its argument, so that the
// code is in no argument list. What an evaluated program sees is made here: require and module as
// of a file in the working directory, the built-in modules as globals, "[eval]" as file name.
'use strict';

const { readFileSync } = require('node:fs');
const Module = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const vm = require('node:vm');
const { install } = require('./driver_globals.js');

const CODE = '/run/kernd/cell.js';
const NAME = '[eval]';

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

function evaluate(file) {
  const directory = process.cwd();
  const source = readFileSync(file, 'utf8').replace(/^\ufeff/, '');
  const module = install(NAME);
  muteLoaderWarning();
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

// A test may name another file; in a box there is only this one.
evaluate(process.argv[2] || CODE);
