"use strict";
// What a page holds in binary: hil/views/figure.py says how it is packed.
const recorded = (() => {
  async function inflate(packed) {
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  /** Columns by number of their block: numbers, null where there is none. Each is decoded when it is first asked for. */
  function opened(blocks, data) {
    let from = 0;
    const places = blocks.map(({ n, columns }) => columns.map(([, , , , wide]) => {
      const here = from;
      from += n * Math.max(0, wide);
      return here;
    }));
    const known = blocks.map(({ columns }) => columns.map(() => null));
    return (block, number) => (known[block][number] ??= decoded(blocks[block].n, blocks[block].columns[number], places[block][number], data));
  }

  function decoded(n, [, , least, step, wide], from, data) {
    if (wide <= 0) return new Array(n).fill(wide ? null : least);
    const found = new Array(n);
    let slope = 0, q = 0;
    for (let k = 0; k < n; k += 1) {
      let z = 0;
      for (let b = 0; b < wide; b += 1) z |= data[from + b * n + k] << (8 * b);
      slope = (slope + ((z >>> 1) ^ -(z & 1))) | 0;
      q = (q + slope) | 0;
      found[k] = q ? least + step * (q - 1) : null;
    }
    return found;
  }

  /** {json of the figures, column(block, number)} of the page's elements. */
  async function read() {
    const found = JSON.parse(element("figures").textContent);
    const data = await inflate(bytes(element("numbers").textContent));
    return { ...found, column: opened(found.blocks, data) };
  }
  return { read, opened, inflate };
})();
