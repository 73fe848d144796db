// SPDX-License-Identifier: BSL-1.0
// zarrita as a peer: node read.mjs STORE ARRAY..., one line of JSON for each array:
//   {"shape": [...], "values": [...]}    numbers that JSON does not have, and integers of 64 bits, as text
//   {"refused": why}
import * as zarr from "zarrita";
import { FileSystemStore } from "@zarrita/storage";

const [folder, ...names] = process.argv.slice(2);
const root = zarr.root(new FileSystemStore(folder));
const plain = (v) => (typeof v === "bigint" || (typeof v === "number" && (!Number.isFinite(v) || Object.is(v, -0))) ? (Object.is(v, -0) ? "-0" : String(v)) : v);
for (const name of names) {
  try {
    const array = await zarr.open.v3(root.resolve(name), { kind: "array" });
    const chunk = await zarr.get(array);
    // a scalar comes as itself
    const values = chunk !== null && typeof chunk === "object" && "data" in chunk ? Array.from(chunk.data, plain) : [plain(chunk)];
    console.log(JSON.stringify({ shape: array.shape, values }));
  } catch (e) {
    console.log(JSON.stringify({ refused: `${e.name}: ${e.message}` }));
  }
}
