// The search of the manual is a worker, and browsers start none from files. Opened from a folder, a hidden frame does its work.
"use strict"
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const home = new URL(url, location.href).href
      this.onmessage = this.onerror = null
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inner = this.frame.contentWindow
      const page = inner.document
      page.open()
      page.write("<!doctype html><body></body>")
      page.close()
      const load = source => new Promise((loaded, failed) => {
        const script = page.createElement("script")
        script.src = new URL(source, home).href
        script.onload = loaded
        script.onerror = () => failed(new Error(script.src))
        page.body.appendChild(script)
      })
      // what a worker finds around it: messages go to whoever made it, scripts are loaded one after the other
      inner.postMessage = data => {
        const event = new MessageEvent("message", { data })
        this.dispatchEvent(event)
        if (this.onmessage) this.onmessage(event)
      }
      inner.importScripts = (...urls) => urls.reduce((before, one) => before.then(() => load(one)), Promise.resolve())
      this.ready = load(home).then(() => inner)
    }
    postMessage(data) {
      this.ready.then(inner => inner.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {
      this.frame.remove()
    }
  }
}
