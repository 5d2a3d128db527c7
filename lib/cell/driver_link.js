// SPDX-License-Identifier: Apache-2.0
//
// driver_link: a thread of the node kernel that holds the connection to kernd. It can hear kernd while
// a cell keeps the main thread busy, and stop that cell. Frames and bundles are told in wire.h and
// bundle.h.
'use strict';

const inspector = require('node:inspector');
const net = require('node:net');
const { parentPort, workerData } = require('node:worker_threads');

const CELL = 1;
const INTERRUPT = 2;
const READY = 17;
const RESULT = 18;
const END = 19;
const FIELDS = [undefined, 'name', 'code', 'stdin', 'environment', 'directory'];
const BUNDLE_MAX = 24 << 20;
const MIME = /^[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+$/;
// The main thread answers at once while it waits for something; a busy one is stopped.
const BUSY_MS = 40;

const socket = net.connect(workerData);
let pieces = Buffer.alloc(0);
let running = 0; // number of the cell that the main thread has
let session = null;

function send(kind, payload) {
  const header = Buffer.alloc(5);
  header[0] = kind;
  header.writeUInt32BE(payload.length, 1);
  socket.write(Buffer.concat([header, payload]));
}

function parseCell(payload) {
  const cell = { textMax: payload.readUInt32BE(2), number: payload.readUInt32BE(6) };
  for (let at = 10; at < payload.length;) {
    const end = at + 5 + payload.readUInt32BE(at + 1);
    cell[FIELDS[payload[at]]] = payload.subarray(at + 5, end);
    at = end;
  }
  return cell;
}

// ---- from kernd ----------------------------------------------------------------------------------

function take(data) {
  pieces = pieces.length === 0 ? data : Buffer.concat([pieces, data]);
  while (pieces.length >= 5) {
    const end = 5 + pieces.readUInt32BE(1);
    if (pieces.length < end) return;
    const payload = pieces.subarray(5, end);
    if (pieces[0] === CELL) {
      const cell = parseCell(payload);
      running = cell.number;
      parentPort.postMessage({ cell });
    } else if (pieces[0] === INTERRUPT) {
      interrupt(payload.readUInt32BE(0));
    }
    pieces = pieces.subarray(end);
  }
}

// Asks, and stops what runs if that was not heard; then asks again, since what was stopped may have
// been the asking.
function interrupt(number) {
  if (number !== running) return;
  parentPort.postMessage({ interrupt: number });
  setTimeout(() => {
    if (number !== running) return;
    if (session === null) {
      session = new inspector.Session();
      session.connectToMainThread();
    }
    session.post('Runtime.terminateExecution', () => interrupt(number));
  }, BUSY_MS);
}

// ---- from the main thread ------------------------------------------------------------------------

function end({ number, code, interrupted }) {
  if (number !== running) return; // told twice: it was interrupted while it was told
  const payload = Buffer.alloc(9);
  payload.writeUInt32BE(number, 0);
  payload.writeUInt32BE(code, 4);
  payload[8] = interrupted ? 1 : 0;
  running = 0;
  send(END, payload);
}

function shorten(data, limit) {
  const head = data.subarray(0, limit).toString().replace(/\ufffd+$/, '');
  return Buffer.from(`${head}... (${data.length} bytes in all)`);
}

// bundle: { mime: text }. A long text/plain is cut, other parts are left out when too large.
function result({ bundle, isMain, textMax }) {
  let flags = isMain ? 1 : 0;
  let size = 0;
  const parts = [];
  for (const [mime, text] of Object.entries(bundle).slice(0, 32)) {
    let data = Buffer.from(text);
    if (mime === 'text/plain' && data.length > textMax) {
      data = shorten(data, textMax);
      flags |= 2;
    }
    if (!MIME.test(mime) || mime.length > 100) continue;
    if (size + data.length > BUNDLE_MAX) {
      flags |= 2;
      continue;
    }
    size += data.length;
    const head = Buffer.alloc(6 + mime.length);
    head.writeUInt16BE(mime.length, 0);
    head.write(mime, 2);
    head.writeUInt32BE(data.length, 2 + mime.length);
    parts.push(head, data);
  }
  const start = Buffer.alloc(3);
  start[0] = flags;
  start.writeUInt16BE(parts.length / 2, 1);
  if (parts.length > 0 || (flags & 2) !== 0) send(RESULT, Buffer.concat([start, ...parts]));
}

socket.on('data', take);
socket.on('error', () => {});
socket.on('close', () => parentPort.postMessage({ gone: true }));
parentPort.on('message', (message) => {
  if (message.ready) send(READY, Buffer.from(`\x01node ${process.version}`));
  if (message.result) result(message.result);
  if (message.end) end(message.end);
});
