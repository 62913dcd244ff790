"""A list in chunks that are small, however large its objects are."""

from typing import Final

from numapin_client.client import ApiClient, Chunk, Source
from numapin_client.errors import AnswerTooLargeError

MOST_BYTES: Final = 2**20
"""Of a chunk with more than one object: it is parsed in one step of the event loop, in some 10 ms.

A tenant's pods may have 1.5 MB each: 100 of them would stop the loop for seconds and take a
gigabyte of memory.
"""

_FEWER: Final = 8


class ChunkedList:
    """Lists one source from its start to its end.

    Attributes:
        ended: whether the last chunk has been read.
    """

    def __init__(self, client: ApiClient, source: Source, limit: int) -> None:
        """Args: `limit` is the most objects in a chunk; there are fewer where they are large."""
        self.ended = False
        self._client, self._source = client, source
        self._most = self._limit = limit
        self._token = ""

    async def read(self) -> Chunk:
        """Read the next chunk.

        Raises:
            GoneError: the list has expired; begin another one.
            ClientError: as `ApiClient.list_chunk`.
        """
        chunk = await self._read()
        self._token, self.ended = chunk.next, not chunk.next
        self._limit = min(self._most, 2 * self._limit, _fitting(chunk))
        return chunk

    async def _read(self) -> Chunk:
        while self._limit > 1:
            try:
                return await self._client.list_chunk(
                    self._source, self._token, self._limit, MOST_BYTES
                )
            except AnswerTooLargeError:
                self._limit = max(1, self._limit // _FEWER)
        return await self._client.list_chunk(self._source, self._token, self._limit)


def _fitting(chunk: Chunk) -> int:
    """How many objects like those of a chunk are three quarters of `MOST_BYTES`."""
    return max(1, 3 * MOST_BYTES * len(chunk.items) // (4 * chunk.size_bytes))
