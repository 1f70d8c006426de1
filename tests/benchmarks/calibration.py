"""What `cocite plan` knows of how long jobs take, from finished runs: `python -m tests.benchmarks.calibration`.

Its arguments are pairs: the configuration of a run, and the working folder that it was made in. Two runs of one
configuration at two sizes tell apart what grows. With `--only`, the other lines stay as they are.
"""

import argparse
from pathlib import Path

from cocite.tools.run_cost import SHIPPED, calibrate, measured_jobs, read_calibration, write_calibration


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, default=SHIPPED)
    parser.add_argument("--only", nargs="+", metavar="KEY", help="Keys of jobs whose lines are written anew.")
    given = parser.parse_args()
    pairs = zip(given.runs[::2], given.runs[1::2], strict=True)
    rates = calibrate(measured_jobs(configfile, folder) for configfile, folder in pairs)
    if given.only:
        rates = read_calibration(given.output) | {key: rates[key] for key in given.only}
    write_calibration(given.output, rates)


if __name__ == "__main__":
    main()
