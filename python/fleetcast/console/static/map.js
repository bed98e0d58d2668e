// A map of points over a plain outline of the world, without tiles. Longitudes and latitudes are
// drawn as they are, so a degree is as wide at the poles as at the equator.

import { el } from "./dom.js";
import { COASTS } from "./vendor/world.js";

const POINT_PX = 4;
const NEAR_PX = 12;
const MARGIN = 0.12;
const SPAN_MIN = 8; // degrees
const EDGE = 180; // a longer step of longitude goes over the edge of the map
const WORLD = { west: -180, east: 180, south: -85, north: 85 };
const scheme = matchMedia("(prefers-color-scheme: dark)");

/** The part of the world around some points, wider than high. */
function around(points) {
  if (!points.length) return WORLD;
  const places = points.flatMap((of) => [[of.lat, of.lon], ...(of.track ?? [])]);
  const [lats, lons] = [0, 1].map((at) => places.map((place) => place[at]));
  const ends = (values) => values.reduce(([low, high], of) => [Math.min(low, of), Math.max(high, of)], [Infinity, -Infinity]);
  const [[south, north], [west, east]] = [ends(lats), ends(lons)];
  const margin = Math.max((east - west) * MARGIN, (north - south) * MARGIN, SPAN_MIN / 2);
  return { west: west - margin, east: east + margin, south: south - margin, north: north + margin };
}

/**
 * `show(points, whole)` draws points with `lat`, `lon`, `colour`, a CSS variable, and `label`. A point
 * may have a `track`, the places before it.
 */
export class WorldMap {
  constructor(choose) {
    this.points = [];
    this.canvas = el("canvas", { role: "img", "aria-label": "Map", pointermove: (event) => this.point(event),
      pointerleave: () => this.say(null), click: () => this.found && choose(this.found) });
    this.reading = el("output", { class: "help" });
    this.node = el("div", { class: "map" }, this.canvas, this.reading);
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.node);
    this.recolour = () => this.draw();
    scheme.addEventListener("change", this.recolour);
  }

  show(points, whole) {
    this.points = points;
    this.part = whole ? WORLD : around(points);
    this.canvas.setAttribute("aria-label", `Map of ${points.length} entities; the table has the same entities`);
    this.draw();
    this.say(null);
  }

  draw() {
    const [width, height] = [this.node.clientWidth, Math.max(this.node.clientHeight - 24, 0)];
    if (!this.part || !width || !height) return;
    const ratio = devicePixelRatio;
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    const { west, east, south, north } = this.part;
    const unit = Math.min(width / (east - west), height / (north - south));
    const [left, top] = [(width - unit * (east - west)) / 2, (height - unit * (north - south)) / 2];
    const x = (lon) => left + (lon - west) * unit;
    const y = (lat) => top + (north - lat) * unit;
    const style = getComputedStyle(document.documentElement);
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.fillStyle = style.getPropertyValue("--land");
    pen.strokeStyle = style.getPropertyValue("--muted");
    pen.lineWidth = 0.5;
    for (const ring of COASTS) {
      let [lon, lat] = [0, 0];
      pen.beginPath();
      for (let at = 0; at < ring.length; at += 2) {
        lon += ring[at] / 10;
        lat += ring[at + 1] / 10;
        if (at && Math.abs(ring[at]) / 10 <= EDGE) pen.lineTo(x(lon), y(lat));
        else pen.moveTo(x(lon), y(lat));
      }
      pen.closePath();
      pen.fill();
      pen.stroke();
    }
    pen.lineWidth = 1.5;
    for (const { track = [], colour } of this.points) {
      pen.strokeStyle = style.getPropertyValue(colour);
      pen.beginPath();
      track.forEach(([lat, lon], at) => {
        if (at && Math.abs(lon - track[at - 1][1]) <= EDGE) pen.lineTo(x(lon), y(lat));
        else pen.moveTo(x(lon), y(lat));
      });
      pen.stroke();
    }
    pen.strokeStyle = style.getPropertyValue("--sheet");
    pen.lineWidth = 1;
    for (const point of this.points) {
      Object.assign(point, { x: x(point.lon), y: y(point.lat) });
      pen.fillStyle = style.getPropertyValue(point.colour);
      pen.beginPath();
      pen.arc(point.x, point.y, POINT_PX, 0, 2 * Math.PI);
      pen.fill();
      pen.stroke();
    }
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let [found, best] = [null, NEAR_PX];
    for (const of of this.points) {
      const off = Math.hypot(of.x - x, of.y - y);
      if (off < best) [found, best] = [of, off];
    }
    this.say(found);
  }

  say(found) {
    this.found = found;
    this.canvas.classList.toggle("over", Boolean(found));
    this.reading.textContent = found ? found.label : "";
  }

  end() {
    this.watch.disconnect();
    scheme.removeEventListener("change", this.recolour);
  }
}
