// Looks at the page as a reader would, and returns what is wrong with it, and
// what can be read. It is evaluated in the page by TestPageInBrowser alone.
(() => {
  const faults = [];
  const squeeze = (text) => text.replace(/\s+/g, " ").trim();
  const within = (inner, outer, slack) =>
    inner.left >= outer.left - slack && inner.right <= outer.right + slack &&
    inner.top >= outer.top - slack && inner.bottom <= outer.bottom + slack;
  const overlap = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
  const seen = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0;
  };

  // On a narrow page the headings of a wide table are there for those who can't
  // see it alone: each cell has its own.
  const hidden = (element) => element.closest("thead") && getComputedStyle(element.closest("thead")).position === "absolute";

  // Colours.
  const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const parse = (text) => {
    const parts = (text.match(/[\d.]+/g) || []).map(Number);
    return parts.length < 3 || (parts.length > 3 && parts[3] < 1) ? null : parts.slice(0, 3);
  };
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)].sort((m, n) => n - m);
    return (x + 0.05) / (y + 0.05);
  };
  const root = document.documentElement;
  const paper = parse(getComputedStyle(root).backgroundColor);
  if (!paper) faults.push("the page has no background of its own");
  const readable = (name, colour, least) => {
    const parsed = parse(colour);
    if (!parsed || contrast(parsed, paper) < least) {
      faults.push(`${name}: ${colour} on ${paper} has less than ${least}:1`);
    }
  };

  // The page does not move sideways, and no text leaves its place.
  if (root.scrollWidth > root.clientWidth) faults.push(`the page is ${root.scrollWidth} wide in ${root.clientWidth}`);
  for (const element of document.querySelectorAll("h1,h2,p,li,dt,dd,th,td,caption,figcaption,code,figure,table")) {
    if (!seen(element)) continue;
    const box = element.getBoundingClientRect();
    if (!hidden(element) && (box.right > root.clientWidth + 0.5 || box.left < -0.5)) {
      faults.push(`${element.tagName} from ${box.left} to ${box.right}: ${squeeze(element.textContent).slice(0, 60)}`);
    }
    if (/^(TH|TD)$/.test(element.tagName) && !hidden(element) && element.scrollWidth > element.clientWidth + 1) {
      faults.push(`a cell is too narrow: ${squeeze(element.textContent)}`);
    }
  }

  // Every text has contrast, also what the style adds to a cell.
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    const text = squeeze(walker.currentNode.data);
    if (!text || parent.closest("style,title,desc") || !seen(parent)) continue;
    const style = getComputedStyle(parent);
    readable(text.slice(0, 40), parent.closest("svg") ? style.fill : style.color, 4.5);
    if (parseFloat(style.fontSize) < 11) faults.push(`${text} has ${style.fontSize}`);
    if (parent.matches("td")) readable("name of a cell", getComputedStyle(parent, "::before").color, 4.5);
  }

  // Charts: one of both drawings is seen, all in it lies within it, no two texts
  // touch.
  const charts = [];
  for (const figure of document.querySelectorAll("figure")) {
    const drawings = [...figure.querySelectorAll("svg")].filter(seen);
    if (drawings.length !== 1) faults.push(`${drawings.length} drawings of ${figure.querySelector("figcaption").textContent}`);
    for (const svg of drawings) {
      const frame = svg.getBoundingClientRect();
      const id = svg.querySelector("title").id;
      const texts = [...svg.querySelectorAll("text")];
      if (!texts.length) faults.push(`${id} has no text`);
      texts.forEach((text, i) => {
        const box = text.getBoundingClientRect();
        if (!seen(text)) faults.push(`${id}: ${text.textContent} is not to be seen`);
        if (!within(box, frame, 0.75)) faults.push(`${id}: ${text.textContent} leaves the chart`);
        for (const other of texts.slice(i + 1)) {
          if (overlap(box, other.getBoundingClientRect())) {
            faults.push(`${id}: ${text.textContent} and ${other.textContent} overlap`);
          }
        }
      });
      const rule = parse(getComputedStyle(root).getPropertyValue("--rule").replace(/^#(..)(..)(..)$/, (_, r, g, b) => `${parseInt(r, 16)},${parseInt(g, 16)},${parseInt(b, 16)}`));
      let marks = 0;
      for (const path of svg.querySelectorAll("path")) {
        const style = getComputedStyle(path);
        const colour = style.fill !== "none" ? style.fill : style.stroke;
        if (!within(path.getBoundingClientRect(), frame, 2)) faults.push(`${id}: a line leaves the chart`);
        if (rule && String(parse(colour)) === String(rule)) continue;
        marks++;
        readable(`${id}: a line`, colour, 3);
      }
      if (!marks) faults.push(`${id} shows nothing`);
      const names = svg.getAttribute("aria-labelledby").split(" ").map((ref) => document.getElementById(ref).textContent);
      charts.push({ id, name: names.join(" "), texts: texts.map((text) => text.textContent) });
    }
  }

  const tables = [...document.querySelectorAll("table")].filter(seen).map((table) => {
    for (const head of table.querySelectorAll("th")) {
      if (!head.scope) faults.push(`a heading without scope: ${head.textContent}`);
    }
    return [...table.querySelectorAll("caption,th,td")].map((cell) => squeeze(cell.textContent));
  });
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  if (new Set(ids).size !== ids.length) faults.push("an id stands there twice");
  for (const script of document.querySelectorAll("script,link,iframe,img,object")) faults.push(`the page has a ${script.tagName}`);
  return { faults, charts, tables, text: squeeze(document.body.innerText) };
})()
