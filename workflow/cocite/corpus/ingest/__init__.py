"""From the shards of a release, of diffs or of a user's tables to the tables papers and citations.

No matrix is multiplied here, and the threads of BLAS would wait in a busy loop: they are kept from starting, unless
NumPy has been imported already.
"""

import os
import sys

if "numpy" not in sys.modules:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
