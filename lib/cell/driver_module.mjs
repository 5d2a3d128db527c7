// SPDX-License-Identifier: Apache-2.0
//
// driver_module: loader hooks (they run in a thread of their own). One made-up URL in the working
// directory is the code that driver.js evaluates as an ES module, so that its imports resolve there.
import { pathToFileURL } from 'node:url';

let code;

export async function initialize(data) {
  code = data;
}

// require() looks in NODE_PATH last; import does not look there at all, so it is done here, for packages
// that are found nowhere else.
async function fromNodePath(specifier, context, next, failure) {
  for (const folder of (process.env.NODE_PATH ?? '').split(':')) {
    if (!folder.endsWith('/node_modules')) continue;
    const parentURL = pathToFileURL(folder.slice(0, -'node_modules'.length)).href;
    try {
      return await next(specifier, { ...context, parentURL });
    } catch {
      // the next one
    }
  }
  throw failure;
}

export async function resolve(specifier, context, next) {
  if (specifier === code.url) return { url: code.url, format: 'module', shortCircuit: true };
  try {
    return await next(specifier, context);
  } catch (failure) {
    if (failure?.code !== 'ERR_MODULE_NOT_FOUND' || /^[./]|^[a-z]+:/.test(specifier)) throw failure;
    return fromNodePath(specifier, context, next, failure);
  }
}

export async function load(url, context, next) {
  if (url !== code.url) return next(url, context);
  return { format: 'module', source: code.source, shortCircuit: true };
}
