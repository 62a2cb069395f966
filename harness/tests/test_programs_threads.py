"""Work in a thread is told to stop when its caller is cancelled, and waited for."""

from __future__ import annotations

import asyncio
import threading

import pytest

from harness.programs.threads import in_thread


def test_its_result_and_its_error_are_the_callers() -> None:
    def fail(_: threading.Event) -> None:
        msg = "no"
        raise ValueError(msg)

    assert asyncio.run(in_thread(lambda cancelled: cancelled.is_set())) is False
    with pytest.raises(ValueError, match=r"^no$"):
        asyncio.run(in_thread(fail))


def test_a_cancelled_caller_waits_until_the_thread_has_ended() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work(cancelled: threading.Event) -> None:
        begun.set()
        assert cancelled.wait(10)
        ended.set()

    async def story() -> None:
        task = asyncio.create_task(in_thread(work))
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()

    asyncio.run(story())
