"""The structs of include/ungrain.h as ctypes has them, made from the header's text.

As a program: a line for each field with its offset and size, of which abi/VERSION/layout.txt holds those of a release."""
import ctypes
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
TYPES = {"uint32_t": ctypes.c_uint32, "int32_t": ctypes.c_int32, "uint64_t": ctypes.c_uint64, "int64_t": ctypes.c_int64,
         "double": ctypes.c_double, "ptrdiff_t": ctypes.c_ssize_t, "const char*": ctypes.c_char_p}
HEADER = re.sub(r"/\*.*?\*/", "", (ROOT / "include/ungrain.h").read_text(), flags=re.S)


def _fields(body):
    """Of a struct in the header. What is a pointer to something else is void* here."""
    for declaration in body.split(";"):
        declaration = " ".join(declaration.split())
        if not declaration:
            continue
        function = re.match(r".*\(\*(\w+)\)\(.*\)$", declaration)
        if function:
            yield function[1], ctypes.c_void_p
            continue
        kind, name, count = re.match(r"(.*?[ *])(\w+)(?:\[(\d+)\])?$", declaration).groups()
        kind = kind.strip()
        if kind == "char":
            yield name, ctypes.c_char * int(count)
        else:
            element = TYPES[kind] if kind in TYPES else ctypes.c_void_p
            if element is ctypes.c_void_p:
                assert kind.endswith("*"), declaration
            yield name, element * int(count) if count else element


def struct(name):
    body = re.search(r"typedef struct %s \{(.*?)\} %s;" % (name, name), HEADER, re.S)[1]
    return type(name, (ctypes.Structure,), {"_fields_": list(_fields(body))})


def layout():
    """Lines that stay true in later versions of the same ABI: structs only grow at their ends."""
    for name in re.findall(r"typedef struct (\w+) \{", HEADER):
        made = struct(name)
        for field, *_ in made._fields_:
            yield f"{name}.{field}: {getattr(made, field).offset}, {getattr(made, field).size} bytes"


def abi_version():
    """Of the shared library's name: "0.2", from 1.0 on "1"."""
    major, minor = re.search(r"project\(ungrain VERSION (\d+)\.(\d+)", (ROOT / "CMakeLists.txt").read_text()).groups()
    return major if major != "0" else f"0.{minor}"


if __name__ == "__main__":
    print("\n".join(layout()))
