// SPDX-License-Identifier: Apache-2.0
//
// driver_link: the connection to kernd: frames in and out, bundles. The layout is told in wire.h
// and bundle.h.
'use strict';

const net = require('node:net');

const CELL = 1;
const INTERRUPT = 2;
const READY = 17;
const RESULT = 18;
const END = 19;
const FIELDS = [undefined, 'name', 'code', 'stdin', 'environment', 'directory'];
const BUNDLE_MAX = 24 << 20;

function parseCell(payload) {
  const cell = { textMax: payload.readUInt32BE(2), number: payload.readUInt32BE(6) };
  for (let at = 10; at < payload.length;) {
    const end = at + 5 + payload.readUInt32BE(at + 1);
    cell[FIELDS[payload[at]]] = payload.subarray(at + 5, end);
    at = end;
  }
  return cell;
}

class Link {
  // on: { cell(cell), interrupt(number), end() }
  constructor(address, on) {
    this.on = on;
    this.pieces = Buffer.alloc(0);
    this.socket = net.connect(address);
    this.socket.on('data', (data) => this.take(data));
    this.socket.on('close', () => on.end());
    this.socket.on('error', () => {});
  }

  take(data) {
    this.pieces = this.pieces.length === 0 ? data : Buffer.concat([this.pieces, data]);
    while (this.pieces.length >= 5) {
      const end = 5 + this.pieces.readUInt32BE(1);
      if (this.pieces.length < end) return;
      const kind = this.pieces[0];
      const payload = this.pieces.subarray(5, end);
      this.pieces = this.pieces.subarray(end);
      if (kind === CELL) this.on.cell(parseCell(payload));
      if (kind === INTERRUPT) this.on.interrupt(payload.readUInt32BE(0));
    }
  }

  send(kind, payload) {
    const header = Buffer.alloc(5);
    header[0] = kind;
    header.writeUInt32BE(payload.length, 1);
    this.socket.write(Buffer.concat([header, payload]));
  }

  ready() {
    this.send(READY, Buffer.from(`\x01node ${process.version}`));
  }

  end(number, code, interrupted) {
    const payload = Buffer.alloc(9);
    payload.writeUInt32BE(number, 0);
    payload.writeUInt32BE(code, 4);
    payload[8] = interrupted ? 1 : 0;
    this.send(END, payload);
  }

  // bundle: { mime: text }. A long text/plain is cut, other parts are left out when too large.
  result(bundle, isMain, textMax) {
    let flags = isMain ? 1 : 0;
    let size = 0;
    const parts = [];
    for (const [mime, text] of Object.entries(bundle).slice(0, 32)) {
      let data = Buffer.from(text);
      if (mime === 'text/plain' && data.length > textMax) {
        const whole = data.length;
        data = Buffer.from(data.subarray(0, textMax).toString().replace(/\ufffd+$/, '') +
          `... (${whole} bytes in all)`);
        flags |= 2;
      }
      if (!/^[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+$/.test(mime) || mime.length > 100) continue;
      size += data.length;
      if (size > BUNDLE_MAX) {
        flags |= 2;
        size -= data.length;
        continue;
      }
      const head = Buffer.alloc(6 + mime.length);
      head.writeUInt16BE(mime.length, 0);
      head.write(mime, 2);
      head.writeUInt32BE(data.length, 2 + mime.length);
      parts.push(head, data);
    }
    const start = Buffer.alloc(3);
    start[0] = flags;
    start.writeUInt16BE(parts.length / 2, 1);
    if (parts.length > 0 || (flags & 2) !== 0) this.send(RESULT, Buffer.concat([start, ...parts]));
  }
}

module.exports = { Link };
