"""Draws dashboards as SVG: each panel with the results of its queries from a Prometheus.

Requires only Python. The run that is queried is made by `make.py`. A picture contains the digest of what it draws, apart from data,
so that a picture of an earlier dashboard is detected.
"""

import hashlib
import html
import json
import math
import re
import urllib.parse
import urllib.request

COLUMN, ROW, GAP = 44, 24, 8
# Without green, amber and red, which have a meaning.
COLOURS = ["#2563eb", "#7c3aed", "#0891b2", "#be185d", "#475569", "#60a5fa", "#c084fc", "#155e75", "#f472b6", "#94a3b8"]
POINTS = 90
# Rows of a terminal that begin a table.
HEADINGS = ("APPLICATION", "UNAUTHENTICATED")


def series_of(prometheus, expr, begin, end, window):
    """Yields the series of a query over the run: their labels, and pairs of time and value."""
    expr = re.sub(r"\$__rate_interval", f"{window}s", expr)
    expr = re.sub(r'=~"\$\w+"', '=~".*"', expr)
    step = max(1, round((end - begin) / POINTS))
    query = urllib.parse.urlencode({"query": expr, "start": begin, "end": end, "step": step})
    with urllib.request.urlopen(f"{prometheus}/api/v1/query_range?{query}", timeout=30) as response:
        result = json.load(response)
    for series in result["data"]["result"]:
        points = [(float(at), float(value)) for at, value in series["values"]]
        points = [(at, value) for at, value in points if math.isfinite(value)]
        if points:
            yield series["metric"], points


def lines_of(prometheus, panel, begin, end, window):
    """Returns the lines of a panel: names and points."""
    lines = []
    for target in panel["targets"]:
        for labels, points in series_of(prometheus, target["expr"], begin, end, window):
            name = re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), target["legendFormat"])
            lines.append((name.strip() or "value", points))
    return lines


def formatted(value, unit):
    """Formats a value with its unit, abbreviated."""
    if unit == "percentunit":
        return f"{value * 100:.4g} %"
    if unit == "bytes":
        return scaled(value, [(1 << 30, " GiB"), (1 << 20, " MiB"), (1 << 10, " KiB")], " B")
    if unit == "s":
        if value == 0:
            return "0 s"
        return scaled(value, [(86400, " d"), (3600, " h"), (60, " min"), (1, " s"), (1e-3, " ms")], " s", (1e-6, " µs"))
    if unit in ("reqps", "cps"):
        return scaled(value, [(1e6, "M"), (1e3, "k")], "") + "/s"
    if unit.startswith("suffix:"):
        return f"{value:.3g}{unit.removeprefix('suffix:')}"
    return scaled(value, [(1e6, "M"), (1e4, "k")], "")


def scaled(value, scales, plain, least=None):
    for scale, suffix in scales:
        if abs(value) >= scale:
            # Thousands from ten thousand on; smaller numbers are short enough.
            return f"{value / (1e3 if scale == 1e4 else scale):.3g}{suffix}"
    if least and value:
        return f"{value / least[0]:.3g}{least[1]}"
    return f"{value:.3g}{plain}"


def text(x, y, words, size=11, colour="#334155", anchor="start", weight="normal"):
    words = html.escape(str(words))
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}">{words}</text>'


def colour_of(panel, name, index):
    """Returns the colour of a series, whether it is shaded, and whether it is a limit, by the panel's overrides."""
    for one in panel["fieldConfig"]["overrides"]:
        wanted = {item["id"]: item["value"] for item in one["properties"]}
        if one["matcher"]["id"] == "byRegexp" and "color" in wanted and re.search(one["matcher"]["options"].strip("/"), name):
            return wanted["color"]["fixedColor"], wanted["color"]["mode"] == "shades", "custom.lineStyle" in wanted
    return COLOURS[index % len(COLOURS)], False, False


