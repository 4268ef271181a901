"""A line plot with logarithmic axes as SVG; its colours can be read on white and on black."""
import math

INK = "#808890"
COLOURS = ("#3b82f6", "#e8590c", "#2f9e44", "#ae3ec9", "#c08a00", "#0c9fb5", "#e64980", "#7a8f2a")
WIDTH, HEIGHT = 820, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 250, 30, 50


def _text(x, y, words, colour=INK, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}"{more}>{words}</text>'


def _decades(low, high):
    return [10.0**e for e in range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)]


def _spread_out(wanted, least):
    """The same heights in the same order, moved so that neighbours are `least` apart."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = list(wanted)
    for before, after in zip(order, order[1:]):
        placed[after] = max(placed[after], placed[before] + least)
    return placed


def line_plot(title, x_label, y_label, lines):
    """lines: name -> [(x, y), …], all positive."""
    xs = [x for points in lines.values() for x, _ in points]
    ys = [y for points in lines.values() for _, y in points]
    x_low, x_high = min(xs), max(xs)
    y_low, y_high = (10 ** math.floor(math.log10(min(ys))), 10 ** math.ceil(math.log10(max(ys))))

    def place(low, high, start, end, value):
        if high == low:
            return (start + end) / 2
        return start + (end - start) * math.log(value / low) / math.log(high / low)

    def to_x(value):
        return place(x_low, x_high, LEFT, WIDTH - RIGHT, value)

    def to_y(value):
        return place(y_low, y_high, HEIGHT - BOTTOM, TOP, value)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
             f'font-family="sans-serif" font-size="12">', f"<title>{title}</title>"]
    for y in _decades(y_low, y_high):
        parts.append(f'<path d="M{LEFT} {to_y(y):.1f}H{WIDTH - RIGHT}" stroke="{INK}" stroke-opacity="0.35"/>')
        parts.append(_text(LEFT - 8, to_y(y) + 4, f"{y:g}", anchor="end"))
    for x in sorted({x_low, x_high, *_decades(x_low, x_high)}):
        parts.append(f'<path d="M{to_x(x):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="{INK}" stroke-opacity="0.35"/>')
        parts.append(_text(to_x(x), HEIGHT - BOTTOM + 18, f"{x:g}"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_label))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(_text(18, middle, y_label, more=f' transform="rotate(-90 18 {middle})"'))
    labels = _spread_out([to_y(points[-1][1]) for points in lines.values()], 15)
    for colour, (name, points), label in zip(COLOURS * len(lines), lines.items(), labels):
        path = "L".join(f"{to_x(x):.1f} {to_y(y):.1f}" for x, y in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{to_x(x):.1f}" cy="{to_y(y):.1f}" r="3" fill="{colour}"/>' for x, y in points]
        parts.append(_text(WIDTH - RIGHT + 10, label + 4, name, colour, "start"))
    return "\n".join([*parts, "</svg>", ""])
