// SPDX-License-Identifier: Apache-2.0
// What every client must be able to do; a client is handed over as a few functions.
import assert from "node:assert/strict";

export const url = process.env.KERND_URL;
export const headers = { Authorization: `Bearer ${process.env.KERND_TOKEN}` };

// A picture without any package: one pixel.
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
export const figure = `import base64
class Picture:
    def _repr_png_(self): return base64.b64decode("${PIXEL}")
Picture()`;

// A command that runs until it is ended, with something to find it by.
export const endless = `echo begun; MARK=${process.env.MARK} sleep 300`;

export function holdsPixel(text) {
  return text.includes(PIXEL.slice(0, 40));
}

export function text(result) {
  return result.content.filter((part) => part.type === "text").map((part) => part.text).join("\n");
}

// client: { list(), call(name, args) → result, cancelled(name, args) → a promise that must reject }
export async function tryAll(client) {
  const names = (await client.list()).map((tool) => tool.name);
  assert.ok(names.includes("run_code") && names.includes("run_command"), String(names));

  const ran = await client.call("run_code", { code: "print(6 * 7)" });
  assert.match(text(ran), /42/);
  assert.equal(ran.isError ?? false, false);

  const failed = await client.call("run_command", { command: "echo broken >&2; exit 3" });
  assert.equal(failed.isError, true);
  assert.match(text(failed), /broken/);

  const shown = await client.call("run_code", { code: figure });
  const images = shown.content.filter((part) => part.type === "image");
  assert.equal(images.length, 1);
  assert.equal(images[0].mimeType, "image/png");
  assert.ok(holdsPixel(images[0].data));

  const wrong = await client.call("run_code", {});
  assert.equal(wrong.isError, true);

  await assert.rejects(client.cancelled("run_command", { command: endless }));
  console.log("cancelled");
}