def table(panel, prometheus, end, height):
    """Draws the rows of an instant query."""
    columns = list(panel["transformations"][0]["options"]["indexByName"])
    query = urllib.parse.urlencode({"query": panel["targets"][0]["expr"], "time": end})
    with urllib.request.urlopen(f"{prometheus}/api/v1/query?{query}", timeout=30) as response:
        rows = sorted([series["metric"].get(name, "") for name in columns] for series in json.load(response)["data"]["result"])
    for number, row in enumerate([columns, *rows][: (height - 40) // 18]):
        for column, words in enumerate(row):
            colour = {"page": "#dc2626", "ticket": "#d97706"}.get(words, "#334155") if number else "#64748b"
            yield text(10 + 190 * column, 42 + 18 * number, words, 11, colour)
    if not rows:
        yield text(10, 60, "none", 11)


def stat(panel, lines, width, height):
    """Draws the last value of each line, in the colour of its threshold."""
    defaults = panel["fieldConfig"]["defaults"]
    words = {value: option["text"] for mapping in defaults["mappings"] for value, option in mapping["options"].items()}
    size = 22 if len(lines) <= 1 else 12
    for index, (name, points) in enumerate(lines[:5]):
        value = points[-1][1]
        steps = [step for step in defaults["thresholds"]["steps"] if step["value"] is None or value >= step["value"]]
        colour = {"green": "#059669", "red": "#dc2626"}[steps[-1]["color"]]
        shown = words.get(f"{value:g}") or formatted(value, defaults["unit"])
        y = 34 + index * 13 if size == 12 else 58
        yield text(10, y, shown, size, colour, weight="bold")
        x = 10 + 8 * len(shown) if size == 12 else 10
        yield text(x + 6 if size == 12 else 10, y if size == 12 else 78, name, 10, "#64748b")


def graph(panel, lines, width, height, begin, end):
    """Draws lines over the time of the run, with a legend below."""
    unit = panel["fieldConfig"]["defaults"]["unit"]
    top = max((value for _, points in lines for _, value in points), default=0) * 1.08 or 1.0
    top = panel["fieldConfig"]["defaults"].get("max", top)
    left, above, below = 62, 34, 44
    wide, high = width - left - 12, height - above - below
    for part in (0, 0.5, 1):
        y = above + high * (1 - part)
        yield f'<line x1="{left}" x2="{width - 12}" y1="{y:.0f}" y2="{y:.0f}" stroke="#e2e8f0"/>'
        yield text(left - 6, y + 4, formatted(top * part, unit), 10, "#64748b", "end")
    for minute in range(int((end - begin) // 60) + 1):
        x = left + wide * minute * 60 / (end - begin)
        yield text(x, above + high + 14, f"{minute} min", 10, "#94a3b8", "middle")
    x, shades = 10, {}
    for index, (name, points) in enumerate(lines):
        colour, is_shaded, is_limit = colour_of(panel, name, index)
        # Several series of one meaning: each is lighter than the previous one.
        shade = shades[colour] = shades.get(colour, -1) + 1 if is_shaded else 0
        style = f' stroke-opacity="{max(0.25, 1 - 0.22 * shade):.2f}"' + (' stroke-dasharray="6 5"' if is_limit else "")
        at = " ".join(f"{left + wide * (when - begin) / (end - begin):.1f},{above + high * (1 - value / top):.1f}" for when, value in points)
        yield f'<polyline points="{at}" fill="none" stroke="{colour}" stroke-width="1.6"{style}/>'
        length = 18 + 6.2 * len(name)
        if x + length > width - 30:
            if x < width:
                yield text(x, height - 8, "…", 11)
            x = width
            continue
        yield f'<rect x="{x:.0f}" y="{height - 16}" width="9" height="9" fill="{colour}"/>'
        yield text(x + 13, height - 8, name, 10)
        x += length


def digest(content):
    """Returns the digest of something that JSON can express."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def digest_of_dashboard(dashboard):
    """Returns the digest of everything in a dashboard that a picture shows."""
    panels = [{name: value for name, value in panel.items() if name not in ("description", "links")} for panel in dashboard["panels"]]
    return digest([dashboard["title"], panels])


def digest_of_terminal(words):
    """Returns the digest of the headings of a terminal's tables."""
    return digest([row.split() for row in words.split("\n") if row.startswith(HEADINGS)])


def digest_in(picture):
    """Returns the digest that a picture contains; `None` if it has none."""
    found = re.search(r"<metadata>(\w+)</metadata>", picture)
    return found and found[1]


def draw(prometheus, dashboard, begin, end, window):
    """Returns a dashboard as SVG, and the titles of panels without data."""
    bottom = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in dashboard["panels"])
    whole, tall = 24 * COLUMN + GAP, bottom * ROW + 44
    parts, empty = [], []
    for panel in dashboard["panels"]:
        position = panel["gridPos"]
        if panel["type"] == "row":
            parts.append(text(GAP + 2, position["y"] * ROW + 56, panel["title"], 13, "#0f172a", weight="bold"))
            continue
        width, height = position["w"] * COLUMN - GAP, position["h"] * ROW - GAP
        # Highest first: if the legend is too long, the names of the most visible series remain.
        lines = sorted(lines_of(prometheus, panel, begin, end, window), key=lambda line: -max(value for _, value in line[1]))
        inside = [f'<rect width="{width}" height="{height}" rx="4" fill="#ffffff" stroke="#cbd5e1"/>']
        inside.append(text(10, 18, panel["title"], 12, "#0f172a", weight="bold"))
        if panel["type"] == "table":
            inside += table(panel, prometheus, end, height)
        elif not lines:
            empty.append(panel["title"])
            inside.append(text(10, 40, "no data, which is normal", 10, "#94a3b8"))
        elif panel["type"] == "stat":
            inside += stat(panel, lines, width, height)
        else:
            inside += graph(panel, lines, width, height, begin, end)
        # A nested SVG, which clips text that is too long.
        x, y = position["x"] * COLUMN + GAP, position["y"] * ROW + 40
        parts.append(f'<svg x="{x}" y="{y}" width="{width}" height="{height}">{"".join(inside)}</svg>')
    title = text(GAP + 2, 26, dashboard["title"], 17, "#0f172a", weight="bold")
    return page(whole, tall, [title, *parts], digest_of_dashboard(dashboard)), empty


def terminal(words):
    """Returns the text of a terminal as SVG."""
    rows = words.rstrip("\n").split("\n")
    width, height = 20 + 7.3 * max(map(len, rows)), 26 + 17 * len(rows)
    parts = [f'<rect width="{width:.0f}" height="{height}" rx="6" fill="#0f172a"/>']
    for number, row in enumerate(rows):
        colour = "#f87171" if row.startswith("!") else "#38bdf8" if row.startswith(HEADINGS) else "#e2e8f0"
        y = 26 + 17 * number
        parts.append(f'<text x="10" y="{y}" font-size="12" fill="{colour}" font-family="monospace" xml:space="preserve">{html.escape(row)}</text>')
    return page(width, height, parts, digest_of_terminal(words))


def page(width, height, parts, of):
    inside = "\n".join(parts)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" font-family="system-ui, sans-serif">'
    return f'{head}\n<metadata>{of}</metadata>\n<rect width="100%" height="100%" fill="#f1f5f9"/>\n{inside}\n</svg>\n'
