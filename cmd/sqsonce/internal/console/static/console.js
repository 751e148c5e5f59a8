// Elements with data-live="PATH" get the fragment at PATH anew every five seconds. Without this script the pages are links and forms.
"use strict";
(() => {
  const parts = document.querySelectorAll("[data-live]");
  if (parts.length === 0) return;
  const status = document.getElementById("status"), pause = document.getElementById("pause");
  const every = 5000, patience = 10000;
  let paused = false, busy = false, asOf = new Date();

  // The status line is read aloud where it changes: what stays as it is, is not written again.
  const say = (text) => { if (status.textContent !== text) status.textContent = text; };

  // become makes an element what a new one is. What is the same stays the same element: focus, scrolling and selection are kept, and
  // a <details> stays as its reader left it.
  function become(old, fresh) {
    if (old.nodeName !== fresh.nodeName || old.id !== fresh.id) return old.replaceWith(fresh);
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    for (const { name } of [...old.attributes]) if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    fill(old, fresh);
  }

  // fill does so with the children. One with an ID, such as a row, keeps its element where others come or go before it.
  function fill(parent, fresh) {
    let at = parent.firstChild;
    for (const child of [...fresh.childNodes]) {
      let same = child.id ? at : null;
      while (same && same.id !== child.id) same = same.nextSibling;
      while (same && at !== same) { const gone = at; at = at.nextSibling; gone.remove(); }
      if (!at || at.id && at.id !== child.id) { parent.insertBefore(child, at); continue; }
      const next = at.nextSibling;
      become(at, child);
      at = next;
    }
    while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
  }

  async function refresh() {
    if (paused || busy || document.hidden) return;
    busy = true;
    try {
      for (const part of parts) {
        const answer = await fetch(part.dataset.live, { redirect: "error", signal: AbortSignal.timeout(patience) });
        if (!answer.ok) throw answer.status === 403 ? "The console was started anew: open the URL that it printed" : `The console answers ${answer.status}`;
        const made = new DOMParser().parseFromString(await answer.text(), "text/html").body;
        if (!paused) fill(part, made);
      }
      asOf = new Date();
      say(paused ? "Paused" : "Updated every 5 s");
    } catch (e) {
      const why = typeof e === "string" ? e : e.name === "TimeoutError" ? "The console is slow to answer" : "The console has ended, or cannot be reached";
      say(`${why}. The page is as of ${asOf.toISOString().slice(11, 19)} UTC.`);
    }
    busy = false;
  }

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Resume updates" : "Pause updates";
    say(paused ? "Paused" : "Updated every 5 s");
    refresh();
  });
  document.addEventListener("visibilitychange", refresh);
  setInterval(refresh, every);
  say("Updated every 5 s");
})();
