"""How ranks that were started together find each other, and not what is left of those before them.

torchrun keeps one store for all its restarts. What a rank wrote there before it died, its address too, is still there
when the ranks are started again, and one that is quicker than another would call the dead one. A count of restarts
does not tell the old from the new: every machine's launcher counts its own. So each start gets a name that no start
before it had, and keeps all it writes under that name.
"""

from __future__ import annotations

import time
import uuid
from datetime import timedelta

from torch.distributed.distributed_c10d import Store

from ukge.errors import RunError

PAUSE = 0.01
"""Seconds between two looks of the first rank."""


def agreed_name(store: Store, rank: int, size: int, patience: timedelta) -> str:
    """Return a name of this start of the ranks, the same on each and never used before in the store.

    Every rank but the first asks under a token of its own, and takes the answer to that token only. The first rank
    cannot tell whether it reads the question of a rank that is dead, so it answers until the one that lives confirms.
    """
    token = uuid.uuid4().hex
    if rank:
        store.set(f"asked/{rank}", token)
        name = store.get(f"answer/{token}").decode()
        store.set(f"heard/{name}/{rank}", "")
        return name
    deadline = time.monotonic() + patience.total_seconds()
    missing = list(range(1, size))
    while missing:
        for other in missing:
            if store.check([f"asked/{other}"]):
                store.set(f"answer/{store.get(f'asked/{other}').decode()}", token)
        missing = [other for other in missing if not store.check([f"heard/{token}/{other}"])]
        if missing and time.monotonic() > deadline:
            names = ", ".join(map(str, missing))
            raise RunError(f"rank {names} did not come within {patience}", hint="See what torchrun says of it.")
        time.sleep(PAUSE if missing else 0)
    return token
