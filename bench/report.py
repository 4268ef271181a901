"""The results as tables."""
import statistics

COLUMNS = ("filter", "image", "ours ms", "±", "peer", "peer ms", "peer / ours", "error", "PSNR", "Mpixel/s", "of FMA",
           "of copy")
WIDTHS = (38, 9, 9, 5, 28, 9, 11, 7, 5, 8, 6, 7)


def number(value):
    """Three digits, never more than are known."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else \
        f"{value:.3f}"


def percent(share):
    return f"{100 * share:.0f} %"


def error_text(row):
    return f"{row['error']:.0e}" if row["type"].startswith("f") else f"{row['error']:.0f} step"


def psnr_text(row):
    return f"{row['psnr']:.2f}" if "psnr" in row else "-"


def size_text(row):
    return f"{row['width']}x{row['height']}"


def cells(row):
    """One for each peer; one without, where there is none."""
    head = [row["name"], size_text(row)]
    if not row["right"]:
        return [[*head, "WRONG", "", "", "", "", error_text(row), "", "", "", ""]]
    ours = row["ours"]
    tail = [error_text(row), psnr_text(row), number(row["mpixel_per_s"]),
            percent(row["bounds"]["fma_ms"] / ours["ms"]) if row["bounds"]["fma_ms"] else "-",
            percent(row["bounds"]["copy_ms"] / ours["ms"])]
    own = [*head, number(ours["ms"]), percent(ours["spread"]) if ours["turns"] > 1 else "-"]
    peers = [[peer["name"], number(peer["ms"]), number(peer["ratio"])] for peer in row["peers"]]
    return [[*own, *peer, *tail] for peer in peers or [[row["no_peer"], "", ""]]]


def line(values, widths=None):
    padded = [f"{v:<{w}}" for v, w in zip(values, widths)] if widths else values
    return "| " + " | ".join(padded) + " |"


def table(columns, rows, widths=None):
    return [line(columns, widths), "|" + "---|" * len(columns), *(line(row, widths) for row in rows)]


def ratios(results, pairs):
    """Of two cases of one group: the worst and the middle over everything measured."""
    times = {(row["name"], row["width"], row["height"]): row["ours"]["ms"] for row in results["rows"] if row["right"]}
    found = []
    for (name, width, height), ms in times.items():
        other = pairs(name)
        if other and (other, width, height) in times:
            found.append((ms / times[other, width, height], name, f"{width}x{height}"))
    return sorted(found)


def compared_line(what, found):
    if not found:
        return []
    share, name, size = found[-1]
    return [f"- {what}: {statistics.median(f[0] for f in found):.2f} times the time in the middle of {len(found)} pairs, "
            f"{share:.2f} at most ({name}, {size})."]


def comparisons(results):
    def float_of(name):
        return name.replace(" u16", " f32") if name.endswith(" u16") else None

    def bilateral_of(name):
        return name.removeprefix("adaptive-") if name.startswith("adaptive-bilateral") else None

    return [*compared_line("16-bit against float", ratios(results, float_of)),
            *compared_line("adaptive-bilateral against bilateral", ratios(results, bilateral_of))]


def scaling(results):
    counts = sorted({int(n) for one in results["threads"] for n in one["ms"]})
    rows = [[one["name"], *(number(one["ms"][str(n)]) for n in counts), percent(one["efficiency"])]
            for one in results["threads"]]
    return table(["filter", *(f"{n} threads, ms" if n > 1 else "1 thread, ms" for n in counts), "efficiency"], rows)


def costs(results):
    sizes = list(dict.fromkeys(point["mpixel"] for one in results["sizes"] for point in one["points"]))
    rows = []
    for one in results["sizes"]:
        by_size = {point["mpixel"]: point["ms"] / point["mpixel"] for point in one["points"]}
        rows.append([one["name"], *(number(by_size[s]) if s in by_size else "-" for s in sizes),
                     f"{max(by_size.values()) / min(by_size.values()):.2f}"])
    return table(["filter", *(f"{s:g} Mpixel" for s in sizes), "largest / least"], rows)


def tiny(results):
    sizes = list(dict.fromkeys(one["size"] for one in results["tiny"]))
    names = list(dict.fromkeys(one["name"] for one in results["tiny"]))
    found = {(one["name"], one["size"]): one["reference_ms"] / one["ms"] for one in results["tiny"]}
    return table(["filter", *sizes], [[name, *(number(found[name, size]) for size in sizes)] for name in names])


def instructions(results):
    sets = sorted({name for one in results["simd"] for name in one["ms"]})
    rows = [[one["name"], *(number(one["ms"][s]) if s in one["ms"] else "" for s in sets)] for one in results["simd"]]
    return table(["filter", *(f"{s}, ms" for s in sets)], rows)


def parts(results):
    """A column for each case: nanoseconds a pixel, and the shares of both ceilings."""
    def cell(one):
        shares = [percent(one[bound] / one["ns"]) for bound in ("fma", "copy") if one[bound] > 0]
        return number(one["ns"]) + (f" ({', '.join(shares)})" if len(shares) == 2 else
                                    f" (-, {shares[0]})" if shares else "")

    cases = results["parts"]
    rows = [[f"{first['step']} {first['part']}".strip(), *(cell(case["parts"][i]) for case in cases)]
            for i, first in enumerate(cases[0]["parts"])]
    rows.append(["all", *(number(sum(one["ns"] for one in case["parts"])) for case in cases)])
    return table(["step and part", *(case["name"] for case in cases)], rows)


def parts_words(results):
    case = results["parts"][0]
    return (f"{case['size']}; nanoseconds a pixel of one thread, the processor's time; in brackets the shares of the FMA "
            f"ceiling and of the rate of copies within the caches ({case['copy_bytes'] >> 20} MiB: "
            f"{case['copy_bytes_per_ns']:.0f} GB/s) that the part's least work takes.")


def differences(results):
    rows = [[row["name"], peer["library"] + " " + peer["function"], f"{peer['mean_difference']:.1e}",
             f"{peer['largest_difference']:.1e}", psnr_text(row), psnr_text(peer)]
            for row in results["rows"] for peer in row.get("peers", ()) if "mean_difference" in peer]
    return table(["case", "peer", "mean difference", "largest", "PSNR", "peer's"], rows) if rows else []


def ceilings_line(machine):
    rates = machine["multiply_adds_per_ns"][machine["simd"]]
    copy, threads = machine["copy_bytes_per_ns"], machine["threads"]
    return (f"{machine['simd']}, {threads} thread{'s' if threads > 1 else ''}: "
            f"{rates['all_threads']:.0f} G multiply-adds/s ({rates['one_thread']:.0f} on one thread), copies of {copy['bytes'] >> 20} MiB {copy['rate']:.1f} GB/s "
            "(read and written)")


def conditions_line(results):
    """What makes times untrue."""
    clock = "the processor's time, not the clock's; " if results["cpu_time"] else ""
    return f"{clock}load average {results['load']:.1f} before"


def again_words(results, section):
    """How a section was measured that is not of the same run as the rest."""
    again = results.get("again", {}).get(section)
    return f" Measured by itself: {conditions_line(again)}, {again['date']}, commit {again['commit']}." if again else ""


def threads_words(results, section):
    count = results.get("again", {}).get(section, results["machine"])["threads"]
    return "one thread" if count == 1 else f"{count} threads"


SIZES_TITLE = "Cost over the size of the image"


def sections(results):
    """Title, words and lines of what was measured besides the table."""
    found = (("Ours against ours", "", comparisons, "rows"),
             ("Where bm3d's time goes", parts_words, parts, "parts"),
             ("Threads", "1080p; efficiency: the time of one thread over that of all, divided by their number.", scaling,
              "threads"),
             (SIZES_TITLE, f"Nanoseconds a pixel, {threads_words(results, 'sizes')}.", costs, "sizes"),
             ("Tiny images", f"How many times as fast as the reference, on {threads_words(results, 'tiny')}.", tiny, "tiny"),
             ("Sets of vector instructions", "512x512, one thread.", instructions, "simd"))
    made = [(title, (words if isinstance(words, str) else words(results)) + again_words(results, key), body(results))
            for title, words, body, key in found if results.get(key)]
    return [one for one in made if one[2]]


def page(results, about, picture):
    machine, peers = results["machine"], results["peers"]
    beside = ", ".join(f"{name} {version}" for name, version in peers["versions"].items())
    text = [
        "# Times on the processor", "",
        "By `make bench`: from an image in memory to an image in memory, every result held against the reference first. "
        "Ours and the peers take turns in one run, with the same number of threads; medians. What the columns mean and "
        "how the peers are called: [bench/README.md](../../bench/README.md).", "",
        f"- {ceilings_line(machine)}", f"- {conditions_line(results)}",
        f"- peers: {beside or 'none'}" + (f"; {peers['missing']}" if peers["missing"] else ""), ""]
    for size in dict.fromkeys(size_text(row) for row in results["rows"]):
        rows = [cell for row in results["rows"] if size_text(row) == size for cell in cells(row)]
        text += [f"## {size}", "", *table(COLUMNS, rows), ""]
    if results["left_out"]:
        text += ["Left out, because of the time or the memory that they would take: " + "; ".join(results["left_out"]) + ".", ""]
    for title, words, body in sections(results):
        picture_lines = [f"![nanoseconds a pixel over Mpixel]({picture})", ""] if body and title == SIZES_TITLE else []
        text += [f"## {title}", "", *picture_lines, *([words, ""] if words else []), *body, ""]
    found = differences(results)
    if found:
        text += ["## Peers' results and ours", "",
                 "As shares of the range, on the first size; a peer that computes the same differs by rounding. PSNR in dB, "
                 "against the picture without noise; bm3d stands beside another filter.", "",
                 *found, ""]
    return "\n".join([*text, *about]) + "\n"
