// SPDX-License-Identifier: Apache-2.0
// Loaded before the conformance suite, which has no option for a token: adds it to every request.
import http from "node:http";
import { Agent, setGlobalDispatcher } from "undici";

const credential = `Bearer ${process.env.KERND_TOKEN}`;

// Headers are a flat array, pairs, or an object (undici's Dispatcher).
function authorized(headers) {
  if (Array.isArray(headers)) return [...headers, "authorization", credential];
  if (headers && typeof headers[Symbol.iterator] === "function") {
    return [...headers, ["authorization", credential]];
  }
  return { ...headers, authorization: credential };
}

setGlobalDispatcher(
  new Agent().compose((dispatch) => (options, handler) =>
    dispatch({ ...options, headers: authorized(options.headers) }, handler)),
);

const plain = http.request;
http.request = (...parameters) => {
  const request = plain(...parameters);
  request.setHeader("authorization", credential);
  return request;
};
