"use strict";
// What the scripts of all pages share: elements and texts of a page, packed bytes, units.
const RPM = 30 / Math.PI;
const element = (id) => document.getElementById(id);

/** Set the text of an element, or of the element with this id. Equal text is not set again, so nothing is laid out anew. */
function text(id, words) {
  const place = typeof id === "string" ? element(id) : id;
  if (place.textContent !== words) place.textContent = words;
}

/** Bytes of a text in base64. */
const bytes = (packed) => Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
