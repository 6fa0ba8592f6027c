"""Hundreds of rollouts from one event loop: at most 64 at once, and the stragglers are cancelled."""

from __future__ import annotations

import asyncio
import time

from hotbed import AsyncClient, Result, aconnect, arollout_once

ROLLOUTS, AT_ONCE, ENOUGH = 300, 64, 280


async def one(number: int, client: AsyncClient, turns: asyncio.Semaphore) -> Result:
    """One rollout, in its turn. Every hundredth sleeps."""
    code = f"import time; time.sleep({60 if number % 100 == 99 else 0}); print({number})"
    async with turns:
        return await arollout_once("python", code=code, client=client)


async def main() -> None:
    """Take the first results and cancel the rest: a cancelled rollout's sandbox is killed."""
    begun = time.perf_counter()
    async with await aconnect() as client:
        turns = asyncio.Semaphore(AT_ONCE)
        runs = [asyncio.ensure_future(one(number, client, turns)) for number in range(ROLLOUTS)]
        done = 0
        for run in asyncio.as_completed(runs):
            done += (await run).ok
            if done == ENOUGH:
                break
        for run in runs:
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)
        print(f"{done} done in {time.perf_counter() - begun:.2f} s, {ROLLOUTS - done} cancelled")


if __name__ == "__main__":
    asyncio.run(main())
