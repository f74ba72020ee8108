"""Rounds, medians, tables."""
import json
import pathlib
import statistics
import sys

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results"


def write_whole(path, text):
    """The file has its old content or all of the new one, whenever the run is interrupted."""
    half = path.with_name(path.name + ".new")
    half.write_text(text)
    half.replace(path)


def table(columns, rows):
    """Markdown."""
    lines = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in [columns, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(columns), *lines[1:]])


class Report:
    """Figures by case and variant: each round adds one dictionary of numbers."""

    def __init__(self, name):
        self.name = name
        self.rows = {}

    def add(self, case, variant, figures):
        self.rows.setdefault((case, variant), []).append(figures)
        print(f"  {case:28s} {variant:34s} " + "  ".join(f"{k}={v:.4g}" for k, v in figures.items()), file=sys.stderr, flush=True)

    def medians(self):
        out = []
        for (case, variant), rounds in self.rows.items():
            keys = rounds[0].keys()
            out.append({"case": case, "variant": variant, "rounds": len(rounds),
                        **{k: statistics.median(r[k] for r in rounds if k in r) for k in keys}})
        return out

    def write(self):
        rows = self.medians()
        columns = []
        for row in rows:
            columns += [k for k in row if k not in columns]
        text = table(columns, [[f"{row[c]:.4g}" if isinstance(row.get(c), float) else row.get(c, "") for c in columns] for row in rows])
        RESULTS.mkdir(exist_ok=True)
        write_whole(RESULTS / f"{self.name}.md", text + "\n")
        write_whole(RESULTS / f"{self.name}.json", json.dumps(rows, indent=1) + "\n")
        print(text)
