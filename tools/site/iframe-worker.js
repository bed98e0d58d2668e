// Search in a site that is read from a folder. A browser starts no worker for a page of `file:`, so
// a hidden frame runs the script of the worker. The theme looks for this file's name.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = new Promise((resolve, reject) => {
        const script = inside.document.createElement("script");
        Object.assign(script, { src: new URL(url, location), onload: resolve, onerror: reject });
        inside.document.documentElement.append(script);
      });
      this.inside = inside;
    }

    postMessage(data) {
      const { MessageEvent } = this.inside;
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
