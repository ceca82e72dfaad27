"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const shown = { panel: 0, axis: "samples", measure: null, bands: true };

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const paint = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colourOf = (style) => (dark.matches ? style.on_dark : style.colour);

  const fade = (colour, alpha) => {
    const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
    return `rgba(${r},${g},${b},${alpha})`;
  };

  // Points that a log axis can show, on both axes.
  const usable = (x, y, log) => x.map((v, i) => i).filter((i) => x[i] > 0 && y[i] !== null && (!log || y[i] > 0));

  function traces(panel, measure) {
    const lines = [], bands = [];
    for (const method of panel.methods) {
      const y = method.y[measure.name];
      if (!y) continue;
      const x = method.x[shown.axis], style = data.styles[method.name];
      const keep = usable(x, y.mean, measure.log), pick = (list) => keep.map((i) => list[i]);
      const floor = (v, mean) => (measure.log && !(v > 0) ? mean / 100 : v);
      const common = { legendgroup: method.name, type: "scatter" };
      if (shown.bands && keep.length > 1) {
        const high = pick(y.high), low = keep.map((i) => floor(y.low[i], y.mean[i]));
        bands.push({
          ...common, uid: `band-${method.name}`, x: [...pick(x), ...pick(x).reverse()], y: [...high, ...low.reverse()],
          fill: "toself", fillcolor: fade(colourOf(style), 0.13), line: { width: 0 }, mode: "lines", hoverinfo: "skip", showlegend: false,
        });
      }
      lines.push({
        ...common, uid: `line-${method.name}`, name: method.name, x: pick(x), y: pick(y.mean), mode: "lines+markers",
        line: { color: colourOf(style), dash: style.dash, width: method.name === "one_sfw" ? 3.2 : 2 },
        marker: { color: colourOf(style), symbol: style.symbol, size: method.separate ? 8 : 5 },
        customdata: keep.map((i) => [y.low[i], y.high[i]]),
        hovertemplate: `<b>${method.name}</b><br>%{x:.3s} ${data.axes[shown.axis]}<br>mean %{y:.3g}` +
          "<br>10–90 % %{customdata[0]:.3g} to %{customdata[1]:.3g}<extra></extra>",
      });
    }
    return [...bands, ...lines];
  }

  function draw() {
    const panel = data.panels[shown.panel];
    const measure = panel.measures.find((m) => m.name === shown.measure) || panel.measures[0];
    const axis = { gridcolor: paint("--grid"), linecolor: paint("--axis"), ticks: "outside", tickcolor: paint("--axis"), zeroline: false, showline: true, mirror: false };
    const lines = traces(panel, measure);
    // Powers of ten, or, where the data span hardly one, whatever ticks fit.
    const power = (name) => {
      const values = lines.flatMap((line) => line[name]), decades = Math.log10(Math.max(...values) / Math.min(...values));
      const ticks = decades > 1.5 ? { dtick: 1, exponentformat: "power" } : { tickformat: ".2~g", nticks: 8 };
      return { type: "log", ...ticks, minor: { ticks: "outside", ticklen: 3, tickcolor: paint("--axis") } };
    };
    const layout = {
      uirevision: "keep", margin: { l: 78, r: 16, t: 34, b: 62 }, paper_bgcolor: paint("--paper"), plot_bgcolor: paint("--paper"),
      font: { family: "system-ui, Segoe UI, Helvetica Neue, Arial, DejaVu Sans, sans-serif", size: 13, color: paint("--ink") },
      xaxis: { ...axis, ...power("x"), title: { text: data.axes[shown.axis], standoff: 10 }, uirevision: `${shown.panel}${shown.axis}` },
      yaxis: { ...axis, ...(measure.log ? power("y") : { type: "linear" }), title: { text: measure.label, standoff: 12 }, uirevision: `${shown.panel}${measure.name}` },
      legend: { x: 1.01, y: 1, xanchor: "left", font: { size: 13 }, tracegroupgap: 2, itemwidth: 44 },
      hovermode: "closest", hoverlabel: { align: "left", bgcolor: paint("--paper"), bordercolor: paint("--axis"), font: { color: paint("--ink") } },
    };
    if (window.innerWidth < 760) layout.legend = { orientation: "h", y: -0.22, x: 0 };
    Plotly.react("plot", lines, layout, {
      responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
      toImageButtonOptions: { filename: `onesfw-${panel.name}`, scale: 2 },
    });
  }

  function element(tag, text, name) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    return made;
  }

  function buttons(place, entries, chosen, choose) {
    place.replaceChildren(...entries.map(([name, label]) => {
      const button = element("button", label);
      button.type = "button";
      button.dataset.name = name;
      button.setAttribute("aria-pressed", String(name === chosen));
      button.addEventListener("click", () => choose(name));
      return button;
    }));
  }

  function controls() {
    const panel = data.panels[shown.panel];
    if (!panel.measures.some((m) => m.name === shown.measure)) shown.measure = panel.measures.length ? panel.measures[0].name : null;
    buttons(find("axis"), Object.entries(data.axes), shown.axis, (name) => { shown.axis = name; refresh(); });
    buttons(find("measure"), panel.measures.map((m) => [m.name, m.label]), shown.measure, (name) => { shown.measure = name; refresh(); });
    find("measures").style.display = panel.measures.length > 1 ? "" : "none";
  }

  function table() {
    const panel = data.panels[shown.panel];
    find("summary").textContent = `${panel.name}: ${panel.summary}`;
    find("note").textContent = panel.note;
    const head = element("tr");
    head.append(...panel.columns.map((column) => element("th", column)));
    find("table").tHead.replaceChildren(head);
    find("table").tBodies[0].replaceChildren(...panel.rows.map((row) => {
      const line = element("tr", undefined, row[0] === "one_sfw" ? "first" : "");
      row.forEach((cell, place) => {
        const box = element("td", cell);
        if (place === 0 && data.styles[cell]) {
          const swatch = element("span", undefined, "swatch");
          swatch.style.background = colourOf(data.styles[cell]);
          box.prepend(swatch);
          const method = panel.methods.find((m) => m.name === cell);
          if (method) box.title = `${method.summary}\n${method.citation}`;
        }
        line.append(box);
      });
      return line;
    }));
    const skipped = Object.entries(panel.skipped), place = find("skipped");
    place.replaceChildren();
    if (skipped.length) {
      const list = element("ul");
      for (const [name, reason] of skipped) {
        const item = element("li");
        item.append(element("strong", name), `: ${reason}`);
        list.append(item);
      }
      place.append("Not applicable here:", list);
    }
  }

  // A table that does not fit says so.
  function hints() {
    for (const box of document.querySelectorAll(".scroll")) {
      box.classList.remove("wide");
      box.classList.toggle("wide", box.scrollWidth > box.clientWidth + 1);
    }
  }

  function refresh() {
    controls();
    table();
    draw();
    hints();
  }

  if (data.panels.length === 0) {
    find("plot").textContent = "No curve was finished.";
    hints();
    return;
  }
  const settings = [...new Set(data.panels.map((panel) => panel.setting))];
  for (const setting of settings) {
    const group = document.createElement("optgroup");
    group.label = setting.replace("_", "-");
    data.panels.forEach((panel, place) => {
      if (panel.setting !== setting) return;
      const option = element("option", panel.name);
      option.value = place;
      group.append(option);
    });
    find("problem").append(group);
  }
  find("problem").addEventListener("change", (event) => { shown.panel = Number(event.target.value); refresh(); });
  find("problems").style.display = data.panels.length > 1 ? "" : "none";
  find("bands").addEventListener("change", (event) => { shown.bands = event.target.checked; draw(); });
  dark.addEventListener("change", refresh);
  window.addEventListener("resize", hints);
  refresh();
})();
