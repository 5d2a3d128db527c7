// SPDX-License-Identifier: Apache-2.0
export default {
  input: process.env.KERND_DESCRIPTION,
  output: { path: "generated", module: { extension: ".js" }, clean: true },
  plugins: ["@hey-api/client-fetch", "@hey-api/typescript", "@hey-api/sdk"],
};
