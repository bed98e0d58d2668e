"""Server reflection: the schema for tools such as grpcurl.

`descriptors.binpb` holds the files below `protos/` as descriptors. `protos/README.md` says how to
build it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from fleetcast.errors import refused
from fleetcast.protobuf import delimited, fields, integer, messages, texts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from fleetcast.grpc.calls import Context

# Fields of FileDescriptorProto, and of the descriptors inside.
_FILE_NAME, _PACKAGE, _DEPENDENCY, _MESSAGE, _ENUM, _SERVICE = 1, 2, 3, 4, 5, 6
_NAME, _METHOD, _NESTED, _NESTED_ENUM = 1, 2, 3, 4
# Fields of a request, and of a response.
_BY_FILENAME, _BY_SYMBOL, _LIST = 3, 4, 7
_HOST, _REQUEST, _FILES, _SERVICES, _ERROR = 1, 2, 4, 6, 7
_NOT_FOUND, _UNIMPLEMENTED = 5, 12


@dataclass(frozen=True)
class _File:
    data: bytes
    dependencies: list[str]


class Reflection:
    """Answers reflection requests from the descriptors."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._symbols: dict[str, str] = {}
        self._services: list[str] = []
        descriptors = files("fleetcast").joinpath("descriptors.binpb").read_bytes()
        for data in messages(descriptors, 1):
            self._add(data)

    async def info(self, requests: AsyncIterator[bytes], _context: Context) -> AsyncIterator[bytes]:
        """Answers each request in turn. Raises `Refused` if a message is no reflection request."""
        async for request in requests:
            try:
                host = texts(request, _HOST)
                answer = self._answer(request)
            except ValueError:
                raise refused("invalid_input", field="payload") from None
            echo = delimited(_HOST, host[-1]) if host else b""
            yield echo + delimited(_REQUEST, request) + answer

    def _answer(self, request: bytes) -> bytes:
        for number, value in fields(request):
            text = value.decode(errors="replace") if isinstance(value, bytes) else ""
            if number == _LIST:
                names = (delimited(1, delimited(1, name)) for name in sorted(self._services))
                return delimited(_SERVICES, b"".join(names))
            if number == _BY_FILENAME:
                return self._file(text)
            if number == _BY_SYMBOL:
                return self._file(self._symbols.get(text, ""))
        # Proto3 has no extensions.
        return _error(_UNIMPLEMENTED, "no such request")

    def _file(self, name: str) -> bytes:
        """Returns the file `name` and all files that it depends on."""
        if name not in self._files:
            return _error(_NOT_FOUND, "not found")
        wanted = [name]
        for each in wanted:
            wanted += [more for more in self._files[each].dependencies if more not in wanted]
        return delimited(_FILES, b"".join(delimited(1, self._files[each].data) for each in wanted))

    def _add(self, data: bytes) -> None:
        (name,) = texts(data, _FILE_NAME)
        package = "".join(f"{each}." for each in texts(data, _PACKAGE))
        self._files[name] = _File(data, texts(data, _DEPENDENCY))
        symbols = [*_types(data, package, _MESSAGE, _ENUM)]
        for service in messages(data, _SERVICE):
            (own,) = texts(service, _NAME)
            self._services.append(package + own)
            symbols.append(package + own)
            for method in messages(service, _METHOD):
                symbols += [f"{package}{own}.{each}" for each in texts(method, _NAME)]
        self._symbols |= dict.fromkeys(symbols, name)


def _types(data: bytes, prefix: str, message: int, enum: int) -> Iterator[str]:
    for each in messages(data, enum):
        yield prefix + texts(each, _NAME)[0]
    for each in messages(data, message):
        name = prefix + texts(each, _NAME)[0]
        yield name
        yield from _types(each, f"{name}.", _NESTED, _NESTED_ENUM)


def _error(code: int, text: str) -> bytes:
    return delimited(_ERROR, integer(1, code) + delimited(2, text))
