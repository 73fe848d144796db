# SPDX-License-Identifier: BSL-1.0
"""GB/s over k as an SVG: a panel for each container and direction, a line for each kernel table, memcpy,
and the peers as dots."""

import math

from goals import KIB64

COLOURS = {"portable": "#8a8f98", "avx2": "#2f6db3", "avx512": "#c2452d", "neon": "#2f8f5b"}
PEER_COLOURS = ["#7a4fa3", "#b58900", "#1b8a8a", "#444444", "#d16ba5", "#6b8e23"]
WIDTH, HEIGHT, LEFT, TOP, GAP = 250, 190, 52, 64, 26


class Panel:
    """Logarithmic GB/s upwards, k to the right."""

    def __init__(self, column, row, largest_k, low, high):
        self.x, self.y = LEFT + column * (WIDTH + GAP), TOP + row * (HEIGHT + 56)
        self.largest_k, self.low, self.high = largest_k, math.log10(low), math.log10(high)

    def at(self, k, gbps):
        up = (math.log10(max(gbps, 10**self.low)) - self.low) / (self.high - self.low)
        return self.x + WIDTH * k / self.largest_k, self.y + HEIGHT * (1 - up)


def text(x, y, words, anchor="middle", colour="#333", size=11):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{words}</text>'


def draw_panel(panel, title, lines, dots, memcpy, first):
    out = [f'<rect x="{panel.x}" y="{panel.y}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>']
    out.append(text(panel.x + WIDTH / 2, panel.y - 6, title, size=12))
    for gbps in (0.1, 1, 10, 100):
        x, y = panel.at(0, gbps)
        out.append(f'<line x1="{x:.1f}" x2="{x + WIDTH:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e3e3e3"/>')
        if first:
            out.append(text(x - 5, y + 4, f"{gbps:g}", "end"))
    for k in range(0, panel.largest_k + 1, panel.largest_k // 8):
        x, _ = panel.at(k, 1)
        out.append(text(x, panel.y + HEIGHT + 14, k))
    x, y = panel.at(0, memcpy)
    out.append(f'<line x1="{x:.1f}" x2="{x + WIDTH:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#111" stroke-dasharray="5 3"/>')
    for table, points in lines:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (panel.at(k, v) for k, v in points))
        out.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS.get(table, "#000")}" stroke-width="1.6"/>')
    for colour, k, gbps in dots:
        x, y = panel.at(k, gbps)
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>')
    return out


def svg(rows):
    """`rows`: goals.Rows"""
    peers = list(
        dict.fromkeys(
            who
            for (name, who, size), r in rows.rows.items()
            if "peer" in r and size == KIB64 and name.split("/")[0] in ("encode", "decode")
        )
    )
    colours = {peer: PEER_COLOURS[i % len(PEER_COLOURS)] for i, peer in enumerate(peers)}
    width, height = LEFT + 4 * (WIDTH + GAP), TOP + 2 * (HEIGHT + 56) - 32
    memcpy = rows.get("memcpy", "memcpy", KIB64)["gbps"]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        text(14, 16, "GB/s of decoded bytes over the bits kept, 64 KiB, one thread", "start", size=13),
    ]
    x = LEFT
    for name, colour in [("memcpy (dashed)", "#111"), *[(t, COLOURS.get(t, "#000")) for t in rows.tables], *colours.items()]:
        out += [f'<rect x="{x}" y="27" width="10" height="10" fill="{colour}"/>', text(x + 14, 36, name, "start")]
        x += 26 + 6.4 * len(name)
    for row, direction in enumerate(("encode", "decode")):
        for column, bits in enumerate((8, 16, 32, 64)):
            panel = Panel(column, row, bits, 0.05, 200)
            lines = []
            for table in rows.tables:
                points = [(k, rows.get(f"{direction}/{bits}/{k}", table, KIB64)) for k in range(1, bits)]
                lines.append((table, [(k, r["gbps"]) for k, r in points if r]))
            dots = []
            for (name, who, size), r in rows.rows.items():
                if who not in colours or size != KIB64:
                    continue
                if bits == 8 and name in (f"{direction}/bool", f"{direction}/bool/msb"):
                    dots.append((colours[who], 1, r["gbps"]))
                elif name.startswith(f"{direction}/{bits}/"):
                    dots.append((colours[who], int(name.split("/")[2]), r["gbps"]))
            out += draw_panel(panel, f"{direction}, {bits} bits", lines, dots, memcpy, column == 0)
    return "\n".join(out) + "\n</svg>\n"
