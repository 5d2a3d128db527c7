// SPDX-License-Identifier: Apache-2.0
//
// driver_globals: what code finds that belongs to no file: require and module as of a file in the
// working directory, the built-in modules as globals, as `node -e` has them.
'use strict';

const Module = require('node:module');
const path = require('node:path');

// Built-in modules become globals that load at first use and give way to an assignment.
function addBuiltinModules(require) {
  for (const name of Module.builtinModules) {
    if (name.startsWith('_') || name.includes('/') || name in globalThis) continue;
    const replace = (value) => {
      delete globalThis[name];
      globalThis[name] = value;
    };
    Object.defineProperty(globalThis, name, {
      get() {
        const library = require(name);
        delete globalThis[name];
        Object.defineProperty(globalThis, name, {
          get: () => library, set: replace, configurable: true, enumerable: false,
        });
        return library;
      },
      set: replace,
      configurable: true,
      enumerable: false,
    });
  }
}

// Makes the globals; returns the module object the code takes for its own.
function install(name) {
  const directory = process.cwd();
  const module = new Module(name);
  module.filename = path.join(directory, name);
  module.paths = Module._nodeModulePaths(directory);
  const require = Module.createRequire(module.filename);
  module.require = require;
  Object.assign(globalThis, {
    module, exports: module.exports, require, __filename: name, __dirname: '.',
  });
  addBuiltinModules(require);
  process.argv.length = 1;
  process.mainModule = undefined;
  for (const file of Object.keys(require.cache)) {
    if (file.startsWith(__dirname + path.sep)) delete require.cache[file];
  }
  return module;
}

module.exports = { install };
