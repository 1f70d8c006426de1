"""What `cocite plan` knows of how long jobs take, from finished runs: `python -m tests.benchmarks.calibration`.

Its arguments are pairs: the configuration of a run, and the working folder that it was made in. Two runs of one
configuration at two sizes tell apart what grows.
"""

import argparse
from pathlib import Path

from cocite.tools.run_cost import SHIPPED, calibrate, measured_jobs, write_calibration


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, default=SHIPPED)
    given = parser.parse_args()
    pairs = zip(given.runs[::2], given.runs[1::2], strict=True)
    write_calibration(given.output, calibrate(measured_jobs(configfile, folder) for configfile, folder in pairs))


if __name__ == "__main__":
    main()
