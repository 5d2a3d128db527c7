// SPDX-License-Identifier: Apache-2.0
//
// driver_module: loader hooks (they run in a thread of their own). One made-up URL in the working
// directory is the code that driver.js evaluates as an ES module, so that its imports resolve there.
let code;

export async function initialize(data) {
  code = data;
}

export async function resolve(specifier, context, next) {
  if (specifier !== code.url) return next(specifier, context);
  return { url: code.url, format: 'module', shortCircuit: true };
}

export async function load(url, context, next) {
  if (url !== code.url) return next(url, context);
  return { format: 'module', source: code.source, shortCircuit: true };
}
