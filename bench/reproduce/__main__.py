"""`./dev reproduce [FIGURE…]`: lists the papers' figures, or makes some again and writes one page about them."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from hocket.errors import HocketError, UsageError
from hocket.tables import columns

from reproduce.cache import Cache, state_of
from reproduce.figure import RECORD, Figure, Options, Results
from reproduce.page import Shown, page
from reproduce.registry import FIGURES, PAPERS, select

REPO = Path(__file__).resolve().parents[2]
KEPT = REPO / "build" / "reproduce"


def listing(figures: Sequence[Figure] = FIGURES) -> str:
    rows = [(one.identity, one.title, one.how, one.needs) for one in figures]
    return columns(("figure", "title", "made by", "needs"), rows, right=())


def results_of(figure: Figure, options: Options, cache: Cache, again: bool) -> Results:
    """Return the kept results, or make and keep them. A record may grow, so its results are not kept."""
    assert figure.make is not None  # select() returns only such figures
    if figure.how == RECORD:
        return json.loads(json.dumps(figure.make(options)))
    kept = None if again else cache.load(figure, options)
    if kept is not None:
        _say(f"{figure.identity}: kept results")
        return kept
    start = time.monotonic()
    results = json.loads(json.dumps(figure.make(options)))  # the same whether it was kept or not
    cache.save(figure, options, results)
    _say(f"{figure.identity}: made in {time.monotonic() - start:.1f} s")
    return results


def shown(figure: Figure, results: Results) -> Shown:
    assert figure.judge is not None and figure.draw is not None
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "figure.png"
        figure.draw(results, path)
        return Shown(figure, figure.judge(results), path.read_bytes())


def _say(text: str) -> None:
    print(f"reproduce: {text}", file=sys.stderr, flush=True)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev reproduce", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("figure", nargs="*", help=f"a figure, a paper ({', '.join(PAPERS)}) or all; none: list")
    parser.add_argument("--swf", type=Path, help="a log of jobs for calciom-1, instead of a made-up one")
    parser.add_argument("--again", action="store_true", help="make figures although this commit's results are kept")
    parser.add_argument("--out", type=Path, default=KEPT / "page.html", help="the page (default: build/reproduce)")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    arguments = _arguments(words)
    if not arguments.figure:
        print(listing())
        return 0
    state = state_of(REPO)
    cache, options = Cache(KEPT / state), Options(arguments.swf)
    made, failed = [], []
    try:
        for figure in select(arguments.figure):
            try:
                made.append(shown(figure, results_of(figure, options, cache, arguments.again)))
            except UsageError:
                raise
            except HocketError as error:  # the other figures are made all the same
                failed.append(figure.identity)
                _say(f"{figure.identity}: {error}")
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(page(made, FIGURES, PAPERS, state), encoding="utf-8")
    except (HocketError, OSError) as error:
        _say(str(error))
        return 2 if isinstance(error, UsageError) else 1
    for one in made:
        print(f"{one.figure.identity}: {one.finding.agreement}. {one.finding.verdict}")
    print(arguments.out)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
