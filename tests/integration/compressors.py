"""Brotli and Zstandard by the C libraries of Debian, which are there with their development files."""
import ctypes


def brotli(data, window=22, quality=5):
    library = ctypes.CDLL("libbrotlienc.so.1")
    library.BrotliEncoderMaxCompressedSize.restype = ctypes.c_size_t
    room = ctypes.c_size_t(library.BrotliEncoderMaxCompressedSize(ctypes.c_size_t(len(data))) + 16)
    out = ctypes.create_string_buffer(room.value)
    assert library.BrotliEncoderCompress(quality, window, 0, ctypes.c_size_t(len(data)), data, ctypes.byref(room), out)
    return out.raw[: room.value]


def expand_brotli(data, most=1 << 26):
    library = ctypes.CDLL("libbrotlidec.so.1")
    size, out = ctypes.c_size_t(most), ctypes.create_string_buffer(most)
    assert library.BrotliDecoderDecompress(ctypes.c_size_t(len(data)), data, ctypes.byref(size), out) == 1
    return out.raw[: size.value]


def expand_zstd(data, most=1 << 26):
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_decompress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(most)
    size = library.ZSTD_decompress(out, ctypes.c_size_t(most), data, ctypes.c_size_t(len(data)))
    assert size <= most
    return out.raw[:size]


def zstd(data):
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compressBound.restype = library.ZSTD_compress.restype = ctypes.c_size_t
    room = library.ZSTD_compressBound(ctypes.c_size_t(len(data)))
    out = ctypes.create_string_buffer(room)
    size = library.ZSTD_compress(out, ctypes.c_size_t(room), data, ctypes.c_size_t(len(data)), 3)
    assert size <= room
    return out.raw[:size]
